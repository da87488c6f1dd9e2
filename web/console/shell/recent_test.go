package shell

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slowLook answers each look with the next value or error that the test sends.
type slowLook struct {
	begun   int
	answers chan any
}

func (l *slowLook) look(ctx context.Context) (string, error) {
	l.begun++
	select {
	case a := <-l.answers:
		switch a := a.(type) {
		case error:
			return "", a
		case string:
			return a, nil
		}
		panic("oh dear")
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// got is the answer to one request.
type got struct {
	value string
	err   error
}

// ask sends n requests, which then wait; answers returns their answers.
func ask(ctx context.Context, r *Recent[string], n int) (answers func() []got) {
	list := make([]got, n)
	var all sync.WaitGroup
	for i := range list {
		all.Go(func() { list[i].value, list[i].err = r.Get(ctx) })
	}
	synctest.Wait()
	return func() []got { all.Wait(); return list }
}

// Concurrent requests wait for one look. If the first request is cancelled, the other requests
// still get the result.
func TestRecentLooksOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLook{answers: make(chan any)}
		r := NewRecent(time.Second, l.look)
		hasty, leave := context.WithCancel(t.Context())
		first := ask(hasty, r, 1)
		rest := ask(t.Context(), r, 20)
		leave()
		if g := first(); !errors.Is(g[0].err, context.Canceled) {
			t.Errorf("the request that ended: %+v", g)
		}
		l.answers <- "one"
		for _, g := range rest() {
			if g.value != "one" || g.err != nil {
				t.Errorf("%+v", g)
			}
		}
		if v, err := r.Get(t.Context()); v != "one" || err != nil || l.begun != 1 {
			t.Errorf("%q, %v after %d looks", v, err, l.begun)
		}
		time.Sleep(time.Second) // of the bubble's clock
		later := ask(t.Context(), r, 1)
		l.answers <- "two"
		if g := later(); g[0].value != "two" || l.begun != 2 {
			t.Errorf("after its life: %+v, %d looks", g, l.begun)
		}
	})
}

// The result of a look that began before Forget goes only to requests from before Forget.
func TestRecentForgetsDuringALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLook{answers: make(chan any)}
		r := NewRecent(time.Hour, l.look)
		before := ask(t.Context(), r, 2)
		r.Forget()
		after := ask(t.Context(), r, 2)
		if l.begun != 2 {
			t.Fatalf("%d looks", l.begun)
		}
		l.answers <- "one"
		l.answers <- "two"
		seen := map[string]int{}
		for _, g := range append(before(), after()...) {
			seen[g.value]++
		}
		if seen["one"] != 2 || seen["two"] != 2 {
			t.Errorf("%v", seen)
		}
	})
}

// Errors and panics are shared by the waiting requests, and not cached.
func TestRecentFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &slowLook{answers: make(chan any)}
		r := NewRecent(time.Hour, l.look)
		for _, answer := range []any{errors.New("no database"), nil} {
			waiting := ask(t.Context(), r, 3)
			l.answers <- answer
			for _, g := range waiting() {
				if g.err == nil || !strings.Contains(g.err.Error(), "no database") && !strings.Contains(g.err.Error(), "oh dear") {
					t.Errorf("%+v", g)
				}
			}
		}
		again := ask(t.Context(), r, 1)
		l.answers <- "here"
		if g := again(); g[0].value != "here" || l.begun != 3 {
			t.Errorf("%+v after %d looks", g, l.begun)
		}
	})
}

// A look that never answers ends after [WriteTimeout].
func TestRecentLookEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecent(time.Hour, (&slowLook{answers: make(chan any)}).look)
		if _, err := r.Get(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
