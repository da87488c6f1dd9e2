package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

func TestCouponIsPaidWith(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	before := pgtest.Clock()
	c, err := p.lock(id, "A")
	p.Must(err)
	if got := c.Coupon; got.State != coupon.Locked || got.OrderID != "A" || got.Discount != 1000 || got.LockedAt == nil ||
		got.LockedUntil.Sub(*got.LockedAt) != time.Hour || got.LockedAt.Before(before.Add(-time.Minute)) {
		t.Fatalf("locked: %+v", got)
	}
	until := *c.Coupon.LockedUntil
	if c, err = p.lock(id, "A"); err != nil || !c.Coupon.LockedUntil.Equal(until) || c.Coupon.Discount != 1000 {
		t.Fatalf("repeated: %+v, %v", c.Coupon, err)
	}
	for range 2 {
		c, err = p.steps.Confirm(p.Context(), "key:1 till", id, "A")
		if err != nil || c.Coupon.UsedAt == nil {
			t.Fatalf("confirmed: %+v, %v", c.Coupon, err)
		}
		want := c.Coupon
		want.State, want.OrderID, want.Discount = coupon.Used, "A", 1000
		if diff := cmp.Diff(want, c.Coupon); diff != "" {
			t.Fatalf("confirmed (-want +got):\n%s", diff)
		}
	}
	if c, err = p.lock(id, "A"); err != nil || c.Coupon.State != coupon.Used {
		t.Fatalf("a lock that is repeated late: %+v, %v", c.Coupon, err)
	}
	if _, err = p.steps.Release(p.Context(), "", id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("released after confirmation: %v", err)
	}
	for range 2 {
		c, err = p.steps.Refund(p.Context(), "key:1 till", id, "A")
		if err != nil {
			t.Fatal(err)
		}
		want := c.Coupon
		want.State, want.OrderID, want.UsedAt, want.Discount = coupon.Unused, "", nil, 0
		if diff := cmp.Diff(want, c.Coupon); diff != "" {
			t.Fatalf("refunded (-want +got):\n%s", diff)
		}
	}
	if _, err = p.lock(id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("an order locks once: %v", err)
	}
	_, err = p.lock(id, "B")
	p.Must(err)

	ops, err := p.store.Operations(p.Context(), id, 100)
	p.Must(err)
	var log []string
	for _, o := range ops {
		log = append(log, fmt.Sprintf("%s %s %s", o.OrderID, o.Step, o.Outcome))
	}
	want := "A lock done, A confirm done, A release confirmed, A refund done, A lock lock_ended, B lock done"
	if got := strings.Join(log, ", "); got != want {
		t.Fatalf("log %s\nwant %s", got, want)
	}
	p.tally(coupon.Tally{Issued: 1, Locked: 1, Refunded: 1})
}

func TestCouponReleaseThatOvertakesItsLock(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	for range 2 {
		if c, err := p.steps.Release(p.Context(), "", id, "A"); err != nil || c.Coupon.State != coupon.Unused {
			t.Fatalf("%+v, %v", c.Coupon, err)
		}
	}
	if _, err := p.lock(id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("locked after its release: %v", err)
	}
	if _, err := p.lock(id, "B"); err != nil {
		t.Fatalf("the tombstone is A's alone: %v", err)
	}
	// A release that arrives before its lock counts even while another order
	// holds the coupon.
	if c, err := p.steps.Release(p.Context(), "", id, "C"); err != nil || c.Coupon.OrderID != "B" {
		t.Fatalf("%+v, %v", c.Coupon, err)
	}
	_, err := p.steps.Release(p.Context(), "", id, "B")
	p.Must(err)
	if _, err := p.lock(id, "C"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("C: %v", err)
	}
}

