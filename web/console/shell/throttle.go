package shell

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"dropbell/web/middleware"
)

// Throttle bounds attempts per key in the memory of one process: a burst of
// attempts, then one per interval. It implements [staff.Throttle].
type Throttle struct {
	attempts *middleware.Limiter
	now      func() time.Time
}

// NewThrottle allows burst attempts at once and then one per interval.
func NewThrottle(burst int, every time.Duration, now func() time.Time) *Throttle {
	return &Throttle{middleware.NewAttempts(burst, every), now}
}

// Allow counts one attempt; see [staff.Throttle]. A refused attempt does not count, so that an
// attempt after the returned delay succeeds.
func (t *Throttle) Allow(_ context.Context, name string) (time.Duration, error) {
	return t.attempts.Allow(hashed(name), t.now()).RetryAfter, nil
}

// Return gives back one attempt; see [staff.Throttle].
func (t *Throttle) Return(_ context.Context, name string) error {
	t.attempts.Return(hashed(name), t.now())
	return nil
}

// hashed returns a key of fixed size for a name of any length, so that input does not determine how
// much memory is used.
func hashed(name string) middleware.LimitKey {
	h := sha256.Sum256([]byte(name))
	return middleware.LimitKey{High: binary.BigEndian.Uint64(h[:]), Low: binary.BigEndian.Uint64(h[8:])}
}
