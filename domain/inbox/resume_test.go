package inbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dropbell/domain/inbox"
	"dropbell/domain/user"
)

// recents answers with its spans; each query waits for an element of free.
type recents struct {
	inbox.Store
	spans    []inbox.Span
	more     bool
	err      error
	mu       sync.Mutex
	since    []time.Time // of each look
	begun    chan struct{}
	free     chan struct{}
	blocking bool
}

func (r *recents) Recent(_ context.Context, since time.Time, _ int) ([]inbox.Span, bool, error) {
	r.mu.Lock()
	r.since = append(r.since, since)
	r.mu.Unlock()
	if r.blocking {
		r.begun <- struct{}{}
		<-r.free
	}
	return r.spans, !r.more, r.err
}

func TestWhoMayHaveMissedAMessage(t *testing.T) {
	noon := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	broken := errors.New("database is away")
	span := []inbox.Span{{From: 10, To: 20, At: noon.Add(-time.Minute)}}
	for name, c := range map[string]struct {
		store *recents
		user  user.ID
		since time.Duration // before noon
		want  bool
		looks int
	}{
		"a batch came since":           {&recents{spans: span}, 15, time.Minute, true, 1},
		"its first recipient":          {&recents{spans: span}, 10, time.Minute, true, 1},
		"its last recipient":           {&recents{spans: span}, 20, time.Minute, true, 1},
		"a user beside it":             {&recents{spans: span}, 21, time.Minute, false, 1},
		"it came before":               {&recents{spans: span}, 15, time.Minute - 1, false, 1},
		"nothing came":                 {&recents{}, 15, time.Minute, false, 1},
		"more came than is looked at":  {&recents{more: true}, 15, time.Minute, true, 1},
		"the store does not answer":    {&recents{err: broken}, 15, time.Minute, true, 1},
		"the client was away for long": {&recents{}, 15, time.Hour, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := inbox.Service{Store: c.store}
			missed, err := r.MayHaveMissed(t.Context(), c.user, noon, noon.Add(-c.since))
			if missed != c.want || !errors.Is(err, c.store.err) || len(c.store.since) != c.looks {
				t.Errorf("%v, %v, %d looks", missed, err, len(c.store.since))
			}
		})
	}
}

// TestClientsThatComeTogetherShareALook: the shared query begins after all clients have asked,
// and asks for the earliest of their instants.
func TestClientsThatComeTogetherShareALook(t *testing.T) {
	store := &recents{blocking: true, begun: make(chan struct{}), free: make(chan struct{})}
	noon := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	r := inbox.Service{Store: store}
	var all sync.WaitGroup
	asked := make(chan struct{}, 101)
	ask := func(since time.Duration) {
		all.Go(func() {
			asked <- struct{}{}
			if missed, err := r.MayHaveMissed(t.Context(), 1, noon, noon.Add(-since)); missed || err != nil {
				t.Errorf("%v, %v", missed, err)
			}
		})
	}
	ask(time.Second)
	<-asked
	<-store.begun // the first look reads already
	for i := range 100 {
		ask(time.Duration(i+2) * time.Second)
		<-asked
	}
	store.free <- struct{}{}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	for looks := 1; ; looks++ {
		select {
		case <-store.begun:
			store.free <- struct{}{}
			continue
		case <-ended:
		}
		// Those that had not joined when the second look began made a third one.
		if looks > 10 {
			t.Errorf("%d looks for 101 clients", looks)
		}
		return
	}
}