func TestCouponRefusals(t *testing.T) {
	p := newPaymentFixture(t)
	ctx := p.Context()
	id := p.issue()
	usable := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, coupon.ErrNotUsable) || fault.CodeOf(err) != "coupon_not_usable" {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := p.steps.Confirm(ctx, "", id, "A")
	usable("confirm without a lock", err)
	_, err = p.steps.Refund(ctx, "", id, "A")
	usable("refund without a use", err)
	_, err = p.steps.Lock(ctx, "", id, coupon.Order{ID: "A", Amount: 2500, UserID: 8})
	usable("somebody else's", err)
	if _, err := p.lock(404, "A"); !errors.Is(err, coupon.ErrNotFound) {
		t.Errorf("unknown coupon: %v", err)
	}
	if _, err := p.steps.Coupon(ctx, 8, id); !errors.Is(err, coupon.ErrNotFound) {
		t.Errorf("shown to somebody else: %v", err)
	}
	if _, err := p.steps.Confirm(ctx, "", id, "no spaces"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("bad order id: %v", err)
	}
	_, err = p.steps.Lock(ctx, "", id, coupon.Order{ID: "A", Amount: 2500, UserID: 7})
	p.Must(err)
	if _, err := p.steps.Lock(ctx, "", id, coupon.Order{ID: "A", Amount: 2501}); fault.CodeOf(err) != "idempotency_conflict" {
		t.Errorf("repeated with another amount: %v", err)
	}
	_, err = p.lock(id, "B")
	usable("locked for another order", err)
	_, err = p.steps.Refund(ctx, "", id, "A")
	usable("refund of a lock", err)
	_, err = p.steps.Confirm(ctx, "", id, "B")
	usable("confirmed by another order", err)

	late := p.issue()
	p.expireNow(late)
	_, err = p.lock(late, "A")
	usable("expired although no sweep has run", err)
	if n := p.Number(`select count(*) from coupons where id = $1 and state = 'unused'`, late); n != 1 {
		t.Error("the refusal changed the coupon")
	}
}

// TestCouponExpiresWhileLockWaits: the coupon may expire between the check and
// the lock. The statement that locks the coupon reads the clock again.
func TestCouponExpiresWhileLockWaits(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	c, err := p.store.Case(p.Context(), id, "A")
	p.Must(err)
	to := c.Coupon
	to.State, to.OrderID, to.Discount = coupon.Locked, "A", 1000
	p.expireNow(id)
	_, err = p.store.Save(p.Context(), coupon.Move{From: c.Coupon, To: to, LockFor: time.Hour,
		Ops: []coupon.Operation{{CouponID: id, OrderID: "A", Step: coupon.StepLock, From: coupon.Unused, To: coupon.Locked}}})
	if !errors.Is(err, coupon.ErrRaced) {
		t.Fatalf("locked an expired coupon: %v", err)
	}
	if n := p.Number(`select count(*) from coupon_operations where coupon_id = $1`, id); n != 0 {
		t.Fatal("a step that was not taken is in the log")
	}
}

func TestCouponLockTimesOut(t *testing.T) {
	p := newPaymentFixture(t)
	ctx := p.Context()
	first, bySweep, byLock := p.issue(), p.issue(), p.issue()
	for _, id := range []int64{first, bySweep, byLock} {
		_, err := p.lock(id, "A")
		p.Must(err)
	}
	if n, err := p.store.EndLocks(ctx, 100); err != nil || n != 0 {
		t.Fatalf("too early: %d, %v", n, err)
	}
	// The other order takes the coupon over although no sweep has released it.
	p.runOut(byLock)
	if c, err := p.lock(byLock, "B"); err != nil || c.Coupon.OrderID != "B" {
		t.Fatalf("%+v, %v", c.Coupon, err)
	}
	p.runOut(first)
	for _, want := range []int{1, 0} {
		if n, err := p.store.EndLocks(ctx, 100); err != nil || n != want {
			t.Fatalf("swept %d, %v, want %d", n, err, want)
		}
	}
	p.runOut(bySweep)
	p.expireNow(bySweep)
	if n, err := p.store.EndLocks(ctx, 100); err != nil || n != 1 {
		t.Fatalf("swept %d, %v", n, err)
	}
	if a, b := p.state(first).State, p.state(bySweep).State; a != coupon.Unused || b != coupon.Expired {
		t.Fatalf("after the time-out: %s, %s", a, b)
	}
	for _, id := range []int64{first, bySweep, byLock} {
		if _, err := p.steps.Confirm(ctx, "", id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Errorf("confirmed after the time-out: %v", err)
		}
		if n := p.Number(`select count(*) from coupon_operations where coupon_id = $1 and order_id = 'A' and step = 'timeout' and outcome = 'done'`, id); n != 1 {
			t.Errorf("%d time-outs in the log", n)
		}
		if _, err := p.steps.Release(ctx, "", id, "A"); err != nil {
			t.Errorf("a release after the time-out is done already: %v", err)
		}
	}
	p.tally(coupon.Tally{Issued: 3, Locked: 1, Expired: 1, Released: 3})
}

// TestCouponConfirmAfterItsTime: the lock has run out but was not released, so no
// other order has taken the coupon, and the customer has paid. The confirmation
// succeeds.
func TestCouponConfirmAfterItsTime(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	_, err := p.lock(id, "A")
	p.Must(err)
	p.runOut(id)
	p.expireNow(id)
	if c, err := p.steps.Confirm(p.Context(), "", id, "A"); err != nil || c.Coupon.State != coupon.Used {
		t.Fatalf("%+v, %v", c.Coupon, err)
	}
	if c, err := p.steps.Refund(p.Context(), "", id, "A"); err != nil || c.Coupon.State != coupon.Expired {
		t.Fatalf("refunded after its time: %+v, %v", c.Coupon, err)
	}
}

