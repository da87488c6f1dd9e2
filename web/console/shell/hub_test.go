package shell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
)

// fakeSource counts its calls and returns the answers that the test sets.
type fakeSource struct {
	asked atomic.Int64
	mu    sync.Mutex
	sum   string
	err   error
}

func (l *fakeSource) set(sum string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum, l.err = sum, err
}

func (l *fakeSource) look(context.Context, int64, *liveFragment) (*liveFragment, error) {
	l.asked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	return &liveFragment{sum: l.sum}, l.err
}

func TestHubLooksOnceForAll(t *testing.T) {
	l := &fakeSource{sum: "a"}
	h := NewHub(l.look, Always[*liveFragment](time.Hour)) // one look, then never again
	leaves := []func(){}
	for range 50 {
		states, leave := h.Join(1)
		leaves = append(leaves, leave)
		if s := <-states; s.sum != "a" {
			t.Fatalf("state %q", s.sum)
		}
	}
	if n := l.asked.Load(); n != 1 {
		t.Errorf("50 viewers cost %d looks, want 1", n)
	}
	for _, leave := range leaves {
		leave()
	}
	if len(h.watched) != 0 {
		t.Error("a template nobody watches is still followed")
	}
	states, leave := h.Join(1)
	defer leave()
	<-states
	if n := l.asked.Load(); n != 2 {
		t.Errorf("a new viewer costs %d looks more, want 1", n-1)
	}
}

func TestHubTellsOnlyChangesAndTheLastOne(t *testing.T) {
	l := &fakeSource{sum: "a"}
	h := NewHub(l.look, Always[*liveFragment](time.Millisecond))
	quick, leave := h.Join(1)
	defer leave()
	slow, leaveSlow := h.Join(1)
	defer leaveSlow()
	<-quick
	before := l.asked.Load()
	within(t, "looks", func() bool { return l.asked.Load() > before+20 })
	select {
	case s := <-quick:
		t.Errorf("nothing changed and %q was told", s.sum)
	default:
	}
	for i := range 5 {
		l.set(fmt.Sprint(i), nil)
		if s := <-quick; s.sum != fmt.Sprint(i) {
			t.Errorf("told %q, want %d", s.sum, i)
		}
	}
	within(t, "telling everybody", func() bool {
		h.mu.Lock() // held during the notification
		defer h.mu.Unlock()
		return (*h.watched[1].last).sum == "4"
	})
	if s := <-slow; s.sum != "4" {
		t.Errorf("the slow viewer is told %q, want the last one", s.sum)
	}
}

// All callers that wait for a look get its error: they do not each query a failing database.
func TestHubFailsOnceForAll(t *testing.T) {
	const viewers = 50
	var asked atomic.Int64
	ready := make(chan struct{})
	h := NewHub(func(context.Context, int64, *liveFragment) (*liveFragment, error) {
		asked.Add(1)
		<-ready
		return nil, errors.New("no database")
	}, Always[*liveFragment](time.Hour))
	failed := make(chan error, viewers)
	for range viewers {
		go func() {
			_, err := h.Peek(t.Context(), 1)
			failed <- err
		}()
	}
	within(t, "everybody waiting", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.watched[1] != nil && len(h.watched[1].viewers) == viewers
	})
	close(ready)
	for range viewers {
		if err := <-failed; err == nil || err.Error() != "no database" {
			t.Errorf("told %v", err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("%d looks", n)
	}
}

func TestHubEndsStreamsItCannotServe(t *testing.T) {
	l := &fakeSource{sum: "a"}
	h := NewHub(l.look, Always[*liveFragment](time.Millisecond))
	states, leave := h.Join(1)
	<-states
	l.set("", errors.New("no database"))
	within(t, "the end", func() bool {
		select {
		case _, ok := <-states:
			return !ok
		default:
			return false
		}
	})
	leave() // must not close it a second time
	l.set("b", nil)
	again, leave := h.Join(1)
	defer leave()
	if s := <-again; s.sum != "b" {
		t.Errorf("after the trouble: %q", s.sum)
	}
	h.Close()
	if _, ok := <-again; ok {
		t.Error("a closed hub goes on")
	}
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began, patience := time.Now(), localstack.Patience(t); !ok(); <-time.After(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}
