package console

import (
	"context"
	"sync"
	"time"
)

// Throttle bounds attempts per key in the memory of one process: a burst of
// attempts, then one per interval. It implements [staff.Throttle].
type Throttle struct {
	burst int
	every time.Duration
	now   func() time.Time

	mu   sync.Mutex
	free map[string]time.Time // when the key's bucket is empty again
}

// maxThrottled bounds the memory an attacker with many addresses can fill.
const maxThrottled = 100_000

// NewThrottle allows burst attempts at once and then one per interval.
func NewThrottle(burst int, every time.Duration, now func() time.Time) *Throttle {
	return &Throttle{burst: burst, every: every, now: now, free: map[string]time.Time{}}
}

// Allow counts one attempt; see [staff.Throttle]. A refused attempt does not
// count, so that waiting as told is enough.
func (t *Throttle) Allow(_ context.Context, key string) (time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.free) >= maxThrottled {
		t.sweep(now)
	}
	next := t.free[key]
	if next.Before(now) {
		next = now
	}
	next = next.Add(t.every)
	if wait := next.Sub(now) - time.Duration(t.burst)*t.every; wait > 0 {
		return wait, nil
	}
	t.free[key] = next
	return 0, nil
}

// sweep forgets who has nothing to wait for, and if that is nobody, everybody:
// a full table must not lock people out.
func (t *Throttle) sweep(now time.Time) {
	for key, at := range t.free {
		if at.Before(now) {
			delete(t.free, key)
		}
	}
	if len(t.free) >= maxThrottled {
		clear(t.free)
	}
}
