//go:build !linux

package app

import "time"

// NewUptime returns a clock that nothing sets. It continues while the process is halted, but
// perhaps not while the machine is suspended.
func NewUptime() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}
