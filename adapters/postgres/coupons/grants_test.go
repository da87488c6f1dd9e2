package coupons_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// table is an uploaded list in memory.
type table struct {
	rows [][]string
	next int
}

func (t *table) OpenList(context.Context, int64) (coupon.Rows, error) {
	return &table{rows: t.rows}, nil
}
func (t *table) Close() error { return nil }
func (t *table) Next() (int64, []string, error) {
	if t.next == len(t.rows) {
		return 0, nil, io.EOF
	}
	t.next++
	return int64(t.next), slices.Clone(t.rows[t.next-1]), nil
}

// countingGate counts claims, and answers "not now" while it is set to.
type countingGate struct {
	claim.Gate
	asked  atomic.Int64
	failAt int64
	away   bool // from then on
}

func (g *countingGate) Claim(ctx context.Context, r claim.Request) (claim.Claim, error) {
	if n := g.asked.Add(1); n == g.failAt || g.away && n > g.failAt {
		return claim.Claim{}, claim.ErrOverloaded
	}
	return g.Gate.Claim(ctx, r)
}

// campaignGrant is a database in which staff and campaigns grant coupons.
type campaignGrant struct {
	*fixture
	grants  *coupon.Grants
	granter *coupon.Granter
	gate    *countingGate
	list    *table
	drop    template.Template
}

func newCampaignGrant(t *testing.T, stock int64) *campaignGrant {
	w := newFixture(t)
	claims := couponsdb.NewClaims(w.DB, postgres.Grouping{})
	t.Cleanup(claims.Close)
	b := &campaignGrant{fixture: w, gate: &countingGate{Gate: claims}, list: &table{}}
	s := pgtest.Spec(time.Hour)
	s.Stock, s.PerUserLimit = stock, 1
	tpl, err := w.Service.Create(t.Context(), staff.System(), s, "")
	w.Must(err)
	b.drop, err = w.Service.Do(t.Context(), staff.System(), tpl.ID, 0, template.Publishing, "")
	w.Must(err)
	w.Exec(`insert into users (id) select generate_series(1, 2000)`)
	b.grants = &coupon.Grants{Store: couponsdb.NewGrants(w.DB), Jobs: &job.Service{Store: w.Jobs}, Now: time.Now}
	b.granter = &coupon.Granter{Admin: &coupon.Admin{Store: couponsdb.NewCouponSteps(w.DB)}, Store: couponsdb.NewGrants(w.DB), Lists: b.list, Gate: b.gate, Random: rand.Uint64}
	return b
}

// upload starts a job for the list.
func (b *campaignGrant) upload(dryRun bool, rows ...string) job.Job {
	b.Helper()
	b.list.rows = nil
	for _, r := range rows {
		b.list.rows = append(b.list.rows, strings.Split(r, ","))
	}
	u, err := b.Uploads.SaveUpload(b.Context(), "list.csv", strings.NewReader(strings.Join(rows, "\n")), 1<<20, pgtest.Actor)
	b.Must(err)
	j, err := b.grants.Start(b.Context(), pgtest.Actor, coupon.GrantParams{TemplateID: b.drop.ID, DryRun: dryRun}, u.ID, "")
	b.Must(err)
	return j
}

// work runs the job's steps to the end. With twice each step runs two times, as
// if its worker had died before saving its progress.
func (b *campaignGrant) work(j job.Job, twice bool) job.Job {
	b.Helper()
	for range 100 {
		p, err := b.granter.Step(b.Context(), j)
		if twice && err == nil {
			p, err = b.granter.Step(b.Context(), j)
		}
		if errors.Is(err, claim.ErrOverloaded) {
			continue // tried again from the same cursor
		}
		b.Must(err)
		j.Cursor, j.Result, j.Total, j.Done, j.Failed = p.Cursor, p.Result, p.Total, p.Done, p.Failed
		if p.Finished {
			b.Exec(`update jobs set state = 'done', finished_at = now(), total = $2, done = $3, failed = $4 where id = $1`, j.ID, j.Total, j.Done, j.Failed)
			return j
		}
	}
	b.Fatal("the job does not end")
	return j
}

