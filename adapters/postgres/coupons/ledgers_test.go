package coupons_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestLedgerInTheRush recounts while three nodes sell: the ledger must add up at
// every recount.
func TestLedgerInTheRush(t *testing.T) {
	h := newClaimFixture(t, 3)
	ledgers := couponsdb.NewLedgers(h.DB)
	drop := h.Open(300, 2, nil)
	defer h.watched(drop.ID)()
	work := make(chan int)
	var done []chan struct{}
	for range 16 {
		end := make(chan struct{})
		done = append(done, end)
		go func() {
			defer close(end)
			for i := range work {
				_, _ = h.Claim(t.Context(), claimtest.Tap(drop, user.ID(1+i%200), ""))
			}
		}()
	}
	for i := range 800 {
		if i == 400 {
			h.Raise(drop.ID, 350)
		}
		work <- i
	}
	close(work)
	for _, end := range done {
		<-end
	}
	l, err := ledgers.Ledger(t.Context(), drop.ID)
	if want := (claim.Ledger{TemplateID: drop.ID, Total: 350, Issued: 350, PerUser: 350}); err != nil || l != want {
		t.Errorf("afterwards: %+v, %v, want %+v", l, err, want)
	}
}

func TestLedgerTellsWhatIsOff(t *testing.T) {
	h := newClaimFixture(t, 1)
	ledgers := couponsdb.NewLedgers(h.DB)
	drop := h.Open(10, 1, nil)
	for by := range user.ID(4) {
		claims(h, drop, by+1)
	}
	off := func(want int64) {
		t.Helper()
		l, err := ledgers.Ledger(t.Context(), drop.ID)
		if err != nil || l.Difference() != want {
			t.Errorf("%+v, %v is off by %d, want %d", l, err, l.Difference(), want)
		}
	}
	off(0)
	h.Exec(`update templates set issued = 3 where id = $1`, drop.ID)
	off(1)
	h.Exec(`update templates set issued = 4 where id = $1`, drop.ID)
	h.Exec(`update claim_counts set issued = 2 where template_id = $1 and user_id = 1`, drop.ID)
	off(2) // one more than there are, and one user over the limit
	h.Exec(`delete from coupons where template_id = $1 and user_id = 4`, drop.ID)
	off(4)
	h.Exec(`update templates set household_limit = 2 where id = $1`, drop.ID)
	h.Exec(`update claim_counts set household = 7 where template_id = $1 and user_id in (2, 3)`, drop.ID)
	off(4)
	h.Exec(`update claim_counts set household = 7 where template_id = $1 and user_id = 4`, drop.ID)
	off(5) // and one household over its limit
	if _, err := ledgers.Ledger(t.Context(), 999); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("no template: %v", err)
	}
}

// selling returns the census of the only template that is selling, or the zero
// value if none is.
func (h *claimFixture) selling(owners int) claim.Ledger {
	h.Helper()
	list, err := couponsdb.NewLedgers(h.DB).Selling(h.Context(), time.Hour, 10, owners)
	h.Must(err)
	if len(list) == 0 {
		return claim.Ledger{}
	}
	if len(list) > 1 {
		h.Fatalf("selling: %+v", list)
	}
	return list[0]
}

// counted takes the census until all coupons have been counted for good.
// Transactions in other databases of the server delay this too.
func (h *claimFixture) counted(owners int) (l claim.Ledger) {
	h.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		l = h.selling(owners)
		if h.Number(`select count(*) from stock_counts where counted_to >= (select max(id) from coupons)`) == 1 {
			return l
		}
	}
	h.Fatal("the coupons were never counted for good")
	return l
}

// TestSellingCountsCouponsOnce: the census reads only new coupons and is right at
// all times.
func TestSellingCountsCouponsOnce(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop, quiet := h.Open(10, 1, nil), h.Open(10, 1, nil)
	for by := range user.ID(4) {
		claims(h, drop, by+1)
	}
	want := claim.Ledger{TemplateID: drop.ID, Total: 10, OnSale: 6, Issued: 4, PerUser: 4}
	for range 3 {
		if l := h.counted(10); l != want {
			t.Fatalf("%+v, want %+v; template %d sold nothing", l, want, quiet.ID)
		}
	}
	h.Exec(`update templates set issued = 3 where id = $1`, drop.ID)
	if l := h.selling(10); l.Difference() != 1 {
		t.Errorf("one is missing on the template: %+v", l)
	}
	h.Exec(`update templates set issued = 4 where id = $1`, drop.ID)
	claims(h, drop, 5)
	if l := h.selling(10); l.Difference() != 0 || l.Issued != 5 {
		t.Errorf("a new one is counted at once: %+v", l)
	}
	h.Exec(`delete from coupons where user_id = 5`)
	if l := h.selling(10); l.Difference() == 0 {
		t.Errorf("a new one is lost: %+v", l)
	}
	h.Exec(`update templates set issued = 4 where id = $1`, drop.ID)
	h.Exec(`delete from claim_counts where user_id = 5`)
	h.Exec(`update claim_seconds set second = second - interval '2 hours'`)
	if l := h.counted(10); l != want && l != (claim.Ledger{}) {
		t.Errorf("%+v", l)
	}
	// Open transactions of other tests put the last check off.
	l := h.selling(10)
	for end := time.Now().Add(20 * time.Second); l != (claim.Ledger{}) && time.Now().Before(end); {
		l = h.selling(10)
	}
	if l != (claim.Ledger{}) {
		t.Errorf("sold long ago and checked: %+v", l)
	}
}

