package coupons_test

import (
	"strconv"
	"strings"
	"testing"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestExplainTellsOfNotices explains a notice before it is sent, after it is
// sent, and when it was not sent in time.
func TestExplainTellsOfNotices(t *testing.T) {
	b := newNoticeFixture(t, 1)
	b.app.Answer = func(m delivery.Message, _ int) delivery.Result {
		if m.To.ID == 2 {
			return delivery.Result{Status: delivery.Permanent, Detail: "gone"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	explainer := &reminder.Explainer{Store: b.Reservations, Coupons: couponsdb.NewCouponSteps(b.DB), Reminders: &reminder.Service{Store: b.Reservations, Templates: b.Templates, Now: pgtest.Clock}}
	tells := func(id user.ID, want string) {
		t.Helper()
		line, err := explainer.Explain(t.Context(), id, b.drop.ID)
		b.Must(err)
		if got := pgtest.Story(line.Steps); got != want {
			t.Errorf("user %d:\n got %s\nwant %s", id, got, want)
		}
	}
	b.own(b.drop, 1, 2)
	b.planned(2)
	tells(1, "claimed claim, expected notice")
	b.Exec(`update coupons set state = 'used' where user_id = 1`)
	tells(1, "claimed claim")
	b.Exec(`update coupons set state = 'unused' where user_id = 1`) // refunded
	tells(1, "claimed claim, expected notice")
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	tells(1, "claimed claim, announced app0 notice, announced webhook0 notice, outcome app0 notice sent, outcome webhook0 notice sent")
	tells(2, "claimed claim, announced app0 notice, announced webhook0 notice, tried app0 notice 1× refused_by_provider gone, "+
		"outcome app0 notice dead refused_by_provider gone, outcome webhook0 notice sent")
	b.own(b.drop, 3)
	b.planned(3)
	b.Exec(`update notices set expires_at = clock_timestamp() where user_id = 3`)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	tells(3, "outcome notice expired deadline, claimed claim") // it was due, they say, before
	b.own(b.drop, 4)
	b.planned(4)
	b.sleeps(4)
	b.comeDue()
	b.Must(b.announcer.Sweep(t.Context()))
	b.deliver()
	b.wake()
	tells(4, "claimed claim, announced app0 notice, announced webhook0 notice, "+
		"outcome app0 notice sent quiet_hours, outcome webhook0 notice sent quiet_hours") // nothing had failed
}

// life returns the user's coupons in one line each.
func (p *paymentFixture) life() map[int64]string {
	p.Helper()
	steps, err := couponsdb.NewCouponSteps(p.DB).Timeline(p.Context(), 7, p.drop.ID)
	p.Must(err)
	lines := map[int64][]string{}
	for i, s := range steps {
		if s.At.IsZero() || i > 0 && s.CouponID == steps[i-1].CouponID && s.At.Before(steps[i-1].At) {
			p.Errorf("step %+v", s)
		}
		lines[s.CouponID] = append(lines[s.CouponID], strings.TrimSuffix(string(s.Kind)+" "+s.OrderID, " "))
	}
	out := map[int64]string{}
	for id, l := range lines {
		out[id] = strings.Join(l, ", ")
	}
	return out
}

// TestExplainFollowsCoupons: the explanation lists every change of a coupon once,
// and no refusals or repetitions.
func TestExplainFollowsCoupons(t *testing.T) {
	p := newPaymentFixture(t)
	ids := make([]int64, 6)
	for i := range ids {
		ids[i] = p.issue()
	}
	locked := func(i int) (order string) {
		order = "order-" + strconv.Itoa(i)
		for range 2 { // repeated
			_, err := p.lock(ids[i], order)
			p.Must(err)
		}
		return order
	}
	step := func(take func() error) { t.Helper(); p.Must(take()) }

	paid := locked(0)
	if _, err := p.lock(ids[0], "another"); err == nil {
		t.Fatal("locked twice")
	}
	step(func() error { _, err := p.steps.Confirm(t.Context(), "key:1 till", ids[0], paid); return err })
	step(func() error { _, err := p.steps.Refund(t.Context(), "key:1 till", ids[0], paid); return err })

	back := locked(1)
	step(func() error { _, err := p.steps.Release(t.Context(), "key:1 till", ids[1], back); return err })

	locked(2)
	p.runOut(ids[2])
	step(func() error { _, err := p.store.EndLocks(t.Context(), 10); return err })

	p.expireNow(ids[3])
	step(func() error { _, _, err := p.store.Expire(t.Context(), couponsdb.ExpiryCursor{}, 10); return err })

	step(func() error {
		_, err := p.decider.Revoke(t.Context(), staff.System(), ids[4], "by mistake", false)
		return err
	})

	late := locked(5)
	step(func() error { _, err := p.steps.Confirm(t.Context(), "key:1 till", ids[5], late); return err })
	p.expireNow(ids[5])
	step(func() error { _, err := p.steps.Refund(t.Context(), "key:1 till", ids[5], late); return err })

	got := p.life()
	for i, want := range []string{
		"claimed, coupon_locked order-0, coupon_used order-0, coupon_refunded order-0",
		"claimed, coupon_locked order-1, coupon_released order-1",
		"claimed, coupon_locked order-2, coupon_timed_out order-2",
		"claimed, coupon_expired",
		"claimed, coupon_revoked",
		"claimed, coupon_locked order-5, coupon_used order-5, coupon_refunded order-5, coupon_expired",
	} {
		if got[ids[i]] != want {
			t.Errorf("coupon %d:\n got %s\nwant %s", i, got[ids[i]], want)
		}
	}
}