func (b *campaignGrant) results(j job.Job) string {
	b.Helper()
	var list []string
	b.Must(b.grants.Results(b.Context(), pgtest.Actor, j.ID, func(r coupon.GrantRow) error {
		list = append(list, r.Input+":"+r.Result)
		return nil
	}))
	return strings.Join(list, " ")
}

func TestGrantDryRunThenApplied(t *testing.T) {
	b := newCampaignGrant(t, 4)
	_, err := b.gate.Gate.Claim(t.Context(), claim.Request{ID: 1, TemplateID: b.drop.ID, UserID: 9, Origin: claim.ByGrant})
	b.Must(err)
	dry := b.work(b.upload(true, "name,user_id", "Ann,1", "Bob,x", "Cid,1", "Dan,9", "Eve,99999", "Fay,2", "Gus,3", "Hal,4", "Ida"), true)
	if got, want := b.results(dry), "1:ok x:bad_user_id 1:duplicate 9:limit_reached 99999:unknown_user 2:ok 3:ok 4:sold_out :bad_user_id"; got != want {
		t.Fatalf("dry run\n%s\nwant\n%s", got, want)
	}
	if dry.Total != 9 || dry.Done != 3 || dry.Failed != 6 || b.Number(`select count(*) from coupons`) != 1 {
		t.Fatalf("dry run: %+v", dry)
	}
	applied, first, err := b.grants.Apply(t.Context(), pgtest.Actor, dry.ID, "thanks")
	b.Must(err)
	again, second, err := b.grants.Apply(t.Context(), pgtest.Actor, dry.ID, "thanks")
	b.Must(err)
	if again.ID != applied.ID || !first || second {
		t.Fatal("applied twice")
	}
	applied = b.work(applied, true)
	// Three coupons are left for users 1, 2, 3 and 4, whose grants run at the
	// same time.
	if applied.Done != 3 || applied.Failed != 6 || b.Number(`select count(*) from coupons where origin = 'grant'`) != 4 {
		t.Fatalf("applied: %+v %s", applied, b.results(applied))
	}
	if n := b.Number(`select count(*) from grant_rows g join coupons c on c.id = g.coupon_id and c.user_id = g.user_id where g.result = 'issued'`); n != 3 {
		t.Fatalf("%d rows name their coupon", n)
	}
	if n := b.Number(`select issued from templates where id = $1`, b.drop.ID); n != 4 {
		t.Fatalf("%d issued of a stock of 4", n)
	}
	if n := b.Number(`select count(*) from audit where action = 'job.start' and reason = 'thanks'`); n != 1 {
		t.Fatalf("%d audit records say why", n)
	}
	_, counts, err := b.grants.Outcome(t.Context(), applied)
	b.Must(err)
	if counts["issued"] != 3 || counts["bad_user_id"] != 2 || counts["duplicate"] != 1 || counts["unknown_user"] != 1 || counts["limit_reached"]+counts["sold_out"] != 2 {
		t.Fatalf("counted %v", counts)
	}
	lines, err := b.grants.Lines(t.Context(), pgtest.Actor, applied, "issued", 0, 2)
	b.Must(err)
	more, err := b.grants.Lines(t.Context(), pgtest.Actor, applied, "issued", lines[1].Line, 2)
	b.Must(err)
	if len(more) != 1 || more[0].CouponID == 0 || more[0].Line <= lines[1].Line {
		t.Fatalf("%+v, then %+v", lines, more)
	}
	list, err := b.grants.List(t.Context(), pgtest.Actor, coupon.GrantQuery{TemplateID: b.drop.ID, Limit: 10})
	if err != nil || len(list) != 2 || list[0].ID != applied.ID {
		t.Fatalf("%+v, %v", list, err)
	}
	if list, err = b.grants.List(t.Context(), pgtest.Actor, coupon.GrantQuery{TemplateID: b.drop.ID, Before: applied.ID, Limit: 10}); err != nil || len(list) != 1 || list[0].ID != dry.ID {
		t.Fatalf("%+v, %v", list, err)
	}
	elsewhere := staff.Actor{Label: "staff:3", Role: staff.Marketer, Shops: []int64{11}}
	if list, err = b.grants.List(t.Context(), elsewhere, coupon.GrantQuery{Limit: 10}); err != nil || len(list) != 0 {
		t.Fatalf("another shop's: %+v, %v", list, err)
	}
	by, err := b.grants.Applied(t.Context(), dry, coupon.GrantParams{TemplateID: b.drop.ID, DryRun: true})
	if err != nil || by != applied.ID {
		t.Fatalf("applied by %d, %v", by, err)
	}
}

