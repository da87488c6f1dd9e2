package coupons_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// friends is a list with every possible error: 1001 occurs twice, 1002 already has a coupon, 404404
// is unknown, Ann is no id.
const friends = "Name;User ID\nAda;1001\nBob;1002\nCid;404404\nAnn;Ann\nAda;1001\nDan;1003\nEve;1004\n"

// Without scripts: upload, dry run, apply with a reason, results, take back.
func TestGrantPages(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b := g.As(staff.Marketer)
	page := fmt.Sprintf("/templates/%d/grants", d.ID)
	b.Get(fmt.Sprintf("/templates/%d", d.ID)).Is(200).Has(page)
	b.Get("/coupons").Is(200).Has("/grants")
	b.Get(page).Is(200).Has("Nothing given yet", page+"/new")
	b.Get(page+"/new").Is(200).Has("Check list", "Coupons left in stock: 2")
	b.Get("/grants/list.csv").Is(200).Has("user_id")
	b.Upload(page+"/new", "empty.csv", "").Is(422).Has("the file is empty")
	b.Upload(page+"/new", "p.png", "\x89PNG\x00\x00").Is(422).Has("not text in UTF-8")
	b.Upload(page+"/new", "names.csv", "name,mail\nAnn,a@example.com\n").Is(422).Has("needs a column user_id")

	dry := b.Upload(page+"/new", "friends.csv", friends).Is(303).Header.Get("Location")
	b.Get(dry).Is(200).Has("Dry run", "Not begun yet").HasNot(dry + "/apply")
	g.WorkGrants()
	b.Get(dry).Is(200).Has("Nothing has been given yet", "Would get one", "Limit per customer reached", "No such customer", "Not a customer ID", "Duplicate row", "Stock used up", dry+"/apply")
	b.Get(dry + "?result=unknown_user").Is(200).Has("404404").HasNot(`/users/1003"`)
	b.Get(dry + "?result=nonsense&after=-5").Is(200).Has("404404")
	if n := g.Number(`select count(*) from coupons`); n != 1 {
		t.Fatalf("the dry run gave %d coupons", n-1)
	}
	b.Get(dry+"/apply").Is(200).Has("2 customers would get a coupon", "5 rows would be left out")
	b.Post(dry+"/apply", nil).Is(422).Has("say why")
	given := b.Post(dry+"/apply", url.Values{"reason": {"thanks to the testers"}}).Is(303).Header.Get("Location")
	b.Post(dry+"/apply", url.Values{"reason": {"pressed twice"}}).To(given)
	b.Get(given).Is(200).Has("The coupons are being given.")
	late := g.As(staff.Marketer)
	late.Post(dry+"/apply", url.Values{"reason": {"me too"}}).To(given)
	late.Get(given).Is(200).Has("The marketer has already applied this list; no customer gets a second coupon.", "thanks to the testers").HasNot("The coupons are being given.")
	late.Get(dry + "/apply").To(given)
	late.Get(given).Is(200).Has("has already applied this list")
	if g.Number(`select count(*) from jobs where kind = 'coupons.grant'`) != 2 {
		t.Fatal("two people apply one list")
	}
	g.WorkGrants()
	b.Get(given).Is(200).Has("Giving coupons", "Given", "Done", "Reason: thanks to the testers", "Download results", "Take back").HasNot(given + "/apply")
	b.Get(dry).Is(200).Has("This list has been given", given).HasNot(dry + "/apply")
	b.Get(page).Is(200).Has(dry, given)
	b.Get("/grants").Is(200).Has(dry, given)
	if n := g.Number(`select count(*) from coupons where origin = 'grant'`); n != 2 {
		t.Fatalf("%d coupons were given of a stock of 2", n)
	}
	mine := g.Number(`select id from coupons where user_id = 1001`)
	b.Get(given+"/results.csv").Is(200).Has("line,user_id,result,coupon_id", fmt.Sprintf("2,1001,issued,%d", mine), "4,404404,unknown_user,", "5,Ann,bad_user_id,", "6,1001,duplicate,")
	if n := g.Number(`select count(*) from audit where action = 'job.start' and reason = 'thanks to the testers'`); n != 1 {
		t.Fatalf("%d audit records say why", n)
	}

	viewer := g.As(staff.Viewer)
	viewer.Get(given).Is(200).HasNot("results.csv", "takeback", fmt.Sprintf("/coupons/%d", mine))
	viewer.Get(page).Is(200).HasNot(page + "/new")
	viewer.Get(given + "/results.csv").Is(http.StatusForbidden)
	viewer.Upload(page+"/new", "friends.csv", friends).Is(http.StatusForbidden)
	viewer.Post(dry+"/apply", url.Values{"reason": {"x"}}).Is(http.StatusForbidden)
	elsewhere := g.As(staff.Marketer, 11)
	elsewhere.Get(given).Is(404)
	elsewhere.Get("/grants").Is(200).HasNot(given)
	elsewhere.Upload(page+"/new", "friends.csv", friends).Is(http.StatusForbidden)
	b.Get("/grants/999").Is(404)

	g.Locks(mine, "A-1")
	b.Get(given+"/takeback").Is(200).Has("Take coupons of", "Return to stock")
	b.Post(given+"/takeback", url.Values{"stock": {"1"}}).Is(422).Has("say why")
	back := b.Post(given+"/takeback", url.Values{"stock": {"1"}, "reason": {"the wrong list"}}).Is(303).Header.Get("Location")
	g.WorkGrants()
	b.Get(back).Is(200).Has("Taking coupons back", "Revoked", "Kept: locked, used or expired", "An order holds it; release its lock first.", "Kept: an order holds it").HasNot("Revoked before")
	chinese := g.Chinese()
	chinese.Get(back).Is(200).Has("被订单锁定；请先释放锁定", "保留：被订单锁定").HasNot("an order holds")
	chinese.Get(strings.Replace(back, "grants", "jobs", 1) + "/errors.csv").Is(200).Has("被订单锁定；请先释放锁定")
	if n := g.Number(`select issued from templates where id = $1`, d.ID); n != 2 {
		t.Fatalf("%d are issued, want the one from before and the locked one", n)
	}
	again := b.Post(given+"/takeback", url.Values{"reason": {"once more"}}).Is(303).Header.Get("Location")
	g.WorkGrants()
	if text := b.Get(again).Is(200).Has("Revoked before").Text(); !strings.Contains(text, "Revoked 0 Kept: locked, used or expired 1 Revoked before 1") {
		t.Errorf("the second time is told as %s", text)
	}
	b.Get(back + "/apply").Is(404)
	b.Get(back + "/results.csv").Is(404)
}

