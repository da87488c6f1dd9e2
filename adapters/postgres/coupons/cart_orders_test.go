package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/cart"
	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// ordering has coupons of one drop of which an order can use five.
type ordering struct {
	*paymentFixture
	orders *cart.Orders
}

func newOrdering(t *testing.T) *ordering {
	p := newPaymentFixture(t)
	p.Exec(`update templates set max_per_order = 5, stock = 1000000 where id = $1`, p.drop.ID)
	return &ordering{p, &cart.Orders{Store: p.Payments, LockFor: time.Hour}}
}

// wish is a lock of an order with two lines and these coupons of user 7.
func wish(order string, revision int64, amount money.Amount, coupons ...int64) cart.Wish {
	return cart.Wish{OrderID: order, UserID: 7, Revision: revision, Coupons: coupons, Cart: cart.Cart{Currency: "CNY",
		Lines: []cart.Line{{ID: "1", Product: "tea", Quantity: 2, Amount: amount}, {ID: "2", Quantity: 1, Amount: 1000}}}}
}

func (o *ordering) lock(w cart.Wish) (cart.Taken, error) {
	return o.orders.Lock(o.Context(), "key:1 till", w)
}

func (o *ordering) states(ids ...int64) (list []coupon.State) {
	for _, id := range ids {
		list = append(list, o.state(id).State)
	}
	return list
}

// TestOrderIsLockedAsAWhole takes an order with two coupons through all steps, each twice, and
// compares the answers and the rows.
func TestOrderIsLockedAsAWhole(t *testing.T) {
	o := newOrdering(t)
	a, b := o.issue(), o.issue()
	first, err := o.lock(wish("A-1", 0, 8000, b, a))
	o.Must(err)
	off := first.Order.Discount
	if first.Order.State != cart.Locked || off == 0 || first.Coupons[a].State != coupon.Locked || first.Coupons[a].LockedUntil == nil ||
		first.Coupons[a].Discount+first.Coupons[b].Discount != off {
		t.Fatalf("%+v", first)
	}
	again, err := o.lock(wish("A-1", 0, 8000, a, b))
	if err != nil || again.Order.Discount != off || again.Stored || o.Number(`select count(*) from coupon_operations`) != 2 {
		t.Fatalf("repeated: %+v, %v", again, err)
	}
	if n := o.Number(`select sum(amount) from coupon_use_lines where order_id = 'A-1'`); n != int64(off) {
		t.Errorf("the lines have %d of %d", n, off)
	}
	for name, w := range map[string]cart.Wish{"another cart": wish("A-1", 0, 9000, a, b), "other coupons": wish("A-1", 0, 8000, a)} {
		if _, err := o.lock(w); !errors.Is(err, cart.ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	expected := wish("A-2", 0, 8000, a)
	expected.Expect = new(money.Amount(1))
	if _, err := o.lock(expected); !errors.Is(err, cart.ErrChanged) {
		t.Errorf("another discount: %v", err)
	}
	if _, err := o.orders.Confirm(t.Context(), "", 0, "A-9", 0); !errors.Is(err, cart.ErrNoOrder) {
		t.Errorf("unknown order: %v", err)
	}
	if _, err := o.orders.Confirm(t.Context(), "", 8, "A-1", 0); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("another user: %v", err)
	}
	for range 2 {
		used, err := o.orders.Confirm(t.Context(), "key:1 till", 7, "A-1", 0)
		if err != nil || used.Order.State != cart.Confirmed || used.Coupons[b].State != coupon.Used {
			t.Fatalf("confirmed: %+v, %v", used, err)
		}
	}
	if _, err := o.orders.Release(t.Context(), "", 0, "A-1"); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("released after its confirmation: %v", err)
	}
	var paid money.Amount
	for range 2 {
		part, err := o.orders.Refund(t.Context(), "key:1 till", 0, "A-1", cart.Return{ID: "R-1", Lines: []cart.ReturnedLine{{ID: "1", Quantity: 1}}})
		o.Must(err)
		if paid = part.Refund.PayBack; paid <= 0 || paid >= 4000 || part.Order.PaidBack != paid {
			t.Fatalf("%+v", part.Refund)
		}
	}
	for range 2 {
		rest, err := o.orders.Refund(t.Context(), "key:1 till", 0, "A-1", cart.Return{})
		if err != nil || rest.Refund.PayBack != 9000-off-paid || rest.Order.State != cart.Refunded || !slices.Equal(rest.Refund.Coupons, []int64{a, b}) {
			t.Fatalf("%+v, %v", rest.Refund, err)
		}
	}
	if got := o.states(a, b); !slices.Equal(got, []coupon.State{coupon.Unused, coupon.Unused}) {
		t.Errorf("the coupons are %v", got)
	}
	o.tally(coupon.Tally{Issued: 2, Refunded: 2})
}