// TestAListIsGivenOnce: a list is granted once, even if several members apply it.
// It cannot be applied while no user on it could get a coupon.
func TestAListIsGivenOnce(t *testing.T) {
	b := newCampaignGrant(t, 3)
	dry := b.work(b.upload(true, "1", "2"), false)
	other := staff.Actor{Label: "staff:77", Name: "Other", Role: staff.Admin}
	b.Exec(`update templates set state = 'paused' where id = $1`, b.drop.ID)
	if _, _, err := b.grants.Apply(t.Context(), pgtest.Actor, dry.ID, "why"); !errors.Is(err, template.ErrTransition) {
		t.Errorf("while paused: %v", err)
	}
	b.Exec(`update templates set state = 'published' where id = $1`, b.drop.ID)
	first, _, err := b.grants.Apply(t.Context(), pgtest.Actor, dry.ID, "why")
	b.Must(err)
	b.work(first, false)
	again, began, err := b.grants.Apply(t.Context(), other, dry.ID, "me too")
	if err != nil || again.ID != first.ID || began || again.By(other) {
		t.Errorf("job %d of %s, want %d: %v", again.ID, again.CreatedBy, first.ID, err)
	}
	viewer := staff.Actor{Label: "staff:2", Role: staff.Viewer}
	if _, _, err := b.grants.Apply(t.Context(), viewer, dry.ID, "me too"); fault.KindOf(err) != fault.Denied {
		t.Errorf("a viewer: %v", err)
	}
}

// TestOneOfManyAppliesAList: of concurrent requests to apply a list, one starts
// the job, and the other requests return this job.
func TestOneOfManyAppliesAList(t *testing.T) {
	b := newCampaignGrant(t, 3)
	dry := b.work(b.upload(true, "1", "2"), false)
	const people = 8
	var jobs [people]job.Job
	var firsts [people]bool
	var errs [people]error
	var all sync.WaitGroup
	go1 := make(chan struct{})
	for i := range people {
		all.Go(func() {
			<-go1
			jobs[i], firsts[i], errs[i] = b.grants.Apply(t.Context(), staff.Actor{Label: fmt.Sprintf("staff:%d", 100+i), Role: staff.Admin}, dry.ID, "why")
		})
	}
	close(go1)
	all.Wait()
	b.Must(errors.Join(errs[:]...))
	won := slices.Index(firsts[:], true)
	for i := range people {
		if jobs[i].ID != jobs[0].ID || firsts[i] != (i == won) || jobs[i].CreatedBy != fmt.Sprintf("staff:%d", 100+won) {
			t.Errorf("person %d was told of job %d by %s, first %v", i, jobs[i].ID, jobs[i].CreatedBy, firsts[i])
		}
	}
	if n := b.Number(`select count(*) from jobs where kind = 'coupons.grant'`) + b.Number(`select count(*) from audit where action = 'job.start'`); n != 4 {
		t.Errorf("%d jobs and records, want two of each", n)
	}
}

// TestWhatAGateHasWrittenIsCounted: rows whose claims a gate accepted are counted
// and found by their outcome.
func TestWhatAGateHasWrittenIsCounted(t *testing.T) {
	b := newCampaignGrant(t, 9)
	given := b.work(b.upload(false, "1", "2", "3"), false)
	b.Exec(`update grant_rows set result = 'accepted', coupon_id = null where sheet_id = $1`, given.ID)
	given.State, given.Result = job.Done, []byte(`{"results":{"accepted":3}}`)
	if _, counts, err := b.grants.Outcome(t.Context(), given); err != nil || len(counts) != 1 || counts["issued"] != 3 {
		t.Errorf("%v %v", counts, err)
	}
	for result, want := range map[string]int{"issued": 3, "accepted": 0, "": 3} {
		if rows, err := b.grants.Lines(t.Context(), pgtest.Actor, given, result, 0, 10); err != nil || len(rows) != want {
			t.Errorf("%q: %+v %v", result, rows, err)
		}
	}
}

