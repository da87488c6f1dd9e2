package app

import (
	"time"

	"golang.org/x/sys/unix"
)

// NewUptime returns a clock that changes of the system time do not affect. The clock continues
// while the process is stopped and while the machine is suspended.
func NewUptime() func() time.Duration {
	return func() time.Duration {
		var up unix.Timespec
		_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) // fails only for unknown clocks; this one is of 2011
		return time.Duration(up.Nano())
	}
}