func TestCouponsExpireInGroups(t *testing.T) {
	p := newPaymentFixture(t)
	for i := range 25 {
		if id := p.issue(); i%5 != 0 {
			p.expireNow(id)
		}
	}
	p.Exec(`update coupons set expires_at = date_trunc('second', now()) - interval '1 hour' where expires_at <= now() and id % 2 = 0`) // at one instant
	var swept atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			var behind couponsdb.ExpiryCursor
			for {
				n, last, err := p.store.Expire(p.Context(), behind, 3)
				if err != nil {
					p.Error(err)
				}
				if swept.Add(int64(n)); n == 0 {
					return
				}
				behind = last
			}
		})
	}
	all.Wait()
	if swept.Load() != 20 || p.Number(`select count(*) from coupons where state = 'expired'`) != 20 ||
		p.Number(`select count(*) from coupon_operations where step = 'expire'`) != 20 {
		t.Fatalf("%d expired", swept.Load())
	}
	if n := p.Number(`select count(*) from outbox where topic = 'coupons.expired.v1'`); n < 7 || n > 20 {
		t.Fatalf("%d events; one per group, none for an empty one", n)
	}
	p.tally(coupon.Tally{Issued: 25, Expired: 20})
}

// TestExpiryPassesOverHeldCoupons: a coupon that another transaction has locked
// stays behind the cursor. A sweep from the beginning finds the coupon.
func TestExpiryPassesOverHeldCoupons(t *testing.T) {
	p := newPaymentFixture(t)
	ids := []int64{p.issue(), p.issue(), p.issue()}
	p.Exec(`update coupons set expires_at = now() - interval '1 hour'`)
	_, release := p.Hold(`select from coupons where id = $1 for update`, ids[0])
	n, last, err := p.store.Expire(t.Context(), couponsdb.ExpiryCursor{}, 1)
	if p.Must(err); n != 1 || last.ID != ids[1] {
		t.Fatalf("%d expired, up to %d, want the second one", n, last.ID)
	}
	release()
	if left, late, err := p.store.Overdue(t.Context(), last, 10); err != nil || left != 1 || late < time.Hour {
		t.Errorf("behind the second: %d overdue for %v, %v", left, late, err)
	}
	if left, _, err := p.store.Overdue(t.Context(), couponsdb.ExpiryCursor{}, 1); err != nil || left != 1 {
		t.Errorf("counted %d of 2 with a limit of 1, %v", left, err)
	}
	if n, last, err = p.store.Expire(t.Context(), last, 10); err != nil || n != 1 || last.ID != ids[2] {
		t.Errorf("%d expired behind the second, up to %d, %v", n, last.ID, err)
	}
	if n, again, err := p.store.Expire(t.Context(), last, 10); err != nil || n != 0 || again != last {
		t.Errorf("%d expired at the end, cursor %v, %v", n, again, err)
	}
	if n, _, err := p.store.Expire(t.Context(), couponsdb.ExpiryCursor{}, 10); err != nil || n != 1 || p.state(ids[0]).State != coupon.Expired {
		t.Errorf("%d expired from the beginning, %v", n, err)
	}
}

// TestTallyKnowsTheClock: all coupons have expired, but no expiry is stored yet.
// One coupon is locked, and counts as locked until its lock ends.
func TestTallyKnowsTheClock(t *testing.T) {
	p := newPaymentFixture(t)
	ids := []int64{p.issue(), p.issue(), p.issue()}
	_, err := p.lock(ids[0], "A")
	p.Must(err)
	for _, c := range []struct {
		about, change string
		expired       int64
	}{
		{"valid hours are not over", `insert into claim_seconds select id, date_trunc('second', now()) - interval '47 hours', 3 from templates`, 0},
		{"the last coupon's hours are over", `update claim_seconds set second = second - interval '2 hours'`, 2},
		{"a coupon came later", `insert into claim_seconds select id, date_trunc('second', now()), 1 from templates`, 0},
		{"a fixed end is ahead", `update templates set valid_hours = 0, valid_until = now() + interval '1 hour'`, 0},
		{"a fixed end is over", `update templates set valid_until = now() - interval '1 second'`, 2},
	} {
		p.Exec(c.change)
		p.relay()
		got, err := p.tallies.Tally(t.Context(), p.drop.ID)
		if want := (coupon.Tally{Issued: 3, Locked: 1, Expired: c.expired}); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", c.about, got, err, want)
		}
	}
	p.Exec(`update coupons set expires_at = now() - interval '1 second'`)
	_, _, err = p.store.Expire(t.Context(), couponsdb.ExpiryCursor{}, 10)
	p.Must(err)
	p.tally(coupon.Tally{Issued: 3, Locked: 1, Expired: 2})
}

