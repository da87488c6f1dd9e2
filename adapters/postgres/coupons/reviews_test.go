package coupons_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/pass"
	"dropbell/domain/reminder"
	"dropbell/domain/review"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

var (
	signKeys = pass.NewKeys("a-pass-secret-of-32-bytes-for-tests")
	another  = staff.Actor{Label: "staff:8", Name: "Bo", Role: staff.Marketer}
)

const scripted = 150 // users 1 to 150; the next 250 are people

// raided stores a protected drop that is sold out, with the signs of its claims.
func raided(w *fixture) template.Template {
	w.Helper()
	tpl := w.Published(time.Hour)
	opens := pgtest.Clock().Add(-30 * time.Minute).Truncate(time.Second)
	w.Exec(`update templates set protection = 'standard', opens_at = $2::timestamptz, closes_at = $2::timestamptz + interval '1 hour', stock = 400, issued = 400 where id = $1`, tpl.ID, opens)
	w.Fill("coupons", "generate_series(1, 400) n", pgtest.Row{"template_id": tpl.ID, "user_id": pgtest.SQL("n"), "claim_id": pgtest.SQL("n + 70000"),
		"issued_at": opens, "expires_at": opens.Add(48 * time.Hour)})
	w.Exec(`insert into claim_counts select $1, n, 1 from generate_series(1, 400) n`, tpl.ID)
	w.Exec(`insert into claim_seconds values ($1, $2, 400)`, tpl.ID, opens)
	signs := couponsdb.NewSigns(w.DB, signKeys, couponsdb.SignsReport{})
	for n := range 400 {
		by, at, passed := user.ID(n+1), opens.Add(time.Duration(3+n%7)*time.Millisecond), opens.Add(-5*time.Minute).Add(time.Duration(n)*40*time.Millisecond)
		opened, address, agent := time.Duration(0), netip.MustParseAddr("203.0.113.7"), "Mozilla/5.0 (X11)"
		if n >= scripted {
			at, passed, opened = opens.Add(time.Duration(n*17)*time.Millisecond), opens.Add(-time.Duration(n*2)*time.Second), time.Minute
			address, agent = netip.AddrFrom4([4]byte{100, byte(n / 50), byte(n), 1}), "Mozilla/5.0 (iPhone)"
		}
		p := pass.Pass{Way: pass.Puzzle, IssuedAt: passed, Opened: opened, ExpiresAt: opens.Add(time.Hour)}
		signs.Note(review.Tap{TemplateID: tpl.ID, UserID: by, ClaimID: int64(n + 1 + 70000), At: at, Pass: signKeys.Issue(p, by, tpl.ID), Address: address, Agent: agent})
	}
	// A pass of another drop belongs to a drop without protection.
	signs.Note(review.Tap{TemplateID: tpl.ID, UserID: 900, ClaimID: 1, At: opens, Pass: signKeys.Issue(pass.Pass{ExpiresAt: opens.Add(time.Hour)}, 900, tpl.ID+64)})
	signs.Refused(tpl.ID, "pass_required")
	signs.Refused(tpl.ID, "sold_out")
	signs.Refused(tpl.ID, "sold_out")
	signs.Close()
	signs.Note(review.Tap{TemplateID: tpl.ID}) // which changes nothing
	return tpl
}

// reviewed returns the only group of the drop.
func reviewed(w *fixture, s *review.Service, tpl template.Template) review.Review {
	w.Helper()
	list, err := s.Reviews(w.Context(), pgtest.Clerk, review.Query{TemplateID: tpl.ID, Limit: 10})
	w.Must(err)
	if len(list) != 1 {
		w.Fatalf("%d groups: %+v", len(list), list)
	}
	return list[0]
}

// worked carries out what was decided.
func worked(w *fixture, s couponsdb.Reviews) {
	w.Helper()
	for more := true; more; {
		var err error
		more, err = s.Work(w.Context())
		w.Must(err)
	}
}

func counted(w *fixture) {
	w.Helper()
	count(w, relayedSteps(w)...)
}

