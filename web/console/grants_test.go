package console

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"dropbell/adapters/postgres"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// lists opens uploads as a worker does.
type lists struct{ tables.Tables }

func (l lists) OpenList(ctx context.Context, uploadID int64) (coupon.Rows, error) {
	return l.OpenTable(ctx, uploadID, job.Reading{}, nil)
}

// workGrants runs the waiting jobs about lists, as a worker would.
func (g *rig) workGrants() {
	g.Helper()
	gate := postgres.NewClaims(g.db, postgres.Grouping{})
	defer gate.Close()
	store := postgres.NewGrants(g.db)
	runners := map[string]job.Runner{
		coupon.GrantKind:    &coupon.Granter{Store: store, Lists: lists{tables.Tables{Open: postgres.NewUploads(g.db).OpenUpload}}, Gate: gate, Random: rand.Uint64},
		coupon.TakeBackKind: &coupon.TakeBacker{Store: store, Desk: &coupon.Desk{Store: postgres.NewCouponSteps(g.db)}}}
	w := &job.Worker{Store: postgres.NewJobs(g.db), Queue: idle{}, LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 }, Runners: runners}
	due, err := postgres.NewJobs(g.db).DueJobs(g.Context(), []string{coupon.GrantKind, coupon.TakeBackKind}, 100)
	g.must(err)
	for _, id := range due {
		g.must(w.Run(g.Context(), id))
	}
}

// friends is a list with everything that can be wrong with one: 1001 is named
// twice, 1002 has a coupon already, 404404 is nobody, Ann is no id.
const friends = "Name;User ID\nAda;1001\nBob;1002\nCid;404404\nAnn;Ann\nAda;1001\nDan;1003\nEve;1004\n"

func (g *rig) friends() template.Template {
	g.Helper()
	d := g.published(10, time.Hour)
	g.exec(`insert into users (id) select generate_series(1001, 1004)`)
	g.exec(`update templates set stock = 3, issued = 1 where id = $1`, d.ID)
	g.gives(d, 1002)
	g.exec(`insert into claim_counts values ($1, 1002, 1)`, d.ID)
	return d
}