func TestDeskReleasesAndRevokes(t *testing.T) {
	p := newPaymentFixture(t)
	ctx := p.Context()
	operator := staff.Actor{Label: "staff:1", Name: "Op", Role: staff.Operator}
	id := p.issue()
	_, err := p.lock(id, "A")
	p.Must(err)
	if _, err := p.decider.Revoke(ctx, operator, id, "fraud", false); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("revoked while locked: %v", err)
	}
	for what, by := range map[string]staff.Actor{"a marketer": {Label: "staff:2", Role: staff.Marketer},
		"an operator of another shop": {Label: "staff:3", Role: staff.Operator, Shops: []int64{11}}} {
		if _, err := p.decider.Release(ctx, by, id, "A", "stuck"); fault.KindOf(err) != fault.Denied {
			t.Errorf("%s released: %v", what, err)
		}
	}
	if _, err := p.decider.Release(ctx, operator, id, "A", ""); fault.KindOf(err) != fault.Invalid {
		t.Errorf("without a reason: %v", err)
	}
	if _, err := p.decider.Release(ctx, operator, id, "B", "stuck"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("another order's lock: %v", err)
	}
	for range 2 {
		if c, err := p.decider.Release(ctx, operator, id, "A", "stuck"); err != nil || c.State != coupon.Unused {
			t.Fatalf("%+v, %v", c, err)
		}
		if _, err = p.steps.Confirm(ctx, "", id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Fatalf("confirmed after the operator's release: %v", err)
		}
	}
	for range 2 {
		if c, err := p.decider.Revoke(ctx, operator, id, "fraud", false); err != nil || c.State != coupon.Revoked {
			t.Fatalf("%+v, %v", c, err)
		}
	}
	if _, err := p.lock(id, "C"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Fatalf("locked a revoked coupon: %v", err)
	}
	if n := p.Number(`select count(*) from audit where object_kind = 'coupon' and object_id = $1::text and reason in ('stuck', 'fraud')
		and shop_number = 10 and before is not null and after is not null`, fmt.Sprint(id)); n != 2 {
		t.Fatalf("%d audit records", n)
	}
	list, err := p.decider.List(ctx, operator, coupon.Query{OrderID: "A", Limit: 10})
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Fatalf("by an order that is over: %+v, %v", list, err)
	}
	p.tally(coupon.Tally{Issued: 1, Revoked: 1, Released: 1})
}

// TestCouponHasOneHolder runs many orders and repetitions at once. At any time at
// most one order holds the coupon, and the log agrees.
func TestCouponHasOneHolder(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	second := &coupon.Service{Store: pgtest.Payments(t, p.secondDB()), LockFor: time.Hour}
	var winners atomic.Int64
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			s := p.steps
			if i%2 == 1 {
				s = second
			}
			_, err := s.Lock(context.WithoutCancel(p.Context()), "", id, coupon.Order{ID: fmt.Sprint("order-", i/3), Amount: 2500})
			if err == nil {
				winners.Add(1)
			} else if !errors.Is(err, coupon.ErrNotUsable) {
				p.Error(err)
			}
		})
	}
	all.Wait()
	c := p.state(id)
	if c.State != coupon.Locked || winners.Load() != 3 { // one order, asked for three times
		t.Fatalf("%d locks succeeded; %+v", winners.Load(), c)
	}
	if n := p.Number(`select count(*) from coupon_operations where coupon_id = $1 and step = 'lock' and outcome = 'done'`, id); n != 1 {
		t.Fatalf("%d locks in the log", n)
	}
}

// TestCouponLockAgainstRelease: a lock and its release at the same time leave the
// coupon free, whichever comes first.
func TestCouponLockAgainstRelease(t *testing.T) {
	p := newPaymentFixture(t)
	for range 60 {
		id := p.issue()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := p.lock(id, "A"); err != nil && !errors.Is(err, coupon.ErrNotUsable) {
				p.Error(err)
			}
		})
		all.Go(func() {
			if _, err := p.steps.Release(p.Context(), "", id, "A"); err != nil {
				p.Error(err)
			}
		})
		all.Wait()
		if c := p.state(id); c.State != coupon.Unused {
			t.Fatalf("left locked: %+v", c)
		}
	}
}
