package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/user"
)

func sum(payloads [][]byte) (sums [][]byte, err error) {
	list := make([]event.Reservations, len(payloads))
	for i, p := range payloads {
		if err := json.Unmarshal(p, &list[i]); err != nil {
			return nil, err
		}
	}
	for _, e := range event.SumReservations(list) {
		p, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		sums = append(sums, p)
	}
	return sums, nil
}

// TestMergedEventsCountOnce: many small groups become a few events. Two relays merge and relay
// concurrently. Publishing fails now and then, a relay dies after publishing, and every event is
// delivered twice. The counters are exact.
func TestMergedEventsCountOnce(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	o.Summed = []string{event.ReservationsChanged}
	tpl := w.Published(2 * time.Hour)
	const users = 60
	var mu sync.Mutex
	died := false
	published := map[string]event.Reservations{}
	publish := func(_ context.Context, list []workdb.Announcement) error {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range list {
			if a.Topic != event.ReservationsChanged {
				continue
			}
			var e event.Reservations
			if err := json.Unmarshal(a.Payload, &e); err != nil {
				return err
			}
			published[a.ID] = e
		}
		if !died {
			died = true
			return errors.New("the connection was lost after publishing")
		}
		return nil
	}
	for i := range users {
		w.Reserve(tpl, user.ID(i+1), pgtest.Reminders(delivery.App, 5)...)
	}
	w.Cancel(tpl, 1, pgtest.Reminders(delivery.App, 5)...)
	var relays sync.WaitGroup
	for range 2 {
		relays.Go(func() {
			for waitingIn(t, o) > 0 {
				if err := o.Merge(t.Context(), event.ReservationsChanged, 25, sum); err != nil {
					t.Error(err)
				}
				_, _ = o.Relay(t.Context(), 10, publish)
			}
		})
	}
	relays.Wait()
	for range 2 {
		for id, e := range published {
			w.CountBookings(id, e)
		}
	}
	if n := w.Number(`select sum(booked) from bookings where template_id = $1`, tpl.ID); n != users-1 {
		t.Errorf("%d are counted, want %d", n, users-1)
	}
	if n := w.Number(`select sum(delta) from booking_growth where template_id = $1`, tpl.ID); n != users-1 {
		t.Errorf("the growth counts %d, want %d", n, users-1)
	}
	if n := w.Number(`select count(*) from handled_events`); n > users/4 {
		t.Errorf("%d events for %d groups", n, users+1)
	}
}

// TestEventsThatCannotBeSummedAreRelayedAlone: events that sum refuses are relayed one by one. A
// sum is as old as its oldest event. Without a merge no event of the topic is relayed.
func TestEventsThatCannotBeSummedAreRelayedAlone(t *testing.T) {
	w := newFixture(t)
	o := workdb.NewOutbox(w.DB)
	o.Summed = []string{"t"}
	relay := func() int {
		n, err := o.Relay(t.Context(), 10, func(context.Context, []workdb.Announcement) error { return nil })
		w.Must(err)
		return n
	}
	w.fillOutbox(5)
	if all, of, _, err := o.Waiting(t.Context(), 100); all != 5 || !slices.Equal(of, []string{"t"}) || err != nil {
		t.Errorf("%d wait, %q not merged, %v", all, of, err)
	}
	if n := relay(); n != 0 {
		t.Errorf("%d relayed before a merge", n)
	}
	broken := errors.New("cannot be read")
	if err := o.Merge(t.Context(), "t", 10, func([][]byte) ([][]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if all, of, _, err := o.Waiting(t.Context(), 100); all != 5 || len(of) != 0 || err != nil {
		t.Errorf("%d wait, %q not merged, %v", all, of, err)
	}
	if n := relay(); n != 5 {
		t.Errorf("%d relayed alone", n)
	}
	w.fillOutbox(5)
	w.Exec(`update outbox set created_at = now() - interval '1 hour' where payload->>'n' = '3'`)
	w.Must(o.Merge(t.Context(), "t", 10, func(p [][]byte) ([][]byte, error) { return p[:1], nil }))
	if n, age, err := o.Backlog(t.Context()); n != 1 || age < 3600 || err != nil {
		t.Errorf("%d wait, the oldest for %v s, %v", n, age, err)
	}
	w.Must(o.Merge(t.Context(), "t", 10, func([][]byte) ([][]byte, error) { return nil, broken }))
}