// TestSellingWaitsForOpenTransactions: a coupon is counted even if its id was
// drawn before the ids of other coupons and its transaction commits after theirs.
func TestSellingWaitsForOpenTransactions(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(10, 1, nil)
	claims(h, drop, 1)
	_, commit := h.Hold(`with c as (insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		values ($1, 2, 2, 'claim', now(), now() + interval '1 hour')) insert into claim_counts values ($1, 2, 1)`, drop.ID)
	claims(h, drop, 3)
	for range 3 {
		if l := h.selling(10); l.Difference() != 0 || l.Issued != 2 {
			t.Fatalf("before the commit: %+v", l)
		}
	}
	commit()
	h.Exec(`update templates set issued = issued + 1 where id = $1`, drop.ID)
	for range 2 {
		if l := h.counted(10); l.Difference() != 0 || l.Issued != 3 {
			t.Errorf("after the commit: %+v", l)
		}
	}
}

// TestSellingIsDelayedOnlyByOlderTransactions: transactions that begin after the
// coupons were seen do not delay the final count, even if they overlap all the
// time.
func TestSellingIsDelayedOnlyByOlderTransactions(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(10, 1, nil)
	claims(h, drop, 1)
	hold := func() (commit func()) {
		_, commit = h.Hold(`select pg_current_xact_id()`)
		return commit
	}
	older := hold()
	h.selling(10)
	newer := hold()
	defer newer()
	h.selling(10)
	older()
	h.counted(10)
}

// TestSellingChecksOwnersByAndBy: each call checks a few owners. Owners with a
// difference are checked again by every call, however long ago their coupons were
// sold.
func TestSellingChecksOwnersByAndBy(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(100, 2, nil)
	for by := range user.ID(9) {
		claims(h, drop, by+1)
	}
	h.counted(0)
	checked := func() int64 {
		return h.Number(`select count(*) from coupons where id <= (select checked_to from stock_counts)`)
	}
	for _, want := range []int64{4, 8, 9, 9} {
		if l := h.selling(4); l.Difference() != 0 || checked() != want {
			t.Errorf("checked %d, want %d: %+v", checked(), want, l)
		}
	}
	claims(h, drop, 10)
	claims(h, drop, 11)
	h.Exec(`update claim_counts set issued = 3 where user_id = 11`)
	h.counted(0)
	h.Exec(`update claim_seconds set second = second - interval '2 hours'`)
	for range 3 {
		if l := h.selling(4); l.Difference() != 3 || l.OverLimit != 1 || checked() != 9 { // two too many, and over the limit
			t.Errorf("checked %d: %+v", checked(), l)
		}
	}
	h.Exec(`delete from claim_counts where user_id = 11`)
	if l := h.selling(4); l.Difference() != 1 {
		t.Errorf("without a count: %+v", l)
	}
	h.Exec(`insert into claim_counts values ($1, 11, 1)`, drop.ID)
	if l := h.selling(4); l.Difference() != 0 || checked() != 11 {
		t.Errorf("checked %d: %+v", checked(), l)
	}
	if l := h.selling(4); l != (claim.Ledger{}) {
		t.Errorf("nothing is left: %+v", l)
	}
}

func claims(h *claimFixture, drop template.Template, by user.ID) {
	h.Helper()
	_, err := h.Claim(h.Context(), claimtest.Tap(drop, by, ""))
	h.Must(err)
}

