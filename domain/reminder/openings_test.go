package reminder_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// fakeOpenings stores readers in memory. While failing is set, it returns an error. If gate is
// set, a statement waits for it.
type fakeOpenings struct {
	mu      sync.Mutex
	failing error
	gate    chan struct{}
	stored  map[user.ID]int
	tried   chan struct{}
}

func (f *fakeOpenings) Open(ctx context.Context, readers []reminder.Reader) error {
	select {
	case f.tried <- struct{}{}:
	default:
	}
	f.mu.Lock()
	gate := f.gate
	f.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failing != nil {
		return f.failing
	}
	for _, r := range readers {
		f.stored[r.UserID]++
	}
	return nil
}

func (f *fakeOpenings) set(err error, gate chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing, f.gate = err, gate
}

func newOpenings(t *testing.T) (*reminder.Openings, *fakeOpenings) {
	f := &fakeOpenings{stored: map[user.ID]int{}, tried: make(chan struct{}, 1)}
	o := &reminder.Openings{Store: f, Pause: time.Millisecond}
	o.Start()
	t.Cleanup(func() { o.Close(context.Background()) })
	return o, f
}

// Many openings at once are stored each, and their callers told.
func TestOpeningsAreStored(t *testing.T) {
	o, f := newOpenings(t)
	var all sync.WaitGroup
	for id := range user.ID(3000) {
		all.Go(func() {
			if !o.Note(t.Context(), reminder.Reader{UserID: id}) {
				t.Errorf("%d is not stored", id)
			}
		})
	}
	all.Wait()
	if len(f.stored) != 3000 {
		t.Errorf("%d stored", len(f.stored))
	}
}

// A store that does not answer delays a caller no longer than the caller's context. The openings
// are stored once the store answers again.
func TestOpeningsWaitForTheStore(t *testing.T) {
	o, f := newOpenings(t)
	gate := make(chan struct{})
	f.set(errors.New("the store is away"), gate)
	ctx, cancel := context.WithCancel(t.Context())
	noted := make(chan bool)
	go func() { noted <- o.Note(ctx, reminder.Reader{UserID: 1}) }()
	<-f.tried
	cancel()
	if <-noted {
		t.Fatal("stored by a store that does not answer")
	}
	close(gate) // it refuses
	<-f.tried   // and is asked again
	f.set(nil, nil)
	if !o.Note(t.Context(), reminder.Reader{UserID: 2}) {
		t.Fatal("not stored")
	}
	o.Close(t.Context())
	if f.stored[1] != 1 || f.stored[2] != 1 {
		t.Errorf("stored %v", f.stored)
	}
	if o.Note(t.Context(), reminder.Reader{UserID: 3}) {
		t.Error("noted after the end")
	}
}

// Closing stores the waiting openings, and gives up when the context ends.
func TestClosingOpenings(t *testing.T) {
	o, f := newOpenings(t)
	gate := make(chan struct{})
	f.set(nil, gate)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for id := range user.ID(700) {
		o.Note(ended, reminder.Reader{UserID: id})
	}
	o.Close(ended) // returns although the store does not answer
	close(gate)
	o.Close(t.Context())
	if len(f.stored) != 700 {
		t.Errorf("%d stored", len(f.stored))
	}
}
