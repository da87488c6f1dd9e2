package delivery

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// TestManyThingsGoWrong combines slow, failing and throttling answers, an intermittent database,
// workers that stop, and a wrong clock. It checks the guarantee of each delivery: one outcome for
// each recipient, sent at most once unless a worker lost its lease.
func TestManyThingsGoWrong(t *testing.T) {
	for seed := range uint64(150) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			roll := func(n int) int {
				mu.Lock()
				defer mu.Unlock()
				return rng.IntN(n)
			}
			users := 1 + roll(300)
			r := newFixture(t, newFakeStore(SMS, users, time.Duration(1+roll(300))*time.Second), newProvider(SMS, 1+roll(50), time.Duration(roll(3000))*time.Millisecond))
			r.Parallel[SMS] = roll(5)
			drift := time.Duration(roll(1200)-600) * time.Second
			r.Now = func() time.Time { return time.Now().Add(drift) }
			r.provider.answer = func(user.ID, int) Result {
				switch n := roll(100); {
				case n < 20:
					return Result{Detail: "502"}
				case n < 25:
					return Result{Status: Permanent}
				case n < 35:
					return Result{Status: Throttled, After: time.Duration(roll(20)) * time.Second}
				}
				return Result{Status: Delivered}
			}
			r.depot.refuse = func(int) error {
				if roll(5) == 0 {
					return errAway
				}
				return nil
			}
			r.gate.admit = func(int) time.Duration { return time.Duration(max(0, roll(10)-7)) * time.Second }
			for range users {
				if roll(10) == 0 {
					r.depot.optedOut[user.ID(1+roll(users))] = true
				}
			}
			for !r.depot.done {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+roll(20_000))*time.Millisecond)
				_ = r.RunNext(ctx, SMS)
				cancel()
				<-time.After(time.Duration(1+roll(2000)) * time.Millisecond) // the bubble's clock
				if time.Since(r.depot.worthless) > time.Hour {
					t.Fatalf("seed %d: never done: %v", seed, r.depot.outcomes())
				}
			}
			r.once()
			left := r.depot.outcomes()
			if left[InFlight] != 0 || left[Failed] != 0 {
				t.Errorf("seed %d: done with %v", seed, left)
			}
			for _, at := range r.provider.calls {
				if !at.Before(r.depot.worthless) {
					t.Errorf("seed %d: a call began %v after the opening", seed, at.Sub(r.depot.worthless))
				}
			}
		})
	}
}

// TestResultsThatArriveTogether: two calls end at the same moment while the batch is being
// released. Neither result may be overlooked.
func TestResultsThatArriveTogether(t *testing.T) {
	for range 20_000 {
		d := newFakeStore(SMS, 4, time.Hour)
		r := newFixture(t, d, newProvider(SMS, 1, 0))
		r.Parallel[SMS] = 4
		r.must()
		if !d.done || !slices.EqualFunc(d.due, []int{1, 1, 1, 1}, func(id user.ID, n int) bool { return d.sent[id] == n }) {
			t.Fatalf("sent %v, recorded %v", r.provider.got, d.sent)
		}
	}
}
