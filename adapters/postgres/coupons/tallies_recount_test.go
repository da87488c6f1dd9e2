package coupons_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/template"
)

// tallied returns a drop with coupons that have gone through several payment steps.
func tallied(w *fixture, coupons int) template.Template {
	w.Helper()
	tpl := w.Published(time.Hour)
	w.Exec(`update templates set issued = $2, stock = greatest(stock, $2) where id = $1`, tpl.ID, coupons)
	w.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", coupons), pgtest.Row{"template_id": tpl.ID, "user_id": pgtest.SQL("n")})
	s := &coupon.Service{Store: w.Payments, LockFor: time.Hour}
	for n := 1; n <= coupons; n++ {
		id := w.Number(`select id from coupons where template_id = $1 and user_id = $2`, tpl.ID, n)
		order := fmt.Sprint("order-", n)
		_, err := s.Lock(w.Context(), "key:1", id, coupon.Order{ID: order, Amount: 1_000_000})
		w.Must(err)
		switch n % 4 {
		case 0:
			_, err = s.Confirm(w.Context(), "key:1", id, order)
		case 1:
			_, err = s.Release(w.Context(), "key:1", id, order)
		case 2:
			_, err = s.Confirm(w.Context(), "key:1", id, order)
			w.Must(err)
			_, err = s.Refund(w.Context(), "key:1", id, order)
		}
		w.Must(err)
	}
	return tpl
}

// A step is an event about coupons on its way to its handler.
type step struct {
	id string
	event.CouponChanges
}

// relayedSteps relays all that waits and returns the steps among it.
func relayedSteps(w *fixture) (list []step) {
	w.Helper()
	for _, a := range pgtest.Relay(w.T, w.DB, event.CouponsChanged) {
		s := step{id: a.ID}
		w.Must(json.Unmarshal(a.Payload, &s.CouponChanges))
		list = append(list, s)
	}
	return list
}

func count(w *fixture, list ...step) {
	w.Helper()
	for _, s := range list {
		w.Must(w.TallyEvents.Changed(w.Context(), s.id, s.Changes))
	}
}

func (w *fixture) off(tpl template.Template, want bool) {
	w.Helper()
	if n, err := w.Tallies.Off(w.Context(), tpl.ID); err != nil || n != 0 != want {
		w.Errorf("the tallies are off by %d, %v", n, err)
	}
}

// TestTalliesAreRecounted: the tallies differ from the rows by exactly the events that wait in
// the outbox and the relayed events that are not handled. Any other difference is found and
// corrected, without counting the waiting events twice.
func TestTalliesAreRecounted(t *testing.T) {
	w := newFixture(t)
	tpl := tallied(w, 8)
	want := coupon.Tally{Issued: 8, Locked: 2, Used: 2, Released: 2, Refunded: 2}
	check := func(when string) {
		t.Helper()
		got, err := w.Tallies.Tally(t.Context(), tpl.ID)
		if want.Discounted = got.Discounted; err != nil || got != want {
			t.Errorf("%s: %+v, want %+v, %v", when, got, want, err)
		}
	}
	w.off(tpl, false) // all waits in the outbox
	list := relayedSteps(w)
	w.off(tpl, false)
	half := len(list) / 2
	count(w, list[:half]...)
	w.off(tpl, false)
	w.Exec(`update coupon_tallies set locked = locked - 8, used = used + 3, discounted = 7`)
	w.off(tpl, true)
	if ids, err := w.Tallies.Impossible(t.Context(), 10); err != nil || !slices.Equal(ids, []int64{tpl.ID}) {
		t.Errorf("%v cannot be true, %v", ids, err)
	}
	if y, err := w.Tallies.Tally(t.Context(), tpl.ID); err != nil || y.Locked < 0 || y.Unused() > y.Issued {
		t.Errorf("%+v %v", y, err)
	}
	if n, err := w.Tallies.Recount(t.Context(), tpl.ID); err != nil || n == 0 {
		t.Errorf("off by %d, %v", n, err)
	}
	w.off(tpl, false)
	count(w, list[half:]...)
	count(w, list...) // once more
	check("all are handled")
	w.off(tpl, false)

	// Events that no handler will get any more.
	w.Exec(`update coupons set state = 'unused', version = version + 1 where state = 'used' and template_id = $1`, tpl.ID)
	w.off(tpl, true)
	_, err := w.Tallies.Recount(t.Context(), tpl.ID)
	w.Must(err)
	want.Used = 0
	check("recounted")
	if ids, err := w.Tallies.ToRecount(t.Context(), 10); err != nil || len(ids) != 0 {
		t.Errorf("%v are to be recounted again, %v", ids, err)
	}
	w.Exec(`update coupon_tallies set changed_at = clock_timestamp()`)
	if ids, err := w.Tallies.ToRecount(t.Context(), 10); err != nil || !slices.Equal(ids, []int64{tpl.ID}) {
		t.Errorf("%v are to be recounted, %v", ids, err)
	}
}

// TestTalliesAreRecountedWhileEventsAreHandled: in any order of events and recounts, each
// event is finally counted once.
func TestTalliesAreRecountedWhileEventsAreHandled(t *testing.T) {
	w := newFixture(t)
	tpl := tallied(w, 40)
	list := relayedSteps(w)
	w.Exec(`insert into coupon_tallies (template_id, locked, used) values ($1, -6, 5)`, tpl.ID)
	for _, err := range pgtest.Together(4, func(i int) error {
		if i > 0 {
			for n := i - 1; n < len(list); n += 3 {
				count(w, list[n])
			}
			return nil
		}
		for range 30 {
			if _, err := w.Tallies.Recount(context.Background(), tpl.ID); err != nil {
				return err
			}
		}
		return nil
	}) {
		w.Must(err)
	}
	w.off(tpl, false)
	y, err := w.Tallies.Tally(t.Context(), tpl.ID)
	if err != nil {
		t.Fatal(err)
	}
	want := y
	want.Locked, want.Used, want.Released, want.Refunded = 10, 10, 10, 10
	if diff := cmp.Diff(want, y); diff != "" {
		t.Errorf("tally (-want +got):\n%s", diff)
	}
}