// Without scripts: upload, dry run, apply with a reason, results, take back.
func TestGrantPages(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b := g.as(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	b.get(fmt.Sprintf("/templates/%d", d.ID)).is(200).has(page)
	b.get("/coupons").is(200).has("/grants")
	b.get(page).is(200).has("Nothing given yet", page+"/new")
	b.get(page+"/new").is(200).has("Check list", "2 coupons are left in stock")
	b.get("/grants/list.csv").is(200).has("user_id")
	b.upload(page+"/new", "empty.csv", "").is(422).has("the file is empty")
	b.upload(page+"/new", "p.png", "\x89PNG\x00\x00").is(422).has("not text in UTF-8")
	b.upload(page+"/new", "names.csv", "name,mail\nAnn,a@example.com\n").is(422).has("needs a column user_id")

	dry := b.upload(page+"/new", "friends.csv", friends).is(303).header.Get("Location")
	b.get(dry).is(200).has("Dry run", "Not begun yet").hasNot(dry + "/apply")
	g.workGrants()
	b.get(dry).is(200).has("Nothing has been given yet", "Would get one", "Limit per user reached", "No such user", "Not a user id", "Duplicate row", "Stock used up", dry+"/apply")
	b.get(dry + "?result=unknown_user").is(200).has("404404").hasNot(`/users/1003"`)
	b.get(dry + "?result=nonsense&after=-5").is(200).has("404404")
	if n := g.number(`select count(*) from coupons`); n != 1 {
		t.Fatalf("the dry run gave %d coupons", n-1)
	}
	b.get(dry+"/apply").is(200).has("2 users would get a coupon", "5 rows would be left out")
	b.post(dry+"/apply", nil).is(422).has("say why")
	given := b.post(dry+"/apply", url.Values{"reason": {"thanks to the testers"}}).is(303).header.Get("Location")
	b.post(dry+"/apply", url.Values{"reason": {"pressed twice"}}).to(given)
	b.get(given).is(200).has("The coupons are being given.")
	late := g.as(staff.Marketer)
	late.post(dry+"/apply", url.Values{"reason": {"me too"}}).to(given)
	late.get(given).is(200).has("The marketer has already applied this list; no user gets a second coupon.", "thanks to the testers").hasNot("The coupons are being given.")
	late.get(dry + "/apply").to(given)
	late.get(given).is(200).has("has already applied this list")
	if g.number(`select count(*) from jobs where kind = 'coupons.grant'`) != 2 {
		t.Fatal("two people apply one list")
	}
	g.workGrants()
	b.get(given).is(200).has("Giving coupons", "Given", "done", "Reason: thanks to the testers", "Download results", "Take back").hasNot(given + "/apply")
	b.get(dry).is(200).has("This list has been given", given).hasNot(dry + "/apply")
	b.get(page).is(200).has(dry, given)
	b.get("/grants").is(200).has(dry, given)
	if n := g.number(`select count(*) from coupons where origin = 'grant'`); n != 2 {
		t.Fatalf("%d coupons were given of a stock of 2", n)
	}
	mine := g.number(`select id from coupons where user_id = 1001`)
	b.get(given+"/results.csv").is(200).has("line,user_id,result,coupon_id", fmt.Sprintf("2,1001,issued,%d", mine), "4,404404,unknown_user,", "5,Ann,bad_user_id,", "6,1001,duplicate,")
	if n := g.number(`select count(*) from audit where action = 'job.start' and reason = 'thanks to the testers'`); n != 1 {
		t.Fatalf("%d audit records say why", n)
	}

	viewer := g.as(staff.Viewer)
	viewer.get(given).is(200).hasNot("results.csv", "takeback", fmt.Sprintf("/coupons/%d", mine))
	viewer.get(page).is(200).hasNot(page + "/new")
	viewer.get(given + "/results.csv").is(http.StatusForbidden)
	viewer.upload(page+"/new", "friends.csv", friends).is(http.StatusForbidden)
	viewer.post(dry+"/apply", url.Values{"reason": {"x"}}).is(http.StatusForbidden)
	elsewhere := g.as(staff.Marketer, 11)
	elsewhere.get(given).is(404)
	elsewhere.get("/grants").is(200).hasNot(given)
	elsewhere.upload(page+"/new", "friends.csv", friends).is(http.StatusForbidden)
	b.get("/grants/999").is(404)

	g.locks(mine, "A-1")
	b.get(given+"/takeback").is(200).has("Take coupons of", "Return to stock")
	b.post(given+"/takeback", url.Values{"stock": {"1"}}).is(422).has("say why")
	back := b.post(given+"/takeback", url.Values{"stock": {"1"}, "reason": {"the wrong list"}}).is(303).header.Get("Location")
	g.workGrants()
	b.get(back).is(200).has("Taking coupons back", "Revoked", "Kept: locked, used or expired", "An order holds it; release its lock first.", "Kept: an order holds it").hasNot("Revoked before")
	chinese := g.chinese()
	chinese.get(back).is(200).has("被订单锁定；请先释放锁定", "保留：被订单锁定").hasNot("an order holds")
	chinese.get(strings.Replace(back, "grants", "jobs", 1) + "/errors.csv").is(200).has("被订单锁定；请先释放锁定")
	if n := g.number(`select issued from templates where id = $1`, d.ID); n != 2 {
		t.Fatalf("%d are issued, want the one from before and the locked one", n)
	}
	again := b.post(given+"/takeback", url.Values{"reason": {"once more"}}).is(303).header.Get("Location")
	g.workGrants()
	if text := b.get(again).is(200).has("Revoked before").text(); !strings.Contains(text, "Revoked 0 Kept: locked, used or expired 1 Revoked before 1") {
		t.Errorf("the second time is told as %s", text)
	}
	b.get(back + "/apply").is(404)
	b.get(back + "/results.csv").is(404)
}

// A file with errors in a real browser: every step is seen and accessible.
func TestGrantInTheBrowser(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	b := newTab(t)
	b.signIn(g, g.hire(staff.Marketer))
	file := filepath.Join(t.TempDir(), "friends.csv")
	g.must(os.WriteFile(file, []byte(friends), 0o600))
	b.open(g.server.URL + fmt.Sprintf("/templates/%d/grants", d.ID))
	b.accessible("no lists yet")
	b.press("main", "Give to a list")
	b.sees("main", "See who would get a coupon")
	b.accessible("choosing a file")
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	b.press("main", "Check list")
	b.sees("main", "Not begun yet.")
	g.workGrants()
	b.sees("#grant", "Nothing has been given yet.", "Would get one", "No such user", "Stock used up")
	b.accessible("You see a preview before anything is given")
	b.press("#grant", "Give coupons")
	b.sees("#dialog", "2 users would get a coupon.", "5 rows would be left out.")
	b.fill("#dialog [name=reason]", "thanks to the testers")
	b.press("#dialog", "Give coupons")
	b.sees("main", "The coupons are being given.")
	g.workGrants()
	b.sees("#grant", "done", "Download results", "Limit per user reached", "Take back")
	b.accessible("what was given")
	if n := g.number(`select count(*) from coupons where origin = 'grant'`); n != 2 {
		t.Fatalf("%d coupons", n)
	}
}

// The template's page and the page of coupons tell what became of them.
func TestTallyIsShown(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	g.exec(`update templates set issued = 3 where id = $1`, d.ID)
	g.exec(`insert into coupon_tallies (template_id, used, released, discounted) values ($1, 1, 4, 2000)`, d.ID)
	b := g.as(staff.Viewer)
	b.get(fmt.Sprintf("/templates/%d", d.ID)).is(200).has("What became of them", "4 locks ended without use", fmt.Sprintf("by=template&amp;q=%d&amp;state=used", d.ID))
	b.get(fmt.Sprintf("/coupons?by=template&q=%d", d.ID)).is(200).has("What became of them", "4 locks ended without use")
	b.get("/coupons?by=template&q=404404").is(200).hasNot("What became of them")
	g.as(staff.Viewer, 11).get(fmt.Sprintf("/coupons?by=template&q=%d", d.ID)).is(200).hasNot("What became of them")
	if text := b.get("/coupons?by=user&q=1002").is(200).text(); strings.Contains(text, "What became of them") {
		t.Error("a user's coupons are not a template's")
	}
}

// A coupon is returned to stock, or not, as staff choose.
func TestRevokeWithReturn(t *testing.T) {
	g := newRig(t)
	d := g.friends()
	id := g.number(`select id from coupons`)
	page := fmt.Sprintf("/coupons/%d", id)
	b := g.as(staff.Marketer)
	b.get(page+"/revoke").is(200).has("Return to stock", `name="stock"`)
	b.post(page+"/revoke", url.Values{"stock": {"1"}}).is(422).has("say why", `checked`)
	b.post(page+"/revoke", url.Values{"stock": {"1"}, "reason": {"wrong person"}}).to(page)
	b.get(page).is(200).has("Returned to stock for another user")
	if n := g.number(`select issued from templates where id = $1 and returned = 1`, d.ID); n != 0 {
		t.Fatalf("%d are issued", n)
	}
}