// TestGrantIsTakenBack revokes the coupons of a grant. An unused coupon is
// revoked and for sale again; a locked coupon stays. Running the job twice
// returns no coupon twice, and the second run reports the coupons that had been
// revoked before.
func TestGrantIsTakenBack(t *testing.T) {
	b := newCampaignGrant(t, 3)
	given := b.work(b.upload(false, "1", "2", "3"), false)
	steps := &coupon.Service{Store: b.Payments, LockFor: time.Hour}
	_, err := steps.Lock(t.Context(), "", b.Number(`select id from coupons where user_id = 2`), coupon.Order{ID: "A", Amount: 5000})
	b.Must(err)
	dry := b.work(b.upload(true, "4"), false)
	if _, err := b.grants.TakeBack(t.Context(), pgtest.Actor, dry.ID, "oops", true, ""); !errors.Is(err, template.ErrTransition) {
		t.Errorf("a dry run: %v", err)
	}
	if _, err := b.grants.TakeBack(t.Context(), pgtest.Actor, given.ID, "", true, ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a reason: %v", err)
	}
	viewer := staff.Actor{Label: "staff:2", Role: staff.Viewer}
	if _, err := b.grants.TakeBack(t.Context(), viewer, given.ID, "oops", true, ""); fault.KindOf(err) != fault.Denied {
		t.Errorf("a viewer: %v", err)
	}
	back := &coupon.TakeBacker{Store: couponsdb.NewGrants(b.DB), Desk: &coupon.Admin{Store: couponsdb.NewCouponSteps(b.DB)}}
	for _, want := range []map[string]int64{{"revoked": 2, "locked": 1}, {"revoked_before": 2, "locked": 1}} {
		j, err := b.grants.TakeBack(t.Context(), pgtest.Actor, given.ID, "the wrong list", true, "")
		b.Must(err)
		for range 2 { // as if its worker had died before it was saved
			p, err := back.Step(t.Context(), j)
			if err != nil || !p.Finished || p.Done != want["revoked"] || p.Failed != 1 || p.Total != p.Done+p.Failed || len(p.Errors) != 1 || p.Errors[0].Line != 2 || !p.Errors[0].Breaks("rule.kept_locked") {
				t.Fatalf("%+v, %v", p, err)
			}
			j.Result = p.Result
			if _, counts, err := b.grants.Outcome(t.Context(), j); err != nil || !maps.Equal(counts, want) {
				t.Errorf("counted %v, want %v: %v", counts, want, err)
			}
		}
	}
	l, err := couponsdb.NewLedgers(b.DB).Ledger(t.Context(), b.drop.ID)
	if want := (claim.Ledger{TemplateID: b.drop.ID, Total: 3, OnSale: 2, Issued: 1, Returned: 2, PerUser: 3}); err != nil || l != want {
		t.Fatalf("%+v, %v, want %+v", l, err, want)
	}
	if n := b.Number(`select count(*) from coupon_operations where step = 'revoke' and reason = 'the wrong list' and actor like 'system%'`); n != 2 {
		t.Errorf("%d lines in the log", n)
	}
}

