package detach_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/detach"
)

type key struct{}

// TestContext: a caller that hangs up ends nothing; its deadline does, and
// without one the write ends after Longest. Values stay.
func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
		write, cancel := detach.Context(caller)
		defer cancel()
		hangUp()
		if write.Err() != nil || write.Value(key{}) != 7 {
			t.Errorf("%v %v", write.Err(), write.Value(key{}))
		}
		began := time.Now()
		<-write.Done()
		if took := time.Since(began); took != detach.Longest || write.Err() != context.DeadlineExceeded {
			t.Errorf("it ended after %v: %v", took, write.Err())
		}

		patient, stop := context.WithTimeout(t.Context(), time.Second)
		began = time.Now()
		stop()
		n, err := detach.Write(patient, func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 3, ctx.Err()
		})
		if took := time.Since(began); n != 3 || err != context.DeadlineExceeded || took != time.Second {
			t.Errorf("%d %v after %v", n, err, took)
		}
	})
}

// TestWithin: the context outlives its caller, ends in time, and is the one to write
// in; one that is derived from it and cancelled is not.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, 7))
		request, answered := detach.Within(caller, time.Second)
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
