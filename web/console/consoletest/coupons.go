package consoletest

import (
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	tables "dropbell/adapters/sheet"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// CodeKeys holds a key that is not secret.
func CodeKeys(t *testing.T) *redeemcode.Keyring {
	t.Helper()
	k, err := redeemcode.ParseKeys("1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU=")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// ByCode makes the coupons of the template available by code.
func (g *Fixture) ByCode(t template.Template) template.Template {
	g.Helper()
	g.Exec(`update templates set obtain = 'code' where id = $1`, t.ID)
	t.Obtain = template.ByCode
	return t
}

// MakeCodes runs the worker's part for waiting batches.
func (g *Fixture) MakeCodes() {
	g.Helper()
	jobs := g.Stores.Jobs
	runner := &redeemcode.Generator{Store: g.Stores.Codes, Keys: CodeKeys(g.T)}
	kinds := []string{redeemcode.JobKind}
	due, err := jobs.DueJobs(g.Context(), kinds, 10)
	g.Must(err)
	for _, id := range due {
		l, err := jobs.LeaseJob(g.Context(), id, kinds, time.Minute)
		g.Must(err)
		var p job.Progress
		for !p.Finished {
			p, err = runner.Step(g.Context(), l.Job)
			g.Must(err)
			l.Job, err = jobs.SaveJob(g.Context(), l, p, time.Minute)
			g.Must(err)
		}
	}
}

// CheckCodes looks up codes of every kind.
func (g *Fixture) CheckCodes(b *Browser, lines []string) {
	g.Helper()
	first, _, _ := strings.Cut(lines[1], ",")
	check := func(code string) Answer { return b.Post("/codes/check", url.Values{"code": {code}}).Is(200) }
	check("hello").Has("This is not a code", `value="hello"`)
	check("0000 0000 0000 0000").Has("Not one of our codes")
	check(strings.ToLower(first)).Has("Not now: the drop has not opened yet", first, "code 1 of 1,200", "Opening", "<html")
	g.checkDrops(check, first)
	g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		select 1, 1001, 5, 'code', first_serial::text, now(), now() + interval '1 day' from code_batches where id = 1`)
	check(first).Has("A code works once", "/users/1001")
	part := g.As(staff.Marketer).Htmx().Post("/codes/check", url.Values{"code": {first}}).Is(200)
	part.Has("A code works once").HasNot("<html")
	elsewhere := g.As(staff.Viewer, 11)
	elsewhere.Post("/codes/check", url.Values{"code": {first}}).Is(200).Has("A code of another shop").HasNot("1001")
}

// checkDrops looks up a good code in every state of its drop.
func (g *Fixture) checkDrops(check func(string) Answer, code string) {
	g.Helper()
	set := func(change string) { g.Helper(); g.Exec(`update templates set ` + change + ` where id = 1`) }
	now, never := `class="notice is-warn"`, `class="notice is-bad"`
	set(`state = 'draft'`)
	check(code).Has(now, "Not now: the drop is a draft")
	set(`state = 'published', opens_at = date_trunc('second', now()) - interval '1 hour', closes_at = date_trunc('second', now()) + interval '1 hour'`)
	check(code).Has("Valid and unused", "can be redeemed now").HasNot(now, never)
	set(`state = 'paused'`)
	check(code).Has(now, "Not now: the drop is paused")
	set(`state = 'published', issued = stock`)
	check(code).Has(now, "Not now: all coupons are gone")
	set(`state = 'closed', issued = 0, ended_at = '2026-03-04 05:06:07Z'`)
	check(code).Has(never, "Invalid: the drop is over", "Ended", "4 Mar 2026")
	set(`state = 'cancelled'`)
	check(code).Has(never, "Invalid: the drop was cancelled", "4 Mar 2026").HasNot("Valid and unused")
	set(`state = 'published', ended_at = null, obtain = 'claim'`)
	check(code).Has(never, "Invalid: the drop takes no codes")
	set(`obtain = 'code'`)
}

// Gives issues a coupon of the template to the user and returns its id.
func (g *Fixture) Gives(t template.Template, userID int64) int64 {
	g.Helper()
	var id int64
	g.Must(g.SQL.QueryRow(g.Context(), `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, $2, (random() * 1e15)::bigint + 1, 'claim', now(), now() + interval '1 hour') returning id`, t.ID, userID).Scan(&id))
	return id
}

// Locks lets an order lock the coupon.
func (g *Fixture) Locks(id int64, order string) {
	g.Helper()
	s := &coupon.Service{Store: pgtest.Payments(g.T, g.DB), LockFor: time.Hour}
	_, err := s.Lock(g.Context(), "key:1 Till", id, coupon.Order{ID: order, Amount: 50000})
	g.Must(err)
}

// SentList uploads a list for the template's page of lists.
func (b *Browser) SentList(page, name, content string) string {
	b.Helper()
	return b.Upload(page+"/new", name, content).Is(303).Header.Get("Location")
}

// WorkGrants runs the waiting jobs about lists, as a worker would.
func (g *Fixture) WorkGrants() {
	g.Helper()
	gate := couponsdb.NewClaims(g.DB, postgres.Grouping{})
	defer gate.Close()
	store := g.Stores.Grants
	runners := map[string]job.Runner{
		coupon.GrantKind:    &coupon.Granter{Admin: &coupon.Admin{Store: g.Stores.CouponSteps}, Store: store, Lists: tables.Lists{Tables: tables.Tables{Open: g.Stores.Uploads.OpenUpload}}, Gate: gate, Random: rand.Uint64},
		coupon.TakeBackKind: &coupon.TakeBacker{Store: store, Desk: &coupon.Admin{Store: g.Stores.CouponSteps}}}
	w := &job.Worker{Store: g.Stores.Jobs, Queue: idle{}, LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 }, Runners: runners}
	due, err := g.Stores.Jobs.DueJobs(g.Context(), []string{coupon.GrantKind, coupon.TakeBackKind}, 100)
	g.Must(err)
	for _, id := range due {
		g.Must(w.Run(g.Context(), id))
	}
}

// Friends makes users and a template whose coupons are given away.
func (g *Fixture) Friends() template.Template {
	g.Helper()
	d := g.Published(10, time.Hour)
	g.Exec(`insert into users (id) select generate_series(1001, 1004)`)
	g.Exec(`update templates set stock = 3, issued = 1 where id = $1`, d.ID)
	g.Gives(d, 1002)
	g.Exec(`insert into claim_counts values ($1, 1002, 1)`, d.ID)
	return d
}