// TestReviewOfADrop follows a drop from the signs of its claims to the stock that came back.
func TestReviewOfADrop(t *testing.T) {
	w := newFixture(t)
	tpl, store := raided(w), couponsdb.NewReviews(w.DB)
	s := &review.Service{Store: store, Templates: w.Templates, Now: pgtest.Clock}
	if n := w.Number(`select count(*) from claim_signs`); n != 400 {
		t.Errorf("%d signs", n)
	}
	if n := w.Number(`select count(distinct network) from claim_signs where user_id <= 150`); n != 1 || w.Number(`select count(*) from claim_signs where network = 0 or agent = 0`) != 0 {
		t.Errorf("%d networks", n)
	}
	w.Exec(`insert into drop_openings (template_id, user_id, slot, channel, opened_at) values ($1, 151, 1, 1, now())`, tpl.ID)
	ran, err := store.RunDue(t.Context())
	again, err2 := store.RunDue(t.Context())
	if !ran || err != nil || again || err2 != nil {
		t.Fatalf("ran %v %v, again %v %v", ran, err, again, err2)
	}
	g := reviewed(w, s, tpl)
	if want := (review.Facts{Claims: scripted, Networks: 1, Agents: 1, From: 3, To: 9, Nothing: scripted}); g.Facts != want || g.Coupons != scripted || g.State != review.Open ||
		!slices.Contains(g.Rules, review.AtOnce) || !slices.Contains(g.Rules, review.NothingOpened) {
		t.Errorf("%+v", g)
	}

	// An order has used the coupon of user 1, and holds that of user 2.
	payments := &coupon.Service{Store: w.Payments, LockFor: time.Hour}
	owns := func(by int) int64 { return w.Number(`select id from coupons where user_id = $1`, by) }
	for by := 1; by <= 2; by++ {
		_, err := payments.Lock(t.Context(), "key:1", owns(by), coupon.Order{ID: "o", Amount: 1_000_000})
		w.Must(err)
	}
	_, err = payments.Confirm(t.Context(), "key:1", owns(1), "o")
	w.Must(err)

	// More than 100 coupons: a second member approves.
	g, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Suspend, "a script")
	if err != nil || g.State != review.Proposed {
		t.Fatalf("%+v %v", g, err)
	}
	if _, err := s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Approve, "me again"); !errors.Is(err, review.ErrSecond) {
		t.Errorf("the proposer approves: %v", err)
	}
	worked(w, store)
	if n := w.Number(`select count(*) from coupons where state = 'suspended'`); n != 0 {
		t.Errorf("%d coupons are suspended without approval", n)
	}
	g, err = s.Decide(t.Context(), another, g.ID, review.Approve, "I agree")
	if err != nil || g.State != review.Suspending {
		t.Fatalf("%+v %v", g, err)
	}
	// Two workers at once.
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for more := true; more; {
				var err error
				if more, err = store.Work(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	g = reviewed(w, s, tpl)
	if g.State != review.Suspended || g.Suspended != scripted-2 || g.Kept != 2 || w.Number(`select count(*) from coupons where state = 'suspended'`) != scripted-2 {
		t.Errorf("%+v", g)
	}
	w.off(tpl, false)
	counted(w)
	w.off(tpl, false)
	if y, err := w.Tallies.Tally(t.Context(), tpl.ID); err != nil || y.Suspended != scripted-2 || y.Sum() != y.Issued {
		t.Errorf("%+v %v", y, err)
	}
	if _, err := payments.Lock(t.Context(), "key:1", owns(3), coupon.Order{ID: "p", Amount: 1_000_000}); !errors.Is(err, coupon.ErrSuspended) {
		t.Errorf("a suspended coupon is locked: %v", err)
	}

	// Its owner reads why, and appeals once.
	if v, err := s.Standing(t.Context(), 3, owns(3)); err != nil || v.State != "suspended" {
		t.Errorf("%+v %v", v, err)
	}
	if _, err := s.Standing(t.Context(), 4, owns(3)); !errors.Is(err, review.ErrNotFound) {
		t.Errorf("another user reads it: %v", err)
	}
	w.Must(s.Appeal(t.Context(), 3, owns(3), "It was me."))
	if err := s.Appeal(t.Context(), 3, owns(3), "It was me."); !errors.Is(err, review.ErrAppealed) {
		t.Errorf("a second appeal: %v", err)
	}
	if err := s.Appeal(t.Context(), 1, owns(1), "x"); !errors.Is(err, review.ErrNotSuspended) {
		t.Errorf("an appeal about a used coupon: %v", err)
	}
	if _, err := s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Return, "a script"); !errors.Is(err, review.ErrAppeals) {
		t.Errorf("returned in spite of an appeal: %v", err)
	}
	w.Must(s.Answer(t.Context(), pgtest.Clerk, g.ID, owns(3), true, "a customer for years"))
	if err := s.Answer(t.Context(), pgtest.Clerk, g.ID, owns(3), true, "again"); !errors.Is(err, review.ErrNoAppeal) {
		t.Errorf("answered twice: %v", err)
	}
	steps, err := w.CouponSteps.Timeline(t.Context(), 3, tpl.ID)
	var kinds []reminder.StepKind
	for _, one := range steps {
		kinds = append(kinds, one.Kind)
	}
	if want := []reminder.StepKind{reminder.StepClaimed, reminder.StepCouponSuspended, reminder.StepCouponAppealed, reminder.StepCouponRestored}; err != nil || !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v, %v", kinds, want, err)
	}

	// The other coupons go back to the stock.
	g = reviewed(w, s, tpl)
	_, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Return, "a script")
	w.Must(err)
	_, err = s.Decide(t.Context(), another, g.ID, review.Approve, "I agree")
	w.Must(err)
	// A worker has revoked one and died.
	c, err := w.CouponSteps.Case(t.Context(), owns(4), "")
	w.Must(err)
	m, _ := c.TakeBack()
	_, err = w.CouponSteps.Save(t.Context(), m.Because("staff:8 Bo", "I agree"))
	w.Must(err)
	worked(w, store)
	g = reviewed(w, s, tpl)
	if g.State != review.Returned || g.Returned != scripted-3 || g.Restored != 1 || g.Suspended != 0 || w.Number(`select issued from templates where id = $1`, tpl.ID) != 400-(scripted-3) {
		t.Errorf("%+v", g)
	}
	counted(w)
	w.off(tpl, false)
	if l, err := w.Ledgers.Ledger(t.Context(), tpl.ID); err != nil || l.Difference() != 0 {
		t.Errorf("the stock is off by %d, %v", l.Difference(), err)
	}
	over, public, err := s.Fairness(t.Context(), tpl.ID)
	public.ReviewedAt = nil
	if want := (review.Counts{Entries: 400, Refused: 3, WithoutPass: 1, TakenBack: scripted - 3, Restored: 1}); err != nil || over || public != (review.Counts{}) {
		t.Errorf("%v %+v, want none before the end as stock is left: %+v, %v", over, public, want, err)
	}
	w.Exec(`update templates set closes_at = now() - interval '2 minutes' where id = $1`, tpl.ID)
	over, public, err = s.Fairness(t.Context(), tpl.ID)
	public.ReviewedAt = nil
	if want := (review.Counts{Entries: 400, Refused: 3, WithoutPass: 1, TakenBack: scripted - 3, Restored: 1}); err != nil || !over || public != want {
		t.Errorf("%v %+v, want %+v, %v", over, public, want, err)
	}
	right, err := s.Accuracies(t.Context(), pgtest.Clerk)
	if i := slices.IndexFunc(right, func(a review.Accuracy) bool { return a.Rule == review.AtOnce }); err != nil || i < 0 || right[i].Suspended != scripted-2 || right[i].Restored != 1 {
		t.Errorf("%+v %v", right, err)
	}
	// Another run leaves the decided group as it is.
	w.Must(s.Again(t.Context(), pgtest.Clerk, tpl.ID))
	if ran, err := store.RunDue(t.Context()); !ran || err != nil {
		t.Errorf("%v %v", ran, err)
	}
	if g := reviewed(w, s, tpl); g.State != review.Returned || g.Returned != scripted-3 {
		t.Errorf("%+v", g)
	}
	if n := w.Number(`select count(*) from audit where action like 'review.%'`); n != 6 {
		t.Errorf("%d audit records", n)
	}
	if told := w.Number(`select count(*) from outbox where topic = $1`, event.CouponsChanged); told != 0 {
		t.Errorf("%d events wait", told)
	}
}

