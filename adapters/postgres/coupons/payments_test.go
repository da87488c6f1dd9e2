package coupons_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/fault"
)

// issueMany returns n coupons of the fixture's drop.
func (p *paymentFixture) issueMany(n int) []int64 {
	p.Helper()
	p.Exec(`update templates set stock = greatest(stock, $2) where id = $1`, p.drop.ID, n)
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = p.issue()
	}
	return ids
}

// announced returns the changes in each event that waits in the outbox.
func (p *paymentFixture) announced() (list [][]event.Coupon) {
	p.Helper()
	rows, err := p.SQL.Query(p.Context(), `select payload from outbox where topic = $1 order by id`, event.CouponsChanged)
	p.Must(err)
	defer rows.Close()
	for rows.Next() {
		var payload []byte
		var e event.CouponChanges
		p.Must(rows.Scan(&payload))
		p.Must(json.Unmarshal(payload, &e))
		list = append(list, e.Changes)
	}
	p.Must(rows.Err())
	return list
}

// TestPaymentsShareTransactions: many orders pay at the same time, with steps that succeed and
// steps that are refused. The steps share transactions and events, and every step is stored
// and announced once, with an operation id of its own.
func TestPaymentsShareTransactions(t *testing.T) {
	p := newPaymentFixture(t)
	var groups, grouped atomic.Int64
	payments := couponsdb.NewPayments(p.DB, postgres.Grouping{Workers: 1, Observe: func(n int, _ time.Duration) { groups.Add(1); grouped.Add(int64(n)) }})
	s := &coupon.Service{Store: payments, LockFor: time.Hour}
	ids := p.issueMany(200)
	var all sync.WaitGroup
	for i, id := range ids {
		order := fmt.Sprintf(`"order"\n-%d-单`, i)
		all.Go(func() {
			if _, err := s.Confirm(t.Context(), "", id, order); !errors.Is(err, coupon.ErrNotUsable) {
				t.Errorf("confirmed before its lock: %v", err)
			}
			c, err := s.Lock(t.Context(), "", id, coupon.Order{ID: order, Amount: 2500})
			if err != nil || c.Coupon.ID != id || c.Coupon.OrderID != order || c.Coupon.LockedUntil == nil {
				t.Errorf("lock of %d: %+v, %v", id, c.Coupon, err)
			}
			if c, err = s.Confirm(t.Context(), "", id, order); err != nil || c.Coupon.ID != id || c.Coupon.State != coupon.Used {
				t.Errorf("confirmation of %d: %+v, %v", id, c.Coupon, err)
			}
			if _, err := s.Lock(t.Context(), "", 1_000_000+id, coupon.Order{ID: order, Amount: 2500}); !errors.Is(err, coupon.ErrNotFound) {
				t.Errorf("a coupon that does not exist: %v", err)
			}
		})
	}
	all.Wait()
	payments.Close() // the last group is observed
	t.Logf("%d steps in %d groups", grouped.Load(), groups.Load())
	if grouped.Load() != 800 || groups.Load() >= 400 {
		t.Errorf("%d steps in %d groups", grouped.Load(), groups.Load())
	}
	seen := map[int64]bool{}
	events := p.announced()
	for _, changes := range events {
		last := int64(0)
		for _, c := range changes {
			if seen[c.OperationID] || c.OperationID <= last {
				t.Errorf("operation %d after %d", c.OperationID, last)
			}
			seen[c.OperationID], last = true, c.OperationID
		}
	}
	if len(seen) != 400 || len(events) >= 200 {
		t.Errorf("%d changes in %d events", len(seen), len(events))
	}
	if n := p.Number(`select count(*) from outbox, jsonb_array_elements(payload -> 'changes') e join coupon_operations o on o.id = (e ->> 'operation_id')::bigint
			join coupons c on c.id = o.coupon_id
		where topic = $1 and e ->> 'coupon_id' = c.id::text and e ->> 'template_id' = c.template_id::text and e ->> 'user_id' = c.user_id::text
			and e ->> 'order_id' = o.order_id and e ->> 'step' = o.step and e ->> 'from' = o.from_state and e ->> 'to' = o.to_state
			and (e ->> 'discount')::bigint = o.discount and (e ->> 'order_amount')::bigint = o.order_amount
			and (e ->> 'at')::timestamptz = o.at and (e ? 'locked_until') = (o.step = 'lock')`, event.CouponsChanged); n != 400 {
		t.Errorf("%d changes are as the log has them", n)
	}
	if n := p.Number(`select count(*) from coupon_operations where step = 'confirm' and outcome = 'not_locked'`); n != 200 {
		t.Errorf("%d refusals in the log", n)
	}
	p.tally(coupon.Tally{Issued: 200, Used: 200, Discounted: 200_000})
}

