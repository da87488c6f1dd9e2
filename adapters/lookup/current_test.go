package lookup_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/lookup"
	"dropbell/domain/template"
)

// TestCurrentSeesAChangeAtOnce although the cached state is younger than a second.
func TestCurrentSeesAChangeAtOnce(t *testing.T) {
	s, w := newSource(10), &watch{}
	c := cacheOf(t, s, w.now)
	if got, err := c.Template(t.Context(), 7); err != nil || got.Name != "first" {
		t.Fatal(got.Name, err)
	}
	s.set(func(s *source) { s.name = "second" })
	if got, err := c.Current(t.Context(), 7); err != nil || got.Name != "second" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []int64{-1, 0, 11} {
		if _, err := c.Current(t.Context(), id); !errors.Is(err, template.ErrNotFound) {
			t.Errorf("template %d: %v", id, err)
		}
	}
}

// TestAReadingThatHasBegunIsNotShared: a request never joins a round that has already begun,
// because the round may have read before the request arrived. All requests during a round share
// the next round, for any templates.
func TestAReadingThatHasBegunIsNotShared(t *testing.T) {
	s := newSource(10)
	s.hold = make(chan struct{})
	c := cacheOf(t, s, time.Now)
	var all sync.WaitGroup
	ask := func(id int64, want error) {
		all.Go(func() {
			if _, err := c.Current(t.Context(), id); !errors.Is(err, want) {
				t.Errorf("template %d: %v, want %v", id, err, want)
			}
		})
	}
	ask(7, nil)
	eventually(t, 5*time.Second, "a reading has begun", func() bool { return s.waiting.Load() == 1 })
	for range 50 {
		ask(7, nil)
		ask(8, nil)
		ask(12, template.ErrNotFound)
	}
	eventually(t, 5*time.Second, "all wait", func() bool { return lookup.Waiting(c) == 3 })
	close(s.hold)
	all.Wait()
	if len(s.rounds) < 2 || len(s.rounds[0]) != 1 || len(s.rounds[1]) != 3 {
		t.Errorf("readings of %v", s.rounds)
	}
}

// TestACallerOfCurrentHangsUp: a caller that hangs up does not fail other callers. A failed
// reading is an error only for the callers that shared it.
func TestACallerOfCurrentHangsUp(t *testing.T) {
	s := newSource(10)
	s.hold = make(chan struct{})
	c := cacheOf(t, s, time.Now)
	ctx, hangUp := context.WithCancel(t.Context())
	hungUp, other := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := c.Current(ctx, 7)
		hungUp <- err
	}()
	eventually(t, 5*time.Second, "a reading has begun", func() bool { return s.waiting.Load() == 1 })
	hangUp()
	if err := <-hungUp; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that hung up: %v", err)
	}
	go func() {
		_, err := c.Current(t.Context(), 7)
		other <- err
	}()
	close(s.hold)
	if err := <-other; err != nil {
		t.Errorf("the other caller: %v", err)
	}
	away := errors.New("away")
	s.set(func(s *source) { s.err = away })
	if _, err := c.Current(t.Context(), 7); !errors.Is(err, away) {
		t.Errorf("a failed reading: %v", err)
	}
	s.set(func(s *source) { s.err = nil })
	if _, err := c.Current(t.Context(), 7); err != nil {
		t.Errorf("the next reading: %v", err)
	}
}