// TestRefundsAreNettedInWhatADropEarned: each refund of lines is taken off the drop's sums in its hour, whether its coupons come
// back, stay used or came back before the last lines did. The sums agree with what customers have paid and got back, and
// with a recount.
func TestRefundsAreNettedInWhatADropEarned(t *testing.T) {
	for _, to := range []template.RefundTo{template.RefundToHolder, template.RefundToNobody} {
		for _, rule := range []string{"keep", "recompute"} {
			t.Run(string(to)+" "+rule, func(t *testing.T) {
				o := newOrdering(t)
				o.Exec(`update templates set refund_rule = $2, kind = 'threshold_off', threshold = 5000 where id = $1`, o.drop.ID, rule)
				a, b := o.issue(), o.issue()
				first, err := o.lock(wish("A-1", 0, 8000, a, b))
				o.Must(err)
				_, err = o.orders.Confirm(t.Context(), "", 7, "A-1", 0)
				o.Must(err)
				var total, back money.Amount
				for _, l := range first.Order.Lines {
					total += l.Amount
				}
				earned := func(when string, orders int64) {
					t.Helper()
					o.relay()
					for range 2 {
						if n := o.Number(`select coalesce(sum(case when refund then discount - ordered else ordered - discount end), 0)::bigint from sale_hours where template_id = $1`, o.drop.ID); n != int64(total-first.Order.Discount-back) {
							t.Errorf("%s the drop earned %d of %d, and %d were paid back", when, n, total-first.Order.Discount, back)
						}
						if n := o.Number(`select sum(case when refund then -orders else orders end) from sale_hours where template_id = $1`, o.drop.ID); n != orders {
							t.Errorf("%s there are %d orders, want %d", when, n, orders)
						}
						if off, err := o.tallies.SalesOff(t.Context(), o.drop.ID); err != nil || off != 0 {
							t.Errorf("%s the sums are off by %d, %v", when, off, err)
						}
						if _, err := o.tallies.RecountSales(t.Context(), o.drop.ID); err != nil {
							t.Error(err)
						}
					}
				}
				earned("before a refund", 1)
				for n, l := range first.Order.Lines {
					for range 2 { // the repetition takes nothing back
						part, err := o.orders.Refund(t.Context(), "", 7, "A-1", cart.Return{ID: fmt.Sprint("R-", n), To: to, Lines: []cart.ReturnedLine{{ID: l.ID, Quantity: 1}}})
						o.Must(err)
						back = part.Order.PaidBack
						_ = part
					}
					if n == 0 && len(first.Order.Lines) > 1 {
						earned("after a part", 1)
					}
				}
				for range 2 {
					if rest, err := o.orders.Refund(t.Context(), "", 7, "A-1", cart.Return{To: to}); err == nil {
						back = rest.Order.PaidBack
					}
				}
				earned("after all came back", 0)
			})
		}
	}
}

