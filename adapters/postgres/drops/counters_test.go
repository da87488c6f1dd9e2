package drops_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// TestBookingsAreRecounted: the counters differ from the reservations by exactly the events
// that wait in the outbox and the relayed events that are not handled. Any other difference,
// also in the growth, is found and corrected, without counting the waiting events twice.
func TestBookingsAreRecounted(t *testing.T) {
	w := newFixture(t)
	tpl, counters := w.Published(2*time.Hour), dropsdb.NewCounters(w.DB)
	off := func(want bool) {
		t.Helper()
		if n, err := counters.Off(t.Context(), tpl.ID); err != nil || n != 0 != want {
			t.Errorf("the counters are off by %d, %v", n, err)
		}
	}
	for id := range 10 {
		w.Reserve(tpl, user.ID(id+1), pgtest.Reminders(delivery.App, 5, 10)...)
	}
	w.Cancel(tpl, 1, pgtest.Reminders(delivery.App, 5)...)
	off(false) // all waits in the outbox
	type change struct {
		id string
		event.Reservations
	}
	var list []change
	for _, a := range pgtest.Relay(t, w.DB, event.ReservationsChanged) {
		c := change{id: a.ID}
		w.Must(json.Unmarshal(a.Payload, &c.Reservations))
		list = append(list, c)
	}
	count := func(list ...change) {
		t.Helper()
		for _, c := range list {
			w.CountBookings(c.id, c.Reservations)
		}
	}
	off(false)
	count(list[:4]...)
	off(false)
	w.Exec(`update bookings set booked = booked - 20 where slot = 1`)
	off(true)
	if ids, err := counters.Impossible(t.Context(), 10); err != nil || !slices.Equal(ids, []int64{tpl.ID}) {
		t.Errorf("%v cannot be true, %v", ids, err)
	}
	for _, err := range pgtest.Together(2, func(i int) error {
		if i == 0 {
			count(list[4:]...)
			return nil
		}
		for range 10 {
			if _, err := counters.Recount(context.Background(), tpl.ID); err != nil {
				return err
			}
		}
		return nil
	}) {
		w.Must(err)
	}
	count(list...) // once more
	off(false)
	if n := w.Number(`select sum(booked) from bookings where template_id = $1`, tpl.ID); n != 19 {
		t.Errorf("%d reminders are counted of 19", n)
	}
	if n := w.Number(`select sum(delta) from booking_growth where template_id = $1`, tpl.ID); n != 19 {
		t.Errorf("the growth counts %d reminders of 19", n)
	}
	// Events that will never be handled.
	w.Exec(`delete from reservations where user_id = 2`)
	off(true)
	if n, err := counters.Recount(t.Context(), tpl.ID); err != nil || n == 0 {
		t.Errorf("off by %d, %v", n, err)
	}
	off(false)
	if n := w.Number(`select sum(delta) from booking_growth where template_id = $1`, tpl.ID); n != 17 {
		t.Errorf("the growth counts %d reminders of 17", n)
	}
}

// TestWhichBookingsAreRecounted: counters of drops that open soon are compared each time,
// counters of other drops once a day.
func TestWhichBookingsAreRecounted(t *testing.T) {
	w := newFixture(t)
	soon, late, counters := w.Published(2*time.Hour), w.Published(72*time.Hour), dropsdb.NewCounters(w.DB)
	due := func(want ...template.Template) {
		t.Helper()
		ids, err := counters.ToRecount(t.Context(), 24*time.Hour, 10)
		w.Must(err)
		if len(ids) != len(want) || slices.ContainsFunc(want, func(x template.Template) bool { return !slices.Contains(ids, x.ID) }) {
			t.Errorf("%v are to be recounted", ids)
		}
	}
	due(soon, late)
	for _, x := range []template.Template{soon, late} {
		if _, err := counters.Recount(t.Context(), x.ID); err != nil {
			t.Error(err)
		}
	}
	due(soon)
	w.Exec(`update figure_recounts set at = at - interval '25 hours'`)
	due(soon, late)
}
