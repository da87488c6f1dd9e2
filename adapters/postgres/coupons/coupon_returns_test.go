package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/claim"
	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// decider returns the use cases of staff on the fixture.
func (h *claimFixture) decider() *coupon.Admin {
	return &coupon.Admin{Store: h.Payments}
}

// balanced recounts the stock and returns the ledger. The ledger, and the census
// too, must add up.
func (h *claimFixture) balanced(id int64) claim.Ledger {
	h.Helper()
	ledgers := couponsdb.NewLedgers(h.DB)
	selling, err := ledgers.Selling(h.Context(), time.Hour, 10, 100)
	for _, l := range selling {
		if l.Difference() != 0 {
			h.Errorf("the census: %+v is off by %d", l, l.Difference())
		}
	}
	l, err2 := ledgers.Ledger(h.Context(), id)
	if err := errors.Join(err, err2); err != nil || l.Difference() != 0 {
		h.Errorf("%+v is off by %d, %v", l, l.Difference(), err)
	}
	return l
}

// watched recounts the stock at least once, and repeatedly until end is called.
// The stock must add up each time. On a busy machine there may be few recounts.
func (h *claimFixture) watched(id int64) (end func()) {
	h.Helper()
	h.balanced(id)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-stop:
				return
			default:
				h.balanced(id)
			}
		}
	}()
	return func() {
		close(stop)
		<-ended
	}
}

