package coupons_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/money"
)

// modelOrder is the state of one order in a model that has no versions, histories
// or SQL.
type modelOrder struct {
	locked, released, ended, confirmed, refunded bool
	amount                                       money.Amount // of the lock
}

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
func (m *model) lock(id string, amount money.Amount) bool {
	o := m.order(id)
	if o.locked {
		return m.holder == id && o.amount == amount
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
	m.state, m.holder, o.locked, o.amount = coupon.Locked, id, true, amount
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

// expire does what the sweep of expired coupons does.
func (m *model) expire() {
	if m.state == coupon.Unused && m.late {
		m.state = coupon.Expired
	}
}

func (m *model) clone() *model {
	c := *m
	c.orders = map[string]*modelOrder{}
	for id, o := range m.orders {
		copied := *o
		c.orders[id] = &copied
	}
	return &c
}

// models are all possible states of the coupon. Several states are possible,
// because the order of two concurrent steps is known only from their answers.
type models []*model

// after returns the possible states of the coupon after these concurrent steps
// with these answers. A sweep skips a coupon that the other step has locked at that moment.
func (ms models) after(acts []act, ok []bool) (next models) {
	orders := [][]int{{0}}
	if len(acts) == 2 {
		orders = [][]int{{0, 1}, {1, 0}}
		for i, other := range []int{1, 0} {
			if acts[i].sweep {
				orders = append(orders, []int{other})
			}
		}
	}
	for _, m := range ms {
		for _, order := range orders {
			c, same := m.clone(), true
			for _, i := range order {
				same = acts[i].on(c) == ok[i] && same
			}
			if same && !slices.ContainsFunc(next, func(n *model) bool { return reflect.DeepEqual(n, c) }) {
				next = append(next, c)
			}
		}
	}
	return next
}

// that returns the models that match c.
func (ms models) that(c coupon.Coupon) models {
	return slices.DeleteFunc(slices.Clone(ms), func(m *model) bool {
		return c.State != m.state || c.OrderID != m.holder || (c.Discount > 0) != (m.holder != "")
	})
}

// An act is one step: in PostgreSQL, and in the model.
type act struct {
	name string
	do   func(*coupon.Service) error
	on   func(*model) bool
	// sweep is set for steps that skip a coupon that is locked at that moment.
	sweep bool
}

// drawAct returns a random step of a random order, or of none.
func (p *paymentFixture) drawAct(rt *rapid.T, id int64) act {
	ctx := p.Context()
	o := rapid.SampledFrom([]string{"A", "B", "C"}).Draw(rt, "order")
	switch step := rapid.SampledFrom([]string{"lock", "lock", "lock", "confirm", "release", "refund", "locks end", "sweeps", "revoke"}).Draw(rt, "step"); step {
	case "lock":
		amount := rapid.SampledFrom([]money.Amount{2500, 2500, 2500, 9900}).Draw(rt, "amount")
		return act{"lock " + o, func(s *coupon.Service) error {
			_, err := s.Lock(ctx, "", id, coupon.Order{ID: o, Amount: amount})
			return err
		}, func(m *model) bool { return m.lock(o, amount) }, false}
	case "confirm":
		return act{"confirm " + o, func(s *coupon.Service) error { _, err := s.Confirm(ctx, "", id, o); return err },
			func(m *model) bool { return m.confirm(o) }, false}
	case "release":
		return act{"release " + o, func(s *coupon.Service) error { _, err := s.Release(ctx, "", id, o); return err },
			func(m *model) bool { return m.release(o) }, false}
	case "refund":
		return act{"refund " + o, func(s *coupon.Service) error { _, err := s.Refund(ctx, "", id, o); return err },
			func(m *model) bool { return m.refund(o) }, false}
	case "locks end":
		return act{"sweep of locks", func(*coupon.Service) error { _, err := p.store.EndLocks(ctx, 10); return err },
			func(m *model) bool { m.timeOut(); return true }, true}
	case "revoke":
		if rapid.IntRange(0, 4).Draw(rt, "rare") == 0 {
			toStock := rapid.Bool().Draw(rt, "to stock")
			return act{"revoke", func(*coupon.Service) error {
				_, err := p.decider.Revoke(ctx, pgtest.Actor, id, "test", toStock)
				return err
			}, (*model).revoke, false}
		}
	}
	return act{"sweep of expired", func(*coupon.Service) error {
		_, _, err := p.store.Expire(ctx, couponsdb.ExpiryCursor{}, 10)
		return err
	},
		func(m *model) bool { m.expire(); return true }, true}
}

// TestCouponModel takes random steps of several orders, singly and two at once,
// with time passing in between. It compares every answer and every state of
// PostgreSQL with the model.
func TestCouponModel(t *testing.T) {
	p := newPaymentFixture(t)
	ctx := p.Context()
	services := []*coupon.Service{p.steps, {Store: pgtest.Payments(t, p.secondDB()), LockFor: time.Hour}}
	var pairs, either int
	rapid.Check(t, func(rt *rapid.T) {
		ms := models{{state: coupon.Unused, orders: map[string]*modelOrder{}}}
		id := p.issue()
		var trail []string
		perform := func(acts ...act) {
			errs := make([]error, len(acts))
			var all sync.WaitGroup
			for i, a := range acts {
				all.Go(func() { errs[i] = a.do(services[i]) })
			}
			all.Wait()
			ok, names := make([]bool, len(acts)), make([]string, len(acts))
			for i, err := range errs {
				ok[i], names[i] = err == nil, fmt.Sprintf("%s:%v", acts[i].name, err == nil)
				if err != nil && !errors.Is(err, coupon.ErrNotUsable) && !errors.Is(err, coupon.ErrOtherRequest) {
					rt.Fatalf("%v, %s: %v", trail, names[i], err)
				}
			}
			trail = append(trail, strings.Join(names, " & "))
			if ms = ms.after(acts, ok); len(ms) == 0 {
				rt.Fatalf("%v: in no order can PostgreSQL answer so", trail)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"one step": func(rt *rapid.T) { perform(p.drawAct(rt, id)) },
			"two at once": func(rt *rapid.T) {
				perform(p.drawAct(rt, id), p.drawAct(rt, id))
				pairs++
				if len(ms) > 1 {
					either++
				}
			},
			"lock runs out": func(*rapid.T) {
				p.runOut(id)
				for _, m := range ms {
					m.overdue = m.state == coupon.Locked
				}
				trail = append(trail, "runs out")
			},
			"coupon runs out": func(rt *rapid.T) {
				if rapid.IntRange(0, 2).Draw(rt, "rare") > 0 {
					return
				}
				p.expireNow(id)
				for _, m := range ms {
					m.late = true
				}
				trail = append(trail, "expires")
			},
			"sweeps": func(*rapid.T) {
				_, err := p.store.EndLocks(ctx, 10)
				p.Must(err)
				_, _, err = p.store.Expire(ctx, couponsdb.ExpiryCursor{}, 10)
				p.Must(err)
				for _, m := range ms {
					m.timeOut()
					m.expire()
				}
				trail = append(trail, "sweeps")
			},
			"": func(rt *rapid.T) {
				c := p.state(id)
				if left := ms.that(c); len(left) == 0 {
					rt.Fatalf("%v: PostgreSQL has %+v, the model %s for %q", trail, c, ms[0].state, ms[0].holder)
				} else {
					ms = left
				}
			},
		})
	})
	t.Logf("%d times two steps at once, %d of them with no telling which came first", pairs, either)
	if pairs == 0 {
		t.Error("no two steps were ever taken at once")
	}
	// In the log, every change of a coupon begins in the state in which the
	// previous change ended.
	if n := p.Number(`select count(*) from (
			select from_state, lag(to_state, 1, 'unused') over (partition by coupon_id order by id) as before
			from coupon_operations where outcome = 'done') o
		where from_state <> before`); n != 0 {
		t.Errorf("%d steps in the log do not follow from the one before", n)
	}
	if n := p.Number(`select count(*) from coupons c join lateral (select to_state from coupon_operations o where o.coupon_id = c.id and o.outcome = 'done'
		order by o.id desc limit 1) o on true where o.to_state <> c.state`); n != 0 {
		t.Errorf("%d coupons are not what their log says last", n)
	}
	p.tallyMatches()
}

// tallyMatches counts every event and compares the tally with the rows.
func (p *paymentFixture) tallyMatches() {
	p.Helper()
	p.relay()
	got, err := p.tallies.Tally(p.Context(), p.drop.ID)
	p.Must(err)
	for state, n := range map[coupon.State]int64{coupon.Locked: got.Locked, coupon.Used: got.Used, coupon.Expired: got.Expired, coupon.Revoked: got.Revoked} {
		if rows := p.Number(`select count(*) from coupons where template_id = $1 and state = $2`, p.drop.ID, state); rows != n {
			p.Errorf("%s: %d rows, %d counted", state, rows, n)
		}
	}
	for what, n := range map[string]int64{"'release', 'timeout'": got.Released, "'refund'": got.Refunded} {
		if done := p.Number(`select count(*) from coupon_operations o join coupons c on c.id = o.coupon_id where c.template_id = $1
			and o.outcome = 'done' and o.from_state <> o.to_state and o.step in (`+what+`)`, p.drop.ID); done != n {
			p.Errorf("%s: %d in the log, %d counted", what, done, n)
		}
	}
	if rows := p.Number(`select count(*) from coupons where template_id = $1 and returned`, p.drop.ID); rows != got.Returned {
		p.Errorf("%d returned, %d counted", rows, got.Returned)
	}
	if sum := p.Number(`select coalesce(sum(discount), 0) from coupons where state = 'used'`); int64(got.Discounted) != sum {
		p.Errorf("%d taken off, %d counted", sum, got.Discounted)
	}
}
