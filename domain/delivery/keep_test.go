package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeepRenewsWhileWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var until atomic.Int64
		until.Store(time.Now().Add(9 * time.Second).UnixNano())
		renewals := 0
		err := Keep(t.Context(), 9*time.Second, func(context.Context) error {
			if renewals++; renewals%2 == 0 {
				return errAway // for a moment
			}
			until.Store(time.Now().Add(9 * time.Second).UnixNano())
			return nil
		}, func(ctx context.Context) error {
			for range 60 {
				<-time.After(time.Second)
				if ctx.Err() != nil || time.Now().UnixNano() >= until.Load() {
					t.Error("the lease has ended")
				}
			}
			return nil
		})
		if err != nil || renewals < 19 || renewals > 20 {
			t.Errorf("%v after %d renewals", err, renewals)
		}
	})
}

func TestKeepStopsWorkWhoseLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := Keep(t.Context(), 9*time.Second, func(context.Context) error { return ErrLeaseLost }, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, ErrLeaseLost) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestKeepPassesOnWhatBecameOfTheWork: a finished batch stays finished even if another worker has
// the lease by then. Other errors are not reported as a lost lease.
func TestKeepPassesOnWhatBecameOfTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := func(context.Context) error { return ErrLeaseLost }
		if err := Keep(t.Context(), time.Second, lost, func(context.Context) error { <-time.After(time.Minute); return nil }); err != nil {
			t.Errorf("finished work: %v", err)
		}
		if err := Keep(t.Context(), time.Second, lost, func(context.Context) error { return errAway }); !errors.Is(err, errAway) {
			t.Errorf("failed work: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		defer time.AfterFunc(10*time.Second, cancel).Stop()
		if err := Keep(ctx, time.Second, hangs, hangs); !errors.Is(err, context.Canceled) {
			t.Errorf("ended from outside: %v", err)
		}
	})
}
