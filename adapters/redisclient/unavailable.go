package redisclient

import (
	"fmt"
	"strconv"
	"time"

	"dropbell/domain/fault"
)

// ErrUnavailable is returned when Redis does not answer. Limits and breakers are optional: each
// caller decides whether to continue without them.
var ErrUnavailable = fault.New(fault.Unavailable, "overloaded", "the service is busy; try again in a moment").Told("fault.redis_away")

// CallTimeout bounds a limit or breaker check: callers continue without it, so
// waiting longer for an unavailable Redis would only slow them down.
const CallTimeout = 500 * time.Millisecond

// Unavailable marks a failed call as [ErrUnavailable] and keeps its cause for
// the log.
func Unavailable(call string, err error) error {
	return fmt.Errorf("redis %s: %w: %w", call, ErrUnavailable, err)
}

// Int reads a number that Redis keeps as text; absent, which is empty, is 0.
func Int(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return strconv.ParseInt(text, 10, 64)
}