// TestRefundToStock: coupons of a returned order go back to the stock, once; with nobody they stay used.
func TestRefundToStock(t *testing.T) {
	o := newOrdering(t)
	a, b, c := o.issue(), o.issue(), o.issue()
	for order, ids := range map[string][]int64{"A-1": {a, b}, "A-2": {c}} {
		_, err := o.lock(wish(order, 0, 8000, ids...))
		o.Must(err)
		_, err = o.orders.Confirm(t.Context(), "", 7, order, 0)
		o.Must(err)
	}
	issued := o.Number(`select issued from templates where id = $1`, o.drop.ID)
	for range 2 {
		back, err := o.orders.Refund(t.Context(), "", 7, "A-1", cart.Return{To: template.RefundToStock})
		if err != nil || back.Coupons[a].State != coupon.Revoked || !back.Coupons[b].Returned || back.Order.State != cart.Refunded {
			t.Fatalf("%+v, %v", back, err)
		}
	}
	if n := o.Number(`select issued from templates where id = $1 and returned = 2`, o.drop.ID); n != issued-2 {
		t.Errorf("%d of %d coupons are issued", n, issued)
	}
	lost, err := o.orders.Refund(t.Context(), "", 7, "A-2", cart.Return{To: template.RefundToNobody})
	if err != nil || lost.Coupons[c].State != coupon.Used || len(lost.Refund.Coupons) != 0 || lost.Order.State != cart.Refunded {
		t.Errorf("%+v, %v", lost, err)
	}
}

// TestRefusedOrderHoldsNothing: a coupon that cannot be locked leaves the other coupons of the order
// as they are.
func TestRefusedOrderHoldsNothing(t *testing.T) {
	o := newOrdering(t)
	free, taken := o.issue(), o.issue()
	_, err := o.paymentFixture.lock(taken, "B-1")
	o.Must(err)
	for range 2 {
		if _, err := o.lock(wish("A-1", 0, 8000, free, taken)); !errors.Is(err, coupon.ErrNotUsable) {
			t.Fatalf("%v", err)
		}
	}
	theirs := o.issueTo(8, o.drop.ID)
	if _, err := o.lock(wish("A-1", 0, 8000, free, theirs)); !errors.Is(err, coupon.ErrNotFound) {
		t.Errorf("a coupon of another user: %v", err)
	}
	o.Exec(`update templates set max_per_order = 1 where id = $1`, o.drop.ID)
	second := o.issue()
	if _, err := o.lock(wish("A-1", 0, 8000, free, second)); !errors.Is(err, cart.ErrRefused) {
		t.Errorf("two coupons that do not go together: %v", err)
	}
	if got := o.states(free, taken); got[0] != coupon.Unused || got[1] != coupon.Locked || o.Number(`select count(*) from coupon_orders`) != 0 {
		t.Errorf("the coupons are %v", got)
	}
	// The order may still be locked, with a coupon that it can use.
	_, err = o.lock(wish("A-1", 0, 8000, free))
	o.Must(err)
}

