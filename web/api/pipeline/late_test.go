package pipeline

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/detach"
)

type key struct{}

// TestDetached: the context outlives its caller and ends in time. A write uses the context itself;
// a cancelled context derived from it does not end a write.
func TestDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
		request, answered := detached(caller, time.Second)
		defer answered()
		hangUp()
		write, cancel := detach.Context(request)
		cancel() // of a write that has returned; the request goes on
		if write != request || write.Err() != nil || write.Value(key{}) != 7 {
			t.Errorf("%v %v", write.Err(), write.Value(key{}))
		}
		derived, stop := context.WithCancel(request)
		other, done := detach.Context(derived)
		defer done()
		stop()
		if other.Err() != nil {
			t.Error("a write in a derived context ends with it")
		}
		began := time.Now()
		<-write.Done()
		<-other.Done()
		if took := time.Since(began); took != time.Second || write.Err() != context.DeadlineExceeded {
			t.Errorf("it ended after %v: %v", took, write.Err())
		}
	})
}

// TestTimely: the context behaves like a context of [context.WithTimeout], whether it is first
// asked before or after its end, and in contexts derived from it.
func TestTimely(t *testing.T) {
	for name, limit := range map[string]func(context.Context, time.Duration) (context.Context, context.CancelFunc){
		"timely": timely, "as expected": context.WithTimeout} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { limits(t, limit) })
		})
	}
}

func limits(t *testing.T, limit func(context.Context, time.Duration) (context.Context, context.CancelFunc)) {
	caller, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
	timed, cancel := limit(caller, time.Second)
	defer cancel()
	if at, ends := timed.Deadline(); !ends || time.Until(at) != time.Second || timed.Value(key{}) != 7 || context.Cause(timed) != nil {
		t.Errorf("ends at %v (%v)", at, ends)
	}
	began := time.Now()
	derived, stop := context.WithCancel(timed)
	defer stop()
	<-derived.Done()
	if took := time.Since(began); took != time.Second || timed.Err() != context.DeadlineExceeded || derived.Err() != context.DeadlineExceeded ||
		context.Cause(derived) != context.DeadlineExceeded || timed.Value(key{}) != 7 {
		t.Errorf("ended after %v: %v, %v", took, timed.Err(), derived.Err())
	}

	left, answered := limit(caller, time.Second) // and not asked before the caller is gone
	hangUp()
	if <-left.Done(); left.Err() != context.Canceled {
		t.Errorf("the caller hung up: %v", left.Err())
	}
	answered()
	unasked, end := limit(t.Context(), time.Second)
	end()
	end()
	if <-unasked.Done(); unasked.Err() != context.Canceled {
		t.Errorf("asked after its end: %v", unasked.Err())
	}
	overdue, drop := limit(t.Context(), time.Second)
	defer drop()
	<-time.After(2 * time.Second)
	if <-overdue.Done(); overdue.Err() != context.DeadlineExceeded {
		t.Errorf("asked after its deadline: %v", overdue.Err())
	}
	sooner, done := limit(overdue, time.Hour)
	defer done()
	if <-sooner.Done(); sooner.Err() != context.DeadlineExceeded {
		t.Errorf("the caller's deadline comes first: %v", sooner.Err())
	}
}
