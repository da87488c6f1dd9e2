package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/coupon"
)

// modelOrder is what one order has done, in a model that knows nothing of
// versions, histories or statements.
type modelOrder struct{ locked, released, ended, confirmed, refunded bool }

// model is one coupon as the rules describe it.
type model struct {
	state   coupon.State
	holder  string
	overdue bool // the lock's time has come
	late    bool // the coupon's time has come
	orders  map[string]*modelOrder
}

func (m *model) order(id string) *modelOrder {
	if m.orders[id] == nil {
		m.orders[id] = &modelOrder{}
	}
	return m.orders[id]
}

func (m *model) free() {
	m.state, m.holder, m.overdue = coupon.Unused, "", false
	if m.late {
		m.state = coupon.Expired
	}
}

func (m *model) timeOut() {
	if m.state == coupon.Locked && m.overdue {
		m.order(m.holder).ended = true
		m.free()
	}
}

// Each step returns whether it succeeds.
func (m *model) lock(id string) bool {
	o := m.order(id)
	if o.locked {
		return m.holder == id
	}
	if o.released {
		return false
	}
	if m.state == coupon.Locked && m.overdue && !m.late {
		m.timeOut()
	}
	if m.state != coupon.Unused || m.late {
		return false
	}
	m.state, m.holder, o.locked = coupon.Locked, id, true
	return true
}

func (m *model) confirm(id string) bool {
	if m.holder != id {
		return false
	}
	m.state, m.overdue, m.order(id).confirmed = coupon.Used, false, true
	return true
}

func (m *model) release(id string) bool {
	o := m.order(id)
	if m.holder == id && m.state == coupon.Used {
		return false
	}
	o.released = o.released || !o.locked
	if m.holder == id {
		o.released = true
		m.free()
	}
	return true
}

func (m *model) refund(id string) bool {
	o := m.order(id)
	if m.holder == id && m.state == coupon.Used {
		o.refunded = true
		m.free()
		return true
	}
	return o.refunded
}

func (m *model) revoke() bool {
	if m.state == coupon.Revoked {
		return true
	}
	if m.state != coupon.Unused || m.late {
		return false
	}
	m.state = coupon.Revoked
	return true
}

// TestCouponModel takes random steps of several orders, with time passing in
// between, against PostgreSQL and against the model, and compares every
// answer and every state.
func TestCouponModel(t *testing.T) {
	p := newPurse(t)
	ctx := p.Context()
	orders := rapid.SampledFrom([]string{"A", "B", "C"})
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{state: coupon.Unused, orders: map[string]*modelOrder{}}
		id := p.issue()
		var trail []string
		same := func(what string, want bool, err error) {
			trail = append(trail, fmt.Sprintf("%s:%v", what, want))
			if err != nil && !errors.Is(err, coupon.ErrNotUsable) {
				rt.Fatalf("%v: %v", trail, err)
			}
			if want != (err == nil) {
				rt.Fatalf("%v: PostgreSQL says %v", trail, err)
			}
		}
		steps := map[string]func(*rapid.T){
			"lock": func(rt *rapid.T) {
				o := orders.Draw(rt, "order")
				_, err := p.lock(id, o)
				same("lock "+o, m.lock(o), err)
			},
			"confirm": func(rt *rapid.T) {
				o := orders.Draw(rt, "order")
				_, err := p.steps.Confirm(ctx, "", id, o)
				same("confirm "+o, m.confirm(o), err)
			},
			"release": func(rt *rapid.T) {
				o := orders.Draw(rt, "order")
				_, err := p.steps.Release(ctx, "", id, o)
				same("release "+o, m.release(o), err)
			},
			"refund": func(rt *rapid.T) {
				o := orders.Draw(rt, "order")
				_, err := p.steps.Refund(ctx, "", id, o)
				same("refund "+o, m.refund(o), err)
			},
			"revoke": func(rt *rapid.T) {
				if rapid.IntRange(0, 4).Draw(rt, "rare") > 0 {
					return
				}
				_, err := p.desk.Revoke(ctx, actor, id, "test")
				same("revoke", m.revoke(), err)
			},
			"lock runs out": func(*rapid.T) {
				p.runOut(id)
				m.overdue = m.state == coupon.Locked
				trail = append(trail, "runs out")
			},
			"coupon runs out": func(rt *rapid.T) {
				if rapid.IntRange(0, 2).Draw(rt, "rare") > 0 {
					return
				}
				p.expireNow(id)
				m.late = true
				trail = append(trail, "expires")
			},
			"time-out task": func(rt *rapid.T) {
				o := orders.Draw(rt, "order")
				_, err := p.steps.TimeOut(ctx, id, o)
				p.must(err)
				if m.holder == o {
					m.timeOut()
				}
				trail = append(trail, "task "+o)
			},
			"sweeps": func(*rapid.T) {
				_, err := p.store.EndLocks(ctx, 10)
				p.must(err)
				m.timeOut()
				_, err = p.store.Expire(ctx, 10)
				p.must(err)
				if m.state == coupon.Unused && m.late {
					m.state = coupon.Expired
				}
				trail = append(trail, "sweeps")
			},
			"": func(rt *rapid.T) {
				if c := p.state(id); c.State != m.state || c.OrderID != m.holder || (c.Discount > 0) != (m.holder != "") {
					rt.Fatalf("%v: PostgreSQL has %+v, the model %s for %q", trail, c, m.state, m.holder)
				}
			},
		}
		rt.Repeat(steps)
	})
	// The log retells each coupon's life: every change begins where the one before ended.
	if n := p.number(`select count(*) from (
			select from_state, lag(to_state, 1, 'unused') over (partition by coupon_id order by id) as before
			from coupon_operations where outcome = 'done') o
		where from_state <> before`); n != 0 {
		t.Errorf("%d steps in the log do not follow from the one before", n)
	}
	if n := p.number(`select count(*) from coupons c join lateral (select to_state from coupon_operations o where o.coupon_id = c.id and o.outcome = 'done'
		order by o.id desc limit 1) o on true where o.to_state <> c.state`); n != 0 {
		t.Errorf("%d coupons are not what their log says last", n)
	}
	p.tallyMatches()
}

// tallyMatches counts every event and compares the tally with the rows.
func (p *purse) tallyMatches() {
	p.Helper()
	p.relay()
	got, err := p.tallies.Tally(p.Context(), p.drop.ID)
	p.must(err)
	for state, n := range map[coupon.State]int64{coupon.Locked: got.Locked, coupon.Used: got.Used, coupon.Expired: got.Expired, coupon.Revoked: got.Revoked} {
		if rows := p.number(`select count(*) from coupons where template_id = $1 and state = $2`, p.drop.ID, state); rows != n {
			p.Errorf("%s: %d rows, %d counted", state, rows, n)
		}
	}
	if sum := p.number(`select coalesce(sum(discount), 0) from coupons where state = 'used'`); int64(got.Discounted) != sum {
		p.Errorf("%d taken off, %d counted", sum, got.Discounted)
	}
}