// TestRevisionChangesTheCart: a higher revision replaces cart and coupons in one step; a lower one
// was overtaken.
func TestRevisionChangesTheCart(t *testing.T) {
	o := newOrdering(t)
	a, b, c := o.issue(), o.issue(), o.issue()
	_, err := o.lock(wish("A-1", 0, 8000, a, b))
	o.Must(err)
	changed, err := o.lock(wish("A-1", 3, 4000, b, c))
	if err != nil || changed.Order.Revision != 3 || changed.Order.Amount() != 5000 {
		t.Fatalf("%+v, %v", changed, err)
	}
	if got := o.states(a, b, c); !slices.Equal(got, []coupon.State{coupon.Unused, coupon.Locked, coupon.Locked}) {
		t.Errorf("the coupons are %v", got)
	}
	if _, err := o.lock(wish("A-1", 2, 8000, a, b)); !errors.Is(err, cart.ErrChanged) {
		t.Errorf("a lower revision: %v", err)
	}
	if _, err := o.lock(wish("A-1", 4, 8000, a, b)); !errors.Is(err, coupon.ErrNotUsable) {
		t.Errorf("a coupon that was left out comes back: %v", err)
	}
	if _, err := o.orders.Confirm(t.Context(), "", 0, "A-1", 2); !errors.Is(err, cart.ErrChanged) {
		t.Errorf("another revision is confirmed: %v", err)
	}
	_, err = o.orders.Confirm(t.Context(), "", 0, "A-1", 3)
	o.Must(err)
	if n := o.Number(`select sum(order_amount) from coupon_operations where step = 'confirm' and outcome = 'done'`); n != 2*5000 {
		t.Errorf("the confirmations are of %d", n)
	}
	if n := o.Number(`select count(*) from coupon_operations where step = 'lock' and outcome = 'done' and order_amount <> 5000 and coupon_id <> $1`, a); n != 0 {
		t.Errorf("%d locks have the old amount", n)
	}
	if _, err := o.lock(wish("A-1", 5, 8000, b)); !errors.Is(err, cart.ErrChanged) {
		t.Errorf("a confirmed order is changed: %v", err)
	}
}

// TestReleasedBeforeItsLock: a lock that was overtaken by its release holds nothing.
func TestReleasedBeforeItsLock(t *testing.T) {
	o := newOrdering(t)
	a := o.issue()
	for range 2 {
		_, err := o.orders.Release(t.Context(), "", 0, "A-1")
		o.Must(err)
	}
	if _, err := o.lock(wish("A-1", 0, 8000, a)); !errors.Is(err, coupon.ErrNotUsable) || o.state(a).State != coupon.Unused {
		t.Errorf("%v", err)
	}
}

// TestTimedOutOrder: the coupons of an order whose lock ran out are free; its confirmation is
// refused as a whole.
func TestTimedOutOrder(t *testing.T) {
	o := newOrdering(t)
	a, b := o.issue(), o.issue()
	_, err := o.lock(wish("A-1", 0, 8000, a, b))
	o.Must(err)
	o.runOut(a)
	_, err = o.store.EndLocks(t.Context(), 10)
	o.Must(err)
	if _, err := o.orders.Confirm(t.Context(), "", 0, "A-1", 0); !errors.Is(err, coupon.ErrNotUsable) || o.state(b).State != coupon.Locked {
		t.Errorf("%v", err)
	}
	released, err := o.orders.Release(t.Context(), "", 0, "A-1")
	if err != nil || released.Order.State != cart.Released || o.state(b).State != coupon.Unused {
		t.Errorf("%+v, %v", released, err)
	}
}

// TestOrdersShareTransactions: orders that want the same coupons, from two processes, beside steps of
// single coupons. Each coupon is held by one order at most, each order holds all of its coupons or none, and
// orders share groups with each other and with single steps.
func TestOrdersShareTransactions(t *testing.T) {
	o := newOrdering(t)
	var groups, grouped atomic.Int64
	payments := couponsdb.NewPayments(o.DB, postgres.Grouping{Workers: 1, Observe: func(n int, _ time.Duration) { groups.Add(1); grouped.Add(int64(n)) }})
	other := couponsdb.NewPayments(o.secondDB(), postgres.Grouping{})
	t.Cleanup(other.Close)
	ids := o.issueMany(60)
	single := &coupon.Service{Store: payments, LockFor: time.Hour}
	var all sync.WaitGroup
	for i := range 60 {
		s := &cart.Orders{Store: payments, LockFor: time.Hour}
		if i%2 == 1 {
			s.Store = other
		}
		all.Go(func() {
			w := wish(fmt.Sprint("A-", i), 0, 8000, ids[i/2], ids[(i/2+7)%30], ids[(i/2+13)%30])
			if _, err := s.Lock(t.Context(), "", w); err != nil && !errors.Is(err, coupon.ErrNotUsable) && !errors.Is(err, coupon.ErrBusy) {
				t.Errorf("order %d: %v", i, err)
			}
		})
		all.Go(func() {
			if _, err := single.Lock(t.Context(), "", ids[30+i/2], coupon.Order{ID: fmt.Sprint("S-", i), Amount: 2500}); err != nil && !errors.Is(err, coupon.ErrNotUsable) {
				t.Errorf("single %d: %v", i, err)
			}
		})
	}
	all.Wait()
	payments.Close()
	if groups.Load() >= grouped.Load() {
		t.Errorf("%d requests in %d groups", grouped.Load(), groups.Load())
	}
	if n := o.Number(`select count(*) from coupon_orders o where state = 'locked' and
		(select count(*) from coupons c where c.order_id = o.order_id and c.state = 'locked') <> 3`); n != 0 {
		t.Errorf("%d orders hold a part of their coupons", n)
	}
	if n := o.Number(`select count(*) from coupons c where state = 'locked' and order_id like 'A-%' and not exists (select from coupon_orders o where o.order_id = c.order_id)`); n != 0 {
		t.Errorf("%d coupons are held by no order", n)
	}
	if n := o.Number(`select count(*) from coupon_orders`); n == 0 {
		t.Error("no order was locked")
	}
}