// TestReturnedCouponIsForSaleAgain: another user gets the returned coupon; its
// former owner does not. A repeated return returns only one coupon.
func TestReturnedCouponIsForSaleAgain(t *testing.T) {
	h := newClaimFixture(t, 1)
	decider, drop := h.decider(), h.Open(2, 1, nil)
	first, err := h.Claim(t.Context(), claimtest.Tap(drop, 1, ""))
	h.Must(err)
	second, err := h.Claim(t.Context(), claimtest.Tap(drop, 2, ""))
	h.Must(err)
	if _, err := decider.Revoke(t.Context(), pgtest.Actor, second.CouponID, "fraud", false); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Claim(t.Context(), claimtest.Tap(drop, 3, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatalf("a coupon that was revoked without being returned was given again: %v", err)
	}
	for range 2 {
		if c, err := decider.Revoke(t.Context(), pgtest.Actor, first.CouponID, "wrong person", true); err != nil || c.State != coupon.Revoked || !c.Returned {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	// The first decision still holds.
	if c, err := decider.Revoke(t.Context(), pgtest.Actor, second.CouponID, "after all", true); err != nil || c.Returned {
		t.Fatalf("%+v, %v", c, err)
	}
	if l := h.balanced(drop.ID); l != (claim.Ledger{TemplateID: drop.ID, Total: 2, OnSale: 1, Issued: 1, Returned: 1, PerUser: 2}) {
		t.Fatalf("%+v", l)
	}
	if _, err := h.Claim(t.Context(), claimtest.Tap(drop, 1, "")); !errors.Is(err, claim.ErrLimit) {
		t.Fatalf("whoever lost it claims another: %v", err)
	}
	_, err = h.Claim(t.Context(), claimtest.Tap(drop, 3, ""))
	h.Must(err)
	if _, err := h.Claim(t.Context(), claimtest.Tap(drop, 4, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatalf("one was returned, two were given: %v", err)
	}
	h.balanced(drop.ID)
	if n := h.Number(`select count(*) from audit where action = 'coupon.revoke' and after->>'returned_to_stock' = 'true'`); n != 1 {
		t.Errorf("%d audit records of a return", n)
	}
	if n := h.Number(`select count(*) from outbox where topic = 'template.changed.v1' and payload->>'template_id' = $1::text`, fmt.Sprint(drop.ID)); n < 1 {
		t.Error("no node is told of it")
	}
}

// TestReturnRacesWithLocksAndClaims: a coupon is locked or returned, never both.
// Two concurrent returns return one coupon. The ledger adds up at all times.
func TestReturnRacesWithLocksAndClaims(t *testing.T) {
	h := newClaimFixture(t, 2)
	drop := h.Open(40, 1, nil)
	var ids []int64
	for by := user.ID(1); by <= 40; by++ {
		c, err := h.Claim(t.Context(), claimtest.Tap(drop, by, ""))
		h.Must(err)
		ids = append(ids, c.CouponID)
	}
	decider, steps := h.decider(), &coupon.Service{Store: pgtest.Payments(t, h.DB), LockFor: time.Hour}
	defer h.watched(drop.ID)()
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			if i == 0 {
				return // so that one is returned, however the others' races end
			}
			_, err := steps.Lock(t.Context(), "", id, coupon.Order{ID: "A", Amount: 5000})
			if err != nil && !errors.Is(err, coupon.ErrNotUsable) {
				t.Error(err)
			}
		})
		for range 2 {
			all.Go(func() {
				_, err := decider.Revoke(t.Context(), pgtest.Actor, id, "race", true)
				if err != nil && !errors.Is(err, coupon.ErrNotUsable) {
					t.Error(err)
				}
			})
		}
		all.Go(func() { _, _ = h.Claim(t.Context(), claimtest.Tap(drop, user.ID(1000+i), "")) })
	}
	all.Wait()
	returned := h.Number(`select count(*) from coupons where template_id = $1 and returned`, drop.ID)
	if n := h.Number(`select count(*) from coupons where template_id = $1 and returned and state <> 'revoked'`, drop.ID); n != 0 {
		t.Errorf("%d coupons were returned and are in use", n)
	}
	if n := h.Number(`select returned from templates where id = $1`, drop.ID); n != returned || n == 0 {
		t.Errorf("%d returned, %d counted", returned, n)
	}
	if n := h.Number(`select count(*) from coupons where template_id = $1 and not returned`, drop.ID); n > 40 {
		t.Errorf("%d coupons of a stock of 40 are out", n)
	}
	h.balanced(drop.ID)
}

// TestReturnThatIsBrokenOffChangesNothing: a process that dies before the commit
// has neither revoked nor returned the coupon; the next attempt does both.
func TestReturnThatIsBrokenOffChangesNothing(t *testing.T) {
	h := newClaimFixture(t, 1)
	drop := h.Open(1, 1, nil)
	c, err := h.Claim(t.Context(), claimtest.Tap(drop, 1, ""))
	h.Must(err)
	store := couponsdb.NewCouponSteps(h.DB)
	before, err := store.Case(t.Context(), c.CouponID, "")
	h.Must(err)
	to := before.Coupon
	to.State, to.Returned = coupon.Revoked, true
	move := coupon.Move{From: before.Coupon, To: to, ToStock: true,
		Entry: &staff.Entry{Actor: pgtest.Actor, Action: "coupon.revoke", ObjectKind: "coupon", ObjectID: fmt.Sprint(c.CouponID)},
		Ops:   []coupon.Operation{{CouponID: c.CouponID, Step: coupon.StepRevoke, From: coupon.Unused, To: coupon.Revoked}}}

	holder, err := h.SQL.Begin(t.Context())
	h.Must(err)
	// The audit log is written last: a transaction that waits for this lock has
	// done all its other writes.
	_, err = holder.Exec(t.Context(), `lock table audit in exclusive mode`)
	h.Must(err)
	ctx, die := context.WithCancel(t.Context())
	saved := make(chan error)
	go func() { _, err := store.Save(ctx, move); saved <- err }()
	for deadline := time.Now().Add(10 * time.Second); h.Number(`select count(*) from pg_locks where relation = 'audit'::regclass and not granted
		and database = (select oid from pg_database where datname = current_database())`) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the save does not come to its end")
		}
	}
	die()
	if err := <-saved; err == nil {
		t.Fatal("a save that was broken off says that it is stored")
	}
	h.Must(holder.Rollback(t.Context()))
	if l := h.balanced(drop.ID); l.Issued != 1 || l.Returned != 0 {
		t.Fatalf("%+v", l)
	}
	if c, err := h.decider().Revoke(t.Context(), pgtest.Actor, c.CouponID, "again", true); err != nil || !c.Returned {
		t.Fatalf("%+v, %v", c, err)
	}
	if l := h.balanced(drop.ID); l.OnSale != 1 || l.Returned != 1 {
		t.Fatalf("%+v", l)
	}
}

// TestRepetitionAfterAReturn: the prefilter knows the new owner of the returned
// coupon, although the drop is sold out as before.
func TestRepetitionAfterAReturn(t *testing.T) {
	h := newGuarded(t, 1)
	drop := h.Open(2, 1, nil)
	mine, err := h.Claim(t.Context(), claimtest.Tap(drop, 1, "k"))
	h.Must(err)
	_, err = h.Claim(t.Context(), claimtest.Tap(drop, 2, "k"))
	h.Must(err)
	h.forget(drop.ID)
	if _, err := h.Claim(t.Context(), claimtest.Tap(drop, 3, "k")); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatal(err) // the holders are remembered from here on
	}
	_, err = h.decider().Revoke(t.Context(), pgtest.Actor, mine.CouponID, "wrong person", true)
	h.Must(err)
	h.forget(drop.ID)
	got, err := h.Claim(t.Context(), claimtest.Tap(drop, 3, "k"))
	h.Must(err)
	h.forget(drop.ID)
	again, err := h.Claim(t.Context(), claimtest.Tap(drop, 3, "k"))
	if err != nil || again.CouponID != got.CouponID {
		t.Fatalf("the repetition got %+v, %v, want %+v", again, err, got)
	}
}