// TestARefusalIsLoggedOnce: a refusal that the log has is answered without a write.
func TestARefusalIsLoggedOnce(t *testing.T) {
	p := newPaymentFixture(t)
	id := p.issue()
	for range 3 {
		if _, err := p.steps.Confirm(t.Context(), "", id, "A"); !errors.Is(err, coupon.ErrNotUsable) {
			t.Fatal(err)
		}
	}
	if n := p.Number(`select count(*) from coupon_operations where coupon_id = $1`, id); n != 1 {
		t.Errorf("%d lines in the log", n)
	}
	before := p.Number(`select last_value from coupon_operations_id_seq`)
	_, err := p.steps.Confirm(t.Context(), "", id, "A")
	if now := p.Number(`select last_value from coupon_operations_id_seq`); err == nil || now != before {
		t.Errorf("a line was written again: %d after %d, %v", now, before, err)
	}
}

// TestALockWithoutItsAnswer: callers stop waiting at any moment of their lock. A lock that was
// answered as unavailable is either not stored, or its repetition finds it: each order gets
// its coupon by repeating the request, and with one lock in the log.
func TestALockWithoutItsAnswer(t *testing.T) {
	p := newPaymentFixture(t)
	ids := p.issueMany(150)
	var unknown, left atomic.Int64
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			order := coupon.Order{ID: fmt.Sprint("order-", i), Amount: 2500}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%30)*500*time.Microsecond)
			defer cancel()
			switch _, err := p.steps.Lock(ctx, "", id, order); {
			case err == nil:
			case fault.KindOf(err) != fault.Unavailable:
				t.Errorf("a caller that has left: %v", err)
			case errors.Is(err, fault.ErrOutcomeUnknown):
				unknown.Add(1)
			default:
				left.Add(1)
			}
			c, err := p.steps.Lock(t.Context(), "", id, order)
			if err != nil || c.Coupon.State != coupon.Locked || c.Coupon.OrderID != order.ID || c.Coupon.Discount != 1000 {
				t.Errorf("repeated: %+v, %v", c.Coupon, err)
			}
		})
	}
	all.Wait()
	t.Logf("%d outcomes were unknown, %d callers left before", unknown.Load(), left.Load())
	if unknown.Load()+left.Load() == 0 {
		t.Error("no caller has left")
	}
	if n := p.Number(`select count(*) from coupon_operations where step = 'lock'`); n != 150 {
		t.Errorf("%d lines in the log", n)
	}
	p.tally(coupon.Tally{Issued: 150, Locked: 150})
}

// TestALockThatIsRefusedWhileItsCouponIsHeld: a session holds the coupon until the lock is
// answered as unavailable. The coupon is then not locked.
func TestALockThatIsRefusedWhileItsCouponIsHeld(t *testing.T) {
	p := newPaymentFixture(t)
	ids := p.issueMany(2)
	_, release := p.Hold(`select from coupons where id = $1 for update`, ids[0])
	if _, err := p.lock(ids[0], "A"); !errors.Is(err, coupon.ErrBusy) {
		t.Errorf("%v", err)
	}
	if _, err := p.lock(ids[1], "A"); err != nil {
		t.Errorf("another coupon: %v", err)
	}
	release()
	if c := p.state(ids[0]); c.State != coupon.Unused || c.Version != 0 {
		t.Errorf("left as %+v", c)
	}
	p.tally(coupon.Tally{Issued: 2, Locked: 1})
}