func TestCurveAndPace(t *testing.T) {
	h := newClaimFixture(t, 1)
	ledgers := couponsdb.NewLedgers(h.DB)
	drop := h.Open(1000, 1, nil)
	if c, err := ledgers.Curve(t.Context(), drop.ID, 100); err != nil || len(c.Points) != 0 {
		t.Errorf("nothing sold: %+v, %v", c, err)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for second, n := range map[int]int{0: 500, 1: 200, 2: 50, 7: 5, 199: 1} {
		h.Exec(`insert into claim_seconds values ($1, $2, $3)`, drop.ID, at.Add(time.Duration(second)*time.Second), n)
	}
	c, err := ledgers.Curve(t.Context(), drop.ID, 100)
	if err != nil || c.Width != 2*time.Second || len(c.Points) != 100 || c.Total() != 756 {
		t.Fatalf("width %v, %d points, %d in all, %v", c.Width, len(c.Points), c.Total(), err)
	}
	for i, want := range map[int]claim.Point{0: {At: at, Issued: 700, Total: 700}, 1: {At: at.Add(2 * time.Second), Issued: 50, Total: 750},
		3: {At: at.Add(6 * time.Second), Issued: 5, Total: 755}, 50: {At: at.Add(100 * time.Second), Total: 755},
		99: {At: at.Add(198 * time.Second), Issued: 1, Total: 756}} {
		if got := c.Points[i]; !got.At.Equal(want.At) || got.Issued != want.Issued || got.Total != want.Total {
			t.Errorf("point %d is %+v, want %+v", i, got, want)
		}
	}
	if fine, err := ledgers.Curve(t.Context(), drop.ID, 1000); err != nil || fine.Width != time.Second || len(fine.Points) != 200 {
		t.Errorf("second by second: %v, %d points, %v", fine.Width, len(fine.Points), err)
	}
	if most, second := c.Peak(); most != 500 || !second.Equal(at) {
		t.Errorf("of steps of two seconds the second with most has %d at %v, want 500 at %v", most, second, at)
	}
	h.Exec(`delete from claim_seconds`)
	began := time.Now()
	h.Exec(`insert into claim_seconds select $1, date_trunc('second', now()) - n * interval '1 second', n from generate_series(1, 90) n`, drop.ID)
	pace, err := ledgers.Pace(t.Context(), drop.ID, began.Add(-time.Hour), 60)
	passed := int64(time.Since(began)/time.Second) + 1 // and the fraction of a second
	if err != nil || len(pace) != 60 || pace[10]-pace[11] != 1 || pace[0] < 59-passed || pace[0] > 60 {
		t.Errorf("pace: %v, %v", pace, err)
	}
	young, err := ledgers.Pace(t.Context(), drop.ID, began.Add(-3*time.Second), 60)
	passed = int64(time.Since(began)/time.Second) + 1
	if n := int64(len(young)); err != nil || n < 3 || n > 3+passed || young[0]-young[1] != 1 {
		t.Errorf("pace three seconds after the opening: %v, %v", young, err)
	}
	if ahead, err := ledgers.Pace(t.Context(), drop.ID, began.Add(time.Hour), 60); err != nil || len(ahead) != 0 {
		t.Errorf("pace before the opening: %v, %v", ahead, err)
	}
}

// TestGoneOnce: the stock is gone when it was given for the first time, whatever was added and what the waitlist gave later.
func TestGoneOnce(t *testing.T) {
	h := newClaimFixture(t, 1)
	ledgers := couponsdb.NewLedgers(h.DB)
	drop := h.Open(20, 1, nil)
	now := time.Now().UTC().Truncate(time.Second)
	sell := func(ago time.Duration, issued, waited int) {
		h.Exec(`insert into claim_seconds values ($1, $2, $3, $4)`, drop.ID, now.Add(-ago), issued, waited)
	}
	sell(50*time.Second, 12, 0)
	if c, err := ledgers.Curve(t.Context(), drop.ID, 100); err != nil || !c.GoneAt.IsZero() {
		t.Errorf("with coupons left: %v, %v", c.GoneAt, err)
	}
	sell(48*time.Second, 8, 0)
	h.Raise(drop.ID, 25)
	h.Exec(`update audit set at = $2 where object_id = $1::bigint::text and action = 'template.edit'`, drop.ID, now.Add(-20*time.Second))
	sell(10*time.Second, 2, 2)
	sell(9*time.Second, 1, 0)
	c, err := ledgers.Curve(t.Context(), drop.ID, 100)
	if want := now.Add(-47 * time.Second); err != nil || !c.GoneAt.Equal(want) || c.Total() != 21 {
		t.Errorf("gone at %v with %d coupons, %v; want %v with 21", c.GoneAt, c.Total(), err, want)
	}
	if pace, err := ledgers.Pace(t.Context(), drop.ID, now.Add(-time.Hour), 60); err != nil || slices.Max(pace) != 12 {
		t.Errorf("pace %v, %v", pace, err)
	}
}