// TestSuspensionIsUndone: within a day the whole group gets its coupons back, and a coupon whose time
// has passed meanwhile is expired.
func TestSuspensionIsUndone(t *testing.T) {
	w := newFixture(t)
	tpl, store := raided(w), couponsdb.NewReviews(w.DB)
	late := time.Duration(0)
	s := &review.Service{Store: store, Templates: w.Templates, Now: func() time.Time { return pgtest.Clock().Add(late) }}
	if ran, err := store.RunDue(t.Context()); !ran || err != nil {
		t.Fatal(ran, err)
	}
	g := reviewed(w, s, tpl)
	_, err := s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Suspend, "a script")
	w.Must(err)
	if _, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Decline, "no"); err != nil {
		t.Errorf("the proposer withdraws: %v", err)
	}
	_, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Suspend, "a script")
	w.Must(err)
	_, err = s.Decide(t.Context(), another, g.ID, review.Approve, "yes")
	w.Must(err)
	worked(w, store)
	w.Exec(`update coupons set expires_at = now() - interval '1 second' where user_id = 7`)
	if n, err := store.EndExpired(t.Context(), 10); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	late = 25 * time.Hour
	if _, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Restore, "a mistake"); !errors.Is(err, review.ErrLate) {
		t.Errorf("undone after a day: %v", err)
	}
	late = 23 * time.Hour
	_, err = s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Restore, "a mistake")
	w.Must(err)
	worked(w, store)
	g = reviewed(w, s, tpl)
	if g.State != review.Restored || g.Restored != scripted-1 || g.Kept != 1 || w.Number(`select count(*) from coupons where state = 'unused'`) != 399 ||
		w.Number(`select count(*) from coupons where state = 'expired' and user_id = 7`) != 1 {
		t.Errorf("%+v", g)
	}
	counted(w)
	w.off(tpl, false)
	// Decided twice at the same time, one decision stands.
	if _, err := s.Decide(t.Context(), pgtest.Clerk, g.ID, review.Suspend, "again"); !errors.Is(err, review.ErrState) {
		t.Errorf("a restored group is suspended: %v", err)
	}
}

