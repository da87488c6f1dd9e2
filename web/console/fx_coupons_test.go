package console

import (
	"context"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// codeKeys holds a key that everybody may know.
func codeKeys(t *testing.T) *redeemcode.Keyring {
	t.Helper()
	k, err := redeemcode.ParseKeys("1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU=")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// byCode makes the template one that is obtained by code.
func (g *rig) byCode(t template.Template) template.Template {
	g.Helper()
	g.exec(`update templates set obtain = 'code' where id = $1`, t.ID)
	t.Obtain = template.ByCode
	return t
}

// makeCodes does what workers would with batches that wait.
func (g *rig) makeCodes() {
	g.Helper()
	jobs := postgres.NewJobs(g.db)
	runner := &redeemcode.Generator{Store: postgres.NewCodes(g.db), Keys: codeKeys(g.T)}
	kinds := []string{redeemcode.JobKind}
	due, err := jobs.DueJobs(g.Context(), kinds, 10)
	g.must(err)
	for _, id := range due {
		l, err := jobs.LeaseJob(g.Context(), id, kinds, time.Minute)
		g.must(err)
		var p job.Progress
		for !p.Finished {
			p, err = runner.Step(g.Context(), l.Job)
			g.must(err)
			l.Job, err = jobs.SaveJob(g.Context(), l, p, time.Minute)
			g.must(err)
		}
	}
}

// checkCodes looks up codes of every kind.
func (g *rig) checkCodes(b *browser, lines []string) {
	g.Helper()
	first, _, _ := strings.Cut(lines[1], ",")
	check := func(code string) answer { return b.post("/codes/check", url.Values{"code": {code}}).is(200) }
	check("hello").has("This is not a code", `value="hello"`)
	check("0000 0000 0000 0000").has("Not one of our codes")
	check(strings.ToLower(first)).has("Not now: the drop has not opened yet", first, "code 1 of 1,200", "Opening", "<html")
	g.checkDrops(check, first)
	g.exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		values (1, 1001, 5, 'code', '1', now(), now() + interval '1 day')`)
	check(first).has("A code works once", "/users/1001")
	part := g.as(staff.Marketer).htmx().post("/codes/check", url.Values{"code": {first}}).is(200)
	part.has("A code works once").hasNot("<html")
	elsewhere := g.as(staff.Viewer, 11)
	elsewhere.post("/codes/check", url.Values{"code": {first}}).is(200).has("A code of another shop").hasNot("1001")
}

// checkDrops looks up a good code in every state of its drop.
func (g *rig) checkDrops(check func(string) answer, code string) {
	g.Helper()
	set := func(change string) { g.Helper(); g.exec(`update templates set ` + change + ` where id = 1`) }
	now, never := `class="notice is-warn"`, `class="notice is-bad"`
	set(`state = 'draft'`)
	check(code).has(now, "Not now: the template is a draft")
	set(`state = 'published', opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '1 hour'`)
	check(code).has("Good: nobody has used it", "gets a coupon").hasNot(now, never)
	set(`state = 'paused'`)
	check(code).has(now, "Not now: the drop is paused")
	set(`state = 'published', issued = stock`)
	check(code).has(now, "Not now: all coupons are gone")
	set(`state = 'closed', issued = 0, ended_at = '2026-03-04 05:06:07Z'`)
	check(code).has(never, "Worthless: the drop is over", "Ended", "4 Mar 2026")
	set(`state = 'cancelled'`)
	check(code).has(never, "Worthless: the drop was cancelled", "4 Mar 2026").hasNot("Good")
	set(`state = 'published', ended_at = null, obtain = 'claim'`)
	check(code).has(never, "Worthless: the drop takes no codes")
	set(`obtain = 'code'`)
}

// gives issues a coupon of the template to the user and returns its id.
func (g *rig) gives(t template.Template, userID int64) int64 {
	g.Helper()
	var id int64
	g.must(g.sql.QueryRow(g.Context(), `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, $2, (random() * 1e15)::bigint + 1, 'claim', now(), now() + interval '1 hour') returning id`, t.ID, userID).Scan(&id))
	return id
}

func (g *rig) locks(id int64, order string) {
	g.Helper()
	s := &coupon.Service{Store: postgres.NewCouponSteps(g.db), LockFor: time.Hour}
	_, err := s.Lock(g.Context(), "key:1 Till", id, coupon.Order{ID: order, Amount: 50000})
	g.must(err)
}

// sentList uploads a list for the template's page of lists.
func (b *browser) sentList(page, name, content string) string {
	b.Helper()
	return b.upload(page+"/new", name, content).is(303).header.Get("Location")
}

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

func (g *rig) friends() template.Template {
	g.Helper()
	d := g.published(10, time.Hour)
	g.exec(`insert into users (id) select generate_series(1001, 1004)`)
	g.exec(`update templates set stock = 3, issued = 1 where id = $1`, d.ID)
	g.gives(d, 1002)
	g.exec(`insert into claim_counts values ($1, 1002, 1)`, d.ID)
	return d
}