// TestSameOrderAtOnce: the same lock arrives many times at once, by two processes. All are answered alike.
func TestSameOrderAtOnce(t *testing.T) {
	o := newOrdering(t)
	a, b := o.issue(), o.issue()
	other := pgtest.Payments(t, o.secondDB())
	var all sync.WaitGroup
	for i := range 16 {
		s := &cart.Orders{Store: o.Payments, LockFor: time.Hour}
		if i%2 == 1 {
			s.Store = other
		}
		all.Go(func() {
			if got, err := s.Lock(t.Context(), "", wish("A-1", 0, 8000, a, b)); err != nil || got.Order.Discount == 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := o.Number(`select count(*) from coupon_operations`); n != 2 {
		t.Errorf("%d lines in the log", n)
	}
}

// TestHistoriesOfOrders compares random histories of steps, each sent once or twice, with a model:
// the states of the coupons follow the state of the orders, and every order keeps its sums.
func TestHistoriesOfOrders(t *testing.T) {
	o := newOrdering(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		ids := []int64{o.issue(), o.issue(), o.issue()}
		type order struct {
			state    cart.State
			revision int64
			coupons  []int64
			returned int64
		}
		model, dropped := map[string]*order{}, map[string][]int64{}
		holder := map[int64]string{}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			name := fmt.Sprintf("H-%d-%d", n, rapid.IntRange(0, 1).Draw(r, "order"))
			m := model[name]
			step := rapid.SampledFrom([]string{"lock", "lock", "confirm", "release", "refund", "rest"}).Draw(r, "step")
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 3, rapid.ID[int64]).Draw(r, "coupons")
			slices.Sort(chosen)
			revision := rapid.Int64Range(0, 2).Draw(r, "revision")
			run := func(ctx context.Context) error {
				switch step {
				case "lock":
					_, err := o.orders.Lock(ctx, "", wish(name, revision, 8000, chosen...))
					return err
				case "confirm":
					_, err := o.orders.Confirm(ctx, "", 0, name, 0)
					return err
				case "release":
					_, err := o.orders.Release(ctx, "", 7, name)
					return err
				case "refund":
					_, err := o.orders.Refund(ctx, "", 0, name, cart.Return{ID: "R", Lines: []cart.ReturnedLine{{ID: "1", Quantity: 1}}})
					return err
				}
				_, err := o.orders.Refund(ctx, "", 0, name, cart.Return{})
				return err
			}
			ok := false // whether the model allows the step
			switch {
			case step == "lock" && m != nil && m.state != cart.Released && m.revision == revision:
				ok = slices.Equal(m.coupons, chosen) && m.state != cart.Refunded
			case step == "lock" && (m == nil || m.state == cart.Locked && m.revision < revision):
				ok = !slices.ContainsFunc(chosen, func(id int64) bool {
					return holder[id] != "" && holder[id] != name || slices.Contains(dropped[name], id)
				})
				if !ok {
					break
				}
				if m != nil {
					for _, id := range m.coupons {
						if !slices.Contains(chosen, id) {
							dropped[name], holder[id] = append(dropped[name], id), ""
						}
					}
				}
				model[name] = &order{cart.Locked, revision, chosen, 0}
				for _, id := range chosen {
					holder[id] = name
				}
			case step == "release" && (m == nil || m.state == cart.Locked || m.state == cart.Released):
				ok = true
				if m == nil {
					model[name] = &order{state: cart.Released}
					break
				}
				m.state = cart.Released
				for _, id := range m.coupons {
					if holder[id] == name {
						holder[id] = ""
					}
				}
			case step == "confirm" && m != nil && m.state != cart.Released:
				ok = true
				if m.state == cart.Locked {
					m.state = cart.Confirmed
				}
			case step == "refund" && m != nil && (m.returned > 0 || m.state == cart.Confirmed):
				ok, m.returned = true, 1
			case step == "rest" && m != nil && (m.state == cart.Confirmed || m.state == cart.Refunded):
				ok = true
				if m.state == cart.Confirmed {
					m.state = cart.Refunded
					for _, id := range m.coupons {
						holder[id] = ""
					}
				}
			}
			for range rapid.IntRange(1, 2).Draw(r, "times") {
				if err := run(o.Context()); (err == nil) != ok {
					r.Fatalf("%s of %s (%+v): %v, by the model %v", step, name, m, err, ok)
				}
			}
			if step == "refund" && !ok || m == nil {
				continue
			}
		}
		for _, id := range ids {
			c := o.state(id)
			want := coupon.Unused
			if holder[id] != "" {
				want = map[cart.State]coupon.State{cart.Locked: coupon.Locked, cart.Confirmed: coupon.Used}[model[holder[id]].state]
			}
			if c.State != want || c.OrderID != holder[id] {
				r.Fatalf("coupon %d is %s for %q, by the model %s for %q", id, c.State, c.OrderID, want, holder[id])
			}
		}
		if n := o.Number(`select count(*) from coupon_orders o where discount <> (select coalesce(sum(amount), 0) from coupon_use_lines l where l.order_id = o.order_id and l.revision = o.revision)`); n != 0 {
			r.Fatalf("%d orders have lines with another sum", n)
		}
	})
}