// TestSignsWaitForTheDatabase: signs that could not be stored are stored later, each once, and claims
// do not wait for them.
func TestSignsWaitForTheDatabase(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(time.Hour)
	failed := make(chan int, 100)
	signs := couponsdb.NewSigns(w.DB, signKeys, couponsdb.SignsReport{Failed: func(_ error, waiting int) {
		select {
		case failed <- waiting:
		default:
		}
	}})
	w.Exec(`alter table claim_signs rename to claim_signs_away`)
	p := signKeys.Issue(pass.Pass{Way: pass.Phone, IssuedAt: pgtest.Clock(), ExpiresAt: pgtest.Clock().Add(time.Hour)}, 7, tpl.ID)
	tap := review.Tap{TemplateID: tpl.ID, UserID: 7, ClaimID: 1, At: pgtest.Clock(), Pass: p}
	signs.Note(tap)
	signs.Note(tap)
	signs.RefusedAt(tpl.ID, 2, "sold_out")
	signs.RefusedAt(tpl.ID, 2, "sold_out")
	if n := <-failed; n != 2 {
		t.Errorf("%d wait", n)
	}
	w.Exec(`alter table claim_signs_away rename to claim_signs`)
	signs.Close()
	if n := w.Number(`select count(*) from claim_signs where user_id = 7 and network = 0 and agent = 0 and not program`); n != 1 {
		t.Errorf("%d signs", n)
	}
	if n := w.Number(`select sum(claims) from door_refusals where template_id = $1 and door = 2 and code = 'sold_out'`, tpl.ID); n != 2 {
		t.Errorf("%d refused claims through the second door", n)
	}
}
