package shell

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"
)

// Throttle bounds attempts per key in the memory of one process: a burst of
// attempts, then one per interval. It implements [staff.Throttle].
type Throttle struct {
	burst int
	every time.Duration
	now   func() time.Time

	mu sync.Mutex
	// free holds when the key's bucket is empty again. Keys are hashed: what
	// somebody types must not decide how much is kept of it.
	free  map[[sha256.Size]byte]time.Time
	swept time.Time
}

// maxThrottled bounds the memory an attacker with many addresses can fill.
const maxThrottled = 100_000

// NewThrottle allows burst attempts at once and then one per interval.
func NewThrottle(burst int, every time.Duration, now func() time.Time) *Throttle {
	return &Throttle{burst: burst, every: every, now: now, free: map[[sha256.Size]byte]time.Time{}, swept: now()}
}

// Allow counts one attempt; see [staff.Throttle]. A refused attempt does not
// count, so that waiting as told is enough.
func (t *Throttle) Allow(_ context.Context, name string) (time.Duration, error) {
	key := sha256.Sum256([]byte(name))
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.sweep(now)
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

// Return gives back one attempt; see [staff.Throttle].
func (t *Throttle) Return(_ context.Context, name string) error {
	key := sha256.Sum256([]byte(name))
	t.mu.Lock()
	defer t.mu.Unlock()
	if at := t.free[key].Add(-t.every); at.After(t.now()) {
		t.free[key] = at
	} else {
		delete(t.free, key)
	}
	return nil
}

// sweep forgets who has nothing to wait for, as soon as everybody of the last
// time may have come to that, and any if there are too many: a full table must
// not lock people out.
func (t *Throttle) sweep(now time.Time) {
	full := len(t.free) >= maxThrottled
	if !full && now.Sub(t.swept) < time.Duration(t.burst)*t.every {
		return
	}
	t.swept = now
	for key, at := range t.free {
		if !at.After(now) {
			delete(t.free, key)
		}
	}
	for key := range t.free {
		if len(t.free) < maxThrottled*7/8 {
			return
		}
		delete(t.free, key)
	}
}
