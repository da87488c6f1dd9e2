package watermill

import (
	"context"
	"testing"

	"dropbell/musttest"
)

// TestMarksShowWhatWasForgotten: marks are lost together with their streams, and do not fit
// another run of the server.
func TestMarksShowWhatWasForgotten(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	marked := func(number int64, want bool, greatest int64) {
		t.Helper()
		all, found, err := bus.Marked(t.Context(), number)
		if err != nil || all != want || found != greatest {
			t.Errorf("marked with %d: %t, the greatest is %d, %v", number, all, found, err)
		}
	}
	client := s.client(t)
	defer client.Close()
	marked(1, false, 0)
	musttest.OK(t, bus.SetMarks(t.Context(), 1))
	marked(1, true, 1)
	marked(2, false, 1)
	musttest.OK(t, client.Del(t.Context(), markKey("slot.fired.v1")).Err())
	marked(1, false, 1) // one stream was lost
	musttest.OK(t, bus.SetMarks(t.Context(), 2))
	marked(2, true, 2)
	s.kill(t)
	if _, _, err := bus.Marked(t.Context(), 2); err == nil {
		t.Error("without Redis it is known what is marked")
	}
	s.restart(t)
	eventually(t, "Redis answers", func() bool { return client.Ping(t.Context()).Err() == nil })
	marked(2, false, 0)
}

// TestHandledUpToTheEnds: every handler has acknowledged the entries before the ends; later
// entries do not matter.
func TestHandledUpToTheEnds(t *testing.T) {
	s := startRedis(t)
	bus := newBus(t, s)
	let := make(chan struct{})
	bus.Handle("quick", topic, func(context.Context, Event) error { return nil })
	bus.Handle("slow", topic, func(ctx context.Context, _ Event) error {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return nil
	})
	handled := func(ends Ends) bool {
		t.Helper()
		all, err := bus.Handled(t.Context(), ends)
		musttest.OK(t, err)
		return all
	}
	publish(t, bus, events(0, 3))
	ends, err := bus.Ends(t.Context())
	musttest.OK(t, err)
	if handled(ends) {
		t.Error("handlers that were never there have handled events")
	}
	run(t, bus)
	wantAcknowledged(t, s, "quick")
	if handled(ends) {
		t.Error("one handler is enough")
	}
	let <- struct{}{}
	let <- struct{}{}
	let <- struct{}{}
	eventually(t, "all is handled", func() bool { return handled(ends) })
	publish(t, bus, events(3, 4))
	if !handled(ends) {
		t.Error("a later event counts")
	}
	if later, err := bus.Ends(t.Context()); err != nil || handled(later) {
		t.Errorf("the later event is handled, %v", err)
	}
	close(let)
	var seen []string
	if err := bus.Newest(t.Context(), topic, 2, func(list []Event) (bool, error) {
		seen = append(seen, ids(list)...)
		return len(seen) < 4, nil
	}); err != nil || len(seen) != 4 || seen[0] != "id-00003" || seen[3] != "id-00000" {
		t.Errorf("%v %v", seen, err)
	}
}
