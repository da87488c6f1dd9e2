package coupons_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
)

// returns are the programs that return coupons to the stock of a waitFixture.
type returns struct {
	*waitFixture
	orders   *coupon.Service
	notices  *coupon.Announcer
	returner *coupon.Returner
}

func newReturns(t *testing.T) returns {
	h := newWaitFixture(t)
	return returns{h, &coupon.Service{Store: h.Payments, LockFor: time.Hour}, &coupon.Announcer{Store: couponsdb.NewNotices(h.DB), Queue: &pgtest.MemoryQueue{}},
		&coupon.Returner{Store: couponsdb.NewCouponSteps(h.DB)}}
}

// step takes a step of an order with the coupon.
func (r returns) step(coupons int64, steps ...coupon.Step) {
	r.Helper()
	for _, s := range steps {
		var err error
		switch order := "A-1"; s {
		case coupon.StepLock:
			_, err = r.orders.Lock(r.Context(), "key:1 till", coupons, coupon.Order{ID: order, Amount: 2500})
		case coupon.StepConfirm:
			_, err = r.orders.Confirm(r.Context(), "key:1 till", coupons, order)
		case coupon.StepRelease:
			_, err = r.orders.Release(r.Context(), "key:1 till", coupons, order)
		case coupon.StepRefund:
			_, err = r.orders.Refund(r.Context(), "key:1 till", coupons, order)
		}
		r.Must(err)
	}
}

// pass lets the time pass until the coupons, or all of them, must be used, and returns them.
func (r returns) pass(coupons ...int64) {
	r.Helper()
	// Coupons are planned once all transactions that began before have ended, in all databases of the server.
	localstack.Eventually(r, "all coupons are planned", func() bool {
		r.Must(r.notices.Sweep(r.Context()))
		return r.Number(`select count(*) from notice_cursor where planned_to < (select max(id) from coupons)`) == 0
	})
	r.Exec(`update coupon_returns set due_at = now() where coupon_id = any($1) or cardinality($1::bigint[]) = 0`, append([]int64{}, coupons...))
	for range 2 {
		r.Must(r.returner.Sweep(r.Context()))
	}
}

func (r returns) coupon(id int64) coupon.Coupon {
	r.Helper()
	c, err := r.orders.Coupon(r.Context(), 0, id)
	r.Must(err)
	return c.Coupon
}

// TestUnusedCouponsReturn: a coupon that is not used in time goes to the user who waits. A coupon that an order holds
// returns once the order has released it; one that was used stays its owner's, also after a refund.
func TestUnusedCouponsReturn(t *testing.T) {
	r := newReturns(t)
	drop, coupons := r.soldOut(3, func(s *template.Spec) { s.UseWithinHours = 1 })
	r.join(drop.ID, 10, 11, 12)
	r.step(coupons[1], coupon.StepLock)
	r.step(coupons[2], coupon.StepLock, coupon.StepConfirm, coupon.StepRefund)
	r.pass()
	if l := r.whole(drop.ID); l.Held != 1 || l.Issued != 2 {
		t.Errorf("%+v", l)
	}
	if c := r.coupon(coupons[0]); c.State != coupon.Revoked || !c.Returned {
		t.Errorf("the unused coupon: %+v", c)
	}
	if c := r.coupon(coupons[2]); c.State != coupon.Unused {
		t.Errorf("the coupon that was used: %+v", c)
	}
	r.sweep()
	if got := r.states(drop.ID); got != "filled 10, waiting 11 12" {
		t.Fatal(got)
	}
	r.step(coupons[1], coupon.StepRelease)
	r.pass(coupons[1])
	r.sweep()
	if got := r.states(drop.ID); got != "filled 10 11, waiting 12" {
		t.Fatal(got)
	}
	r.Do(drop.ID, template.Closing)
	r.pass()
	if l := r.whole(drop.ID); l.Held != 0 || l.Issued != 3 {
		t.Errorf("a drop that is over took coupons back: %+v", l)
	}
	if n := r.Number(`select count(*) from coupon_returns`); n != 0 {
		t.Errorf("%d coupons are still due", n)
	}
}

// TestRefundsReturn: after a refund the coupon is the next user's, once, whatever is repeated. The refund itself waits
// for no lock of the drop, and is not undone.
func TestRefundsReturn(t *testing.T) {
	r := newReturns(t)
	drop, coupons := r.soldOut(1, func(s *template.Spec) { s.RefundTo = template.RefundToStock })
	r.join(drop.ID, 10)
	r.step(coupons[0], coupon.StepLock, coupon.StepConfirm, coupon.StepRefund, coupon.StepRefund)
	if c := r.coupon(coupons[0]); c.State != coupon.Revoked || c.Returned {
		t.Errorf("before its return: %+v", c)
	}
	if l := r.whole(drop.ID); l.Held != 0 || l.Issued != 1 {
		t.Errorf("before its return: %+v", l)
	}
	for range 2 {
		r.Must(r.returner.Sweep(t.Context()))
		r.sweep()
		r.step(coupons[0], coupon.StepRefund)
	}
	if got := r.states(drop.ID); got != "filled 10" {
		t.Error(got)
	}
	if l := r.whole(drop.ID); l.Held != 0 || l.Issued != 1 || l.Returned != 1 {
		t.Errorf("%+v", l)
	}
	if _, err := r.decider().UndoRefund(t.Context(), pgtest.Actor, coupons[0], "a mistake"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("the refund was undone: %v", err)
	}
	// The same coupon never comes back to the user from whom it was taken.
	r.Exec(`insert into waiters (template_id, user_id, joined_at) values ($1, 1, now())`, drop.ID)
	r.Exec(`update waitlists set joined = joined + 1, waiting = waiting + 1 where template_id = $1`, drop.ID)
	r.Raise(drop.ID, 2)
	r.sweep()
	if w, err := r.lists.Waiter(t.Context(), drop.ID, 1); err != nil || w.State != waitlist.Skipped || w.Reason != waitlist.ReasonTakenBack {
		t.Errorf("%+v, %v", w, err)
	}
	r.whole(drop.ID)
}