// TestGrantGoesOn: the gate fails in the middle, every step runs twice, and a
// second job of the same list follows. Each user gets one coupon.
func TestGrantGoesOn(t *testing.T) {
	b := newCampaignGrant(t, 5000)
	rows := []string{"user_id"}
	for i := range 1200 {
		rows = append(rows, fmt.Sprint(i+1))
	}
	b.gate.failAt = 700
	done := b.work(b.upload(false, rows...), true)
	if done.Done != 1200 || done.Failed != 0 {
		t.Fatalf("%+v", done)
	}
	if n := b.Number(`select count(distinct user_id) from coupons`); n != 1200 || b.Number(`select count(*) from coupons`) != 1200 {
		t.Fatalf("%d users, %d coupons", n, b.Number(`select count(*) from coupons`))
	}
	params, err := json.Marshal(coupon.GrantParams{TemplateID: b.drop.ID, Sheet: done.ID})
	b.Must(err)
	b.work(job.Job{ID: done.ID + 1, Params: params}, false)
	if n := b.Number(`select count(*) from coupons`); n != 1200 {
		t.Fatalf("%d coupons after the list was worked off again", n)
	}
}

// TestWhatADeadWorkerGaveIsTakenBack: in the middle of a chunk the gate fails
// permanently, or the worker dies before saving which users got coupons. Revoking
// the list still revokes all its coupons.
func TestWhatADeadWorkerGaveIsTakenBack(t *testing.T) {
	b := newCampaignGrant(t, 2000)
	rows := []string{"user_id", "1"}
	for i := range 100 {
		rows = append(rows, fmt.Sprint(i+1)) // 1 is there twice
	}
	for name, die := range map[string]func(sheet int64){
		"the gate is away": func(sheet int64) {
			if n := b.Number(`select count(*) from grant_rows where sheet_id = $1 and result = 'issued'`, sheet); n == 0 {
				t.Error("nobody knows who was given a coupon")
			}
		},
		"the worker is": func(sheet int64) {
			b.Exec(`update grant_rows set result = '', coupon_id = null where sheet_id = $1`, sheet)
		},
		"after a dry run": func(sheet int64) {
			b.Exec(`update grant_rows set result = 'sold_out', coupon_id = null where sheet_id = $1`, sheet)
		},
	} {
		b.Exec(`update templates set per_user_limit = per_user_limit + 1`)
		j := b.upload(false, rows...)
		p, err := b.granter.Step(t.Context(), j)
		b.Must(err)
		j.Cursor = p.Cursor
		b.gate.asked.Store(0)
		b.gate.failAt, b.gate.away = 50, true
		if _, err := b.granter.Step(t.Context(), j); !errors.Is(err, claim.ErrOverloaded) {
			t.Fatalf("%s: %v", name, err)
		}
		b.gate.failAt, b.gate.away = 0, false
		_, err = b.grants.Jobs.Cancel(t.Context(), pgtest.Actor, j.ID)
		b.Must(err)
		die(j.ID)
		left := func() int64 {
			return b.Number(`select count(*) from coupons where state = 'unused' and origin_key like $1 || ':%'`, fmt.Sprint(j.ID))
		}
		given := left()
		if given == 0 || given >= 100 {
			t.Fatalf("%s: %d coupons were given", name, given)
		}
		issued := strings.Count(b.results(j), ":issued")
		back := &coupon.TakeBacker{Store: couponsdb.NewGrants(b.DB), Desk: &coupon.Admin{Store: couponsdb.NewCouponSteps(b.DB)}}
		undo, err := b.grants.TakeBack(t.Context(), pgtest.Actor, j.ID, "the wrong list", true, "")
		b.Must(err)
		p, err = back.Step(t.Context(), undo)
		if err != nil || !p.Finished || p.Done != given || p.Failed != 0 || left() != 0 || int64(issued) != given {
			t.Errorf("%s: %d of %d are taken back, %d told of, %d left, %v", name, p.Done, given, issued, left(), err)
		}
	}
}

