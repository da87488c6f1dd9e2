//go:build !linux

package app

import "time"

// NewUptime returns a clock that changes of the system time do not affect. The clock continues
// while the process is stopped, but perhaps not while the machine is suspended.
func NewUptime() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