// TestEndedLocksAreAnnouncedInParts: no event has more changes than [event.MaxCouponChanges].
func TestEndedLocksAreAnnouncedInParts(t *testing.T) {
	p := newPaymentFixture(t)
	n := event.MaxCouponChanges + 1
	p.Exec(`update templates set issued = $2, stock = greatest(stock, $2) where id = $1`, p.drop.ID, n)
	p.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", n), pgtest.Row{"template_id": p.drop.ID, "user_id": pgtest.SQL("n"), "state": "locked", "version": 1,
		"order_id": pgtest.SQL("'order-' || n"), "discount": 1000, "locked_at": pgtest.SQL("now() - interval '1 hour'"), "locked_until": pgtest.SQL("now() - interval '1 second'")})
	if ended, err := p.store.EndLocks(t.Context(), 2*n); err != nil || ended != n {
		t.Fatalf("%d locks ended, %v", ended, err)
	}
	events := p.announced()
	if len(events) != 2 || len(events[0]) != event.MaxCouponChanges || len(events[1]) != 1 {
		t.Fatalf("%d events", len(events))
	}
	for _, c := range append(events[0], events[1]...) {
		if c.Step != "timeout" || c.From != "locked" || c.To != "unused" || c.Discount != 1000 || c.OrderID == "" || c.OperationID == 0 {
			t.Fatalf("%+v", c)
		}
	}
}

// TestEventsOfManyProcessesAreCountedOnce: two workers get the same events, all at once, some
// of them in the form of the program before.
func TestEventsOfManyProcessesAreCountedOnce(t *testing.T) {
	p := newPaymentFixture(t)
	ids := p.issueMany(30)
	for i, id := range ids {
		order := fmt.Sprint("order-", i)
		_, err := p.lock(id, order)
		p.Must(err)
		if i%3 == 0 {
			_, err = p.steps.Confirm(t.Context(), "", id, order)
			p.Must(err)
		}
	}
	p.Exec(`with old as (delete from outbox where topic = $1 and id % 2 = 0 returning payload)
		insert into outbox (topic, payload) select $2, c from old, jsonb_array_elements(payload -> 'changes') c`, event.CouponsChanged, event.CouponChanged)
	p.off(p.drop, false)
	second := couponsdb.NewTallyEvents(p.secondDB())
	t.Cleanup(second.Close)
	var list []step
	for _, a := range pgtest.Relay(t, p.DB, event.CouponChanged, event.CouponsChanged) {
		s := step{id: a.ID}
		if a.Topic == event.CouponChanged {
			s.Changes = make([]event.Coupon, 1)
			p.Must(json.Unmarshal(a.Payload, &s.Changes[0]))
		} else {
			p.Must(json.Unmarshal(a.Payload, &s.CouponChanges))
		}
		list = append(list, s)
	}
	p.off(p.drop, false)
	var all sync.WaitGroup
	for i, s := range list {
		for _, by := range []*couponsdb.TallyEvents{p.TallyEvents, second} {
			all.Go(func() {
				p.Must(by.Changed(t.Context(), s.id, s.Changes))
				if i%2 == 0 {
					p.Must(by.Changed(t.Context(), s.id, s.Changes))
				}
			})
		}
	}
	all.Wait()
	p.off(p.drop, false)
	if n, err := p.tallies.SalesOff(t.Context(), p.drop.ID); err != nil || n != 0 {
		t.Errorf("the sums of orders are off by %d, %v", n, err)
	}
	y, err := p.tallies.Tally(t.Context(), p.drop.ID)
	if want := (coupon.Tally{Issued: 30, Locked: 20, Used: 10, Discounted: 10_000}); err != nil || y != want {
		t.Errorf("tally %+v, %v, want %+v", y, err, want)
	}
	if n := p.Number(`select sum(orders) from sale_hours where not refund`); n != 10 {
		t.Errorf("%d orders", n)
	}
}
