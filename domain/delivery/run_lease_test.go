package delivery

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckpointsAreRetriedWhileTheDatabaseIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 50, time.Hour), newProvider(SMS, 10, 100*time.Millisecond))
		r.LeaseFor = time.Minute
		r.depot.refuse = func(n int) error {
			if n%5 != 0 {
				return errAway
			}
			return nil
		}
		r.must()
		r.want(map[Outcome]int{Sent: 50})
		r.once()
	})
}

// TestADatabaseThatStaysAway: after half a minute the lease is left to others.
func TestADatabaseThatStaysAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 50, time.Hour), newProvider(SMS, 10, 100*time.Millisecond))
		r.depot.refuse = func(int) error { return errAway }
		start := time.Now()
		err := r.run()
		if !errors.Is(err, errAway) || time.Since(start) < saveFor || time.Since(start) > saveFor+5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if n := r.depot.attempts; n < 20 || n > 60 {
			t.Errorf("%d attempts in half a minute", n)
		}
	})
}

func TestAnUnexpectedErrorEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("column does not exist")
		r := newFixture(t, newFakeStore(SMS, 50, time.Hour), newProvider(SMS, 1, 100*time.Millisecond))
		r.depot.refuse = func(n int) error {
			if n == 3 {
				return broken
			}
			return nil
		}
		if err := r.run(); !errors.Is(err, broken) || len(r.provider.calls) > 4 || r.depot.done {
			t.Errorf("%v after %d calls", err, len(r.provider.calls))
		}
	})
}

func TestALeaseThatIsLostStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 50, time.Hour), newProvider(SMS, 1, 100*time.Millisecond))
		thief := time.AfterFunc(350*time.Millisecond, r.depot.steal)
		defer thief.Stop()
		if err := r.run(); !errors.Is(err, ErrLeaseLost) || len(r.depot.checkpoints) != 3 || len(r.provider.calls) > 5 {
			t.Errorf("%v after %d checkpoints and %d calls", err, len(r.depot.checkpoints), len(r.provider.calls))
		}
		if r.provider.inFlight != 0 {
			t.Error("a call is still in flight")
		}
	})
}

// TestALeaseThatIsLostDuringALongCall is noticed without a checkpoint.
func TestALeaseThatIsLostDuringALongCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 50, time.Hour), newProvider(SMS, 10, time.Minute))
		thief := time.AfterFunc(time.Second/2, r.depot.steal)
		defer thief.Stop()
		if err := r.run(); !errors.Is(err, ErrLeaseLost) || len(r.provider.calls) != 1 || r.depot.attempts != 0 || r.depot.extensions != 1 {
			t.Errorf("%v after %d calls, %d checkpoints and %d extensions", err, len(r.provider.calls), r.depot.attempts, r.depot.extensions)
		}
	})
}

func TestALongCallKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 20, time.Hour), newProvider(SMS, 10, 5*time.Minute))
		r.finish()
		r.want(map[Outcome]int{Sent: 20})
		r.once()
	})
}

// TestShutdownKeepsTheLeaseOfACallInFlight: during a shutdown no other worker takes the batch
// over, so no message is repeated that the provider has accepted already.
func TestShutdownKeepsTheLeaseOfACallInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 20, time.Hour), newProvider(SMS, 10, 30*time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(time.Second, cancel).Stop()
		ended := make(chan error, 1)
		go func() { ended <- r.RunNext(ctx, SMS) }()
		for range 29 {
			<-time.After(time.Second)
			if err := r.run(); !errors.Is(err, ErrNoWork) {
				t.Fatalf("another worker took the batch: %v", err)
			}
		}
		if err := <-ended; err != nil || r.depot.outcomes()[Sent] != 10 || len(r.provider.calls) != 1 {
			t.Errorf("%v, %v after %d calls", err, r.depot.outcomes(), len(r.provider.calls))
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 20})
		r.once()
	})
}

func TestShutdownRecordsWhatIsInFlightAndLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 10, time.Second))
		r.Parallel[SMS] = 2
		ctx, cancel := context.WithCancel(t.Context())
		defer time.AfterFunc(1500*time.Millisecond, cancel).Stop()
		start := time.Now()
		if err := r.RunNext(ctx, SMS); err != nil {
			t.Errorf("shutting down: %v", err)
		}
		r.once()
		if took := time.Since(start); took != 2*time.Second || r.depot.outcomes()[Sent] != 40 || r.depot.holder != nil {
			t.Errorf("after %v: %v, held %v", took, r.depot.outcomes(), r.depot.holder != nil)
		}
		if ready := time.Until(r.depot.readyAt); ready > 10*time.Millisecond || len(r.bell.tasks) != 1 {
			t.Errorf("somebody else may go on in %v, %d tasks", ready, len(r.bell.tasks))
		}
		if err := r.Drain(ctx, SMS); !errors.Is(err, context.Canceled) {
			t.Errorf("draining on: %v", err)
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 100})
		r.once()
	})
}