// TestOrderBesideAHeldCoupon: another session keeps one coupon of an order locked. The order is told to try again
// and holds none of its coupons, also not the free one; a step of another coupon goes on meanwhile.
func TestOrderBesideAHeldCoupon(t *testing.T) {
	o := newOrdering(t)
	free, held, single := o.issue(), o.issue(), o.issue()
	tx, err := o.SQL.Begin(t.Context())
	o.Must(err)
	defer tx.Rollback(context.WithoutCancel(t.Context()))
	_, err = tx.Exec(t.Context(), `select from coupons where id = $1 for update`, held)
	o.Must(err)
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := o.lock(wish("A-1", 0, 8000, free, held)); !errors.Is(err, coupon.ErrBusy) {
			t.Errorf("beside a held coupon: %v", err)
		}
	})
	both.Go(func() {
		if _, err := o.steps.Lock(t.Context(), "", single, coupon.Order{ID: "S-1", Amount: 2500}); err != nil {
			t.Errorf("another coupon: %v", err)
		}
	})
	both.Wait()
	o.Must(tx.Rollback(t.Context()))
	if got := o.states(free, held); !slices.Equal(got, []coupon.State{coupon.Unused, coupon.Unused}) || o.Number(`select count(*) from coupon_orders`) != 0 {
		t.Errorf("the coupons are %v", got)
	}
	_, err = o.lock(wish("A-1", 0, 8000, free, held))
	o.Must(err)
}