// TestWhatAStoppedGrantGaveIsCounted: a grant and a revocation that were stopped
// in the middle of a chunk report their results so far, even if the results could
// not be saved.
func TestWhatAStoppedGrantGaveIsCounted(t *testing.T) {
	b := newCampaignGrant(t, 2000)
	rows := []string{"user_id", "99999"}
	for i := range 600 {
		rows = append(rows, fmt.Sprint(i+1))
	}
	j := b.work(b.upload(true, rows...), false)
	j, _, err := b.grants.Apply(t.Context(), pgtest.Actor, j.ID, "thanks")
	b.Must(err)
	stopped := func(step func(context.Context, job.Job) (job.Progress, error)) (job.Job, map[string]int64) {
		t.Helper()
		_, err := b.grants.Jobs.Cancel(t.Context(), pgtest.Actor, j.ID)
		b.Must(err)
		_, _ = step(t.Context(), j) // its progress is not saved
		j, err = b.grants.Jobs.Job(t.Context(), pgtest.Actor, j.ID)
		b.Must(err)
		j, counts, err := b.grants.Outcome(t.Context(), j)
		b.Must(err)
		return j, counts
	}
	b.gate.failAt, b.gate.away = 50, true
	given, counts := stopped(b.granter.Step)
	n := b.Number(`select count(*) from coupons`)
	if n == 0 || n == 600 || given.Done != n || given.Failed != 0 || !maps.Equal(counts, map[string]int64{"issued": n}) {
		t.Fatalf("%d coupons, told of %d and %d, %v", n, given.Done, given.Failed, counts)
	}
	back := &coupon.TakeBacker{Store: couponsdb.NewGrants(b.DB), Desk: &coupon.Admin{Store: couponsdb.NewCouponSteps(b.DB)}}
	if j, err = b.grants.TakeBack(t.Context(), pgtest.Actor, j.ID, "the wrong list", true, ""); err != nil || j.Total != n {
		t.Fatalf("%d of %d are to be taken back: %v", j.Total, n, err)
	}
	if back, counts := stopped(back.Step); back.Done != n || !maps.Equal(counts, map[string]int64{"revoked": n}) {
		t.Errorf("%d coupons, told of %d, %v", n, back.Done, counts)
	}
}

func TestGrantRefusals(t *testing.T) {
	b := newCampaignGrant(t, 10)
	for what, rows := range map[string][]string{"no column": {"name,mail", "Ann,a"}, "two columns without a heading": {"1,2"}} {
		j := b.upload(false, rows...)
		if _, err := b.granter.Step(t.Context(), j); !errors.Is(err, coupon.ErrNoUserColumn) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, rows := range [][]string{{"user_id"}, {"name,user_id"}, nil} {
		if _, err := b.granter.Step(t.Context(), b.upload(false, rows...)); !errors.Is(err, coupon.ErrNoGrants) {
			t.Errorf("a list without rows (%q): %v", rows, err)
		}
	}
	// A file of users has the column id; a file of coupons has the columns id and
	// user_id.
	for heading, row := range map[string]string{"id,name": "3,Ann", "id,用户ID": "9999,4", "x,uid": "9999,5", "Customer ID": "6"} {
		if j := b.work(b.upload(false, heading, row), false); j.Done != 1 {
			t.Errorf("%s: %+v", heading, j)
		}
	}
	if j := b.work(b.upload(false, "1", "2"), false); j.Done != 2 {
		t.Errorf("one column needs no heading: %+v", j)
	}
	viewer, elsewhere := staff.Actor{Label: "staff:2", Role: staff.Viewer}, staff.Actor{Label: "staff:3", Role: staff.Marketer, Shops: []int64{11}}
	for _, by := range []staff.Actor{viewer, elsewhere} {
		if _, err := b.grants.Start(t.Context(), by, coupon.GrantParams{TemplateID: b.drop.ID}, 1, ""); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s started: %v", by.Label, err)
		}
	}
	if _, err := b.grants.Start(t.Context(), pgtest.Actor, coupon.GrantParams{TemplateID: 404}, 1, ""); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
	draft, err := b.Service.Create(t.Context(), pgtest.Actor, pgtest.Spec(time.Hour), "")
	b.Must(err)
	if _, err := b.grants.Start(t.Context(), pgtest.Actor, coupon.GrantParams{TemplateID: draft.ID}, 1, ""); !errors.Is(err, template.ErrTransition) {
		t.Errorf("a draft: %v", err)
	}
	if _, _, err := b.grants.Apply(t.Context(), pgtest.Actor, 404, ""); !errors.Is(err, job.ErrNotFound) {
		t.Errorf("no job: %v", err)
	}
}