// A file with errors in a real browser: every step is seen and accessible.
func TestGrantInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	file := filepath.Join(t.TempDir(), "friends.csv")
	g.Must(os.WriteFile(file, []byte(friends), 0o600))
	b.Open(g.Server.URL + fmt.Sprintf("/templates/%d/grants", d.ID))
	b.Accessible("no lists yet")
	b.Press("main", "Give to a list")
	b.Sees("main", "See which customers would get a coupon")
	b.Accessible("choosing a file")
	b.Do(chromedp.SetUploadFiles(chromedp.CSS("#f-file"), []string{file}))
	b.Press("main", "Check list")
	b.Sees("main", "Not begun yet.")
	g.WorkGrants()
	b.Sees("#grant", "Nothing has been given yet.", "Would get one", "No such customer", "Stock used up")
	b.Accessible("You see a preview before anything is given")
	b.Press("#grant", "Give coupons")
	b.Sees("#dialog", "2 customers would get a coupon.", "5 rows would be left out.")
	b.Fill("#dialog [name=reason]", "thanks to the testers")
	b.Press("#dialog", "Give coupons")
	b.Sees("main", "The coupons are being given.")
	g.WorkGrants()
	b.Sees("#grant", "Done", "Download results", "Limit per customer reached", "Take back")
	b.Accessible("what was given")
	if n := g.Number(`select count(*) from coupons where origin = 'grant'`); n != 2 {
		t.Fatalf("%d coupons", n)
	}
}

// The template's page and the page of coupons show the outcomes of the coupons.
func TestTallyIsShown(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	g.Exec(`update templates set issued = 3 where id = $1`, d.ID)
	g.Exec(`insert into coupon_tallies (template_id, used, released, discounted) values ($1, 1, 4, 2000)`, d.ID)
	b := g.As(staff.Viewer)
	b.Get(fmt.Sprintf("/templates/%d?tab=coupons", d.ID)).Is(200).Has("Coupons by state", "4 locks ended without use", fmt.Sprintf("by=template&amp;q=%d&amp;state=used", d.ID))
	b.Get(fmt.Sprintf("/coupons?by=template&q=%d", d.ID)).Is(200).Has("Coupons by state", "4 locks ended without use")
	b.Get("/coupons?by=template&q=404404").Is(200).HasNot("Coupons by state")
	g.As(staff.Viewer, 11).Get(fmt.Sprintf("/coupons?by=template&q=%d", d.ID)).Is(200).HasNot("Coupons by state")
	if text := b.Get("/coupons?by=user&q=1002").Is(200).Text(); strings.Contains(text, "Coupons by state") {
		t.Error("a user's coupons are not a template's")
	}
}

// A coupon is returned to stock, or not, as staff choose.
func TestRevokeWithReturn(t *testing.T) {
	g := consoletest.New(t)
	d := g.Friends()
	id := g.Number(`select id from coupons`)
	page := fmt.Sprintf("/coupons/%d", id)
	b := g.As(staff.Marketer)
	b.Get(page+"/revoke").Is(200).Has("Return to stock", `name="stock"`)
	b.Post(page+"/revoke", url.Values{"stock": {"1"}}).Is(422).Has("say why", `checked`)
	b.Post(page+"/revoke", url.Values{"stock": {"1"}, "reason": {"wrong person"}}).To(page)
	b.Get(page).Is(200).Has("Returned to stock for another customer")
	if n := g.Number(`select issued from templates where id = $1 and returned = 1`, d.ID); n != 0 {
		t.Fatalf("%d are issued", n)
	}
}
