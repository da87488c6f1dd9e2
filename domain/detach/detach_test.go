package detach_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/detach"
)

type key struct{}

// TestContext: a caller that hangs up does not end the write. Its deadline does;
// without a deadline the write ends after Longest. Values stay.
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

// own is a context that is detached already.
type own struct{ context.Context }

func (o own) Value(key any) any {
	if key == (detach.Self{}) {
		return o
	}
	return o.Context.Value(key)
}

// TestSelf: Context returns a detached context unchanged, also a context that only adds values
// to it. A derived context with a cancellation of its own gets a new detached context.
func TestSelf(t *testing.T) {
	limited, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	request := own{limited}
	for _, ctx := range []context.Context{request, context.WithValue(request, key{}, 7)} {
		write, done := detach.Context(ctx)
		done()
		if write != ctx || write.Err() != nil {
			t.Errorf("%v %v", write, write.Err())
		}
	}
	derived, stop := context.WithCancel(request)
	other, done := detach.Context(derived)
	defer done()
	if stop(); other.Err() != nil {
		t.Error("a write in a derived context ends with it")
	}
}
