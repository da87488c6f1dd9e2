package child

import (
	"context"
	"fmt"
	"syscall"
	"time"
)

// Children returns the ids of the direct children of pid.
func Children(pid int) []int {
	var found []int
	for _, s := range processes() {
		if s.parent == pid && !s.zombie {
			found = append(found, s.pid)
		}
	}
	return found
}

// Alive reports whether pid is running. A zombie process is not running.
func Alive(pid int) bool {
	s, ok := process(pid)
	return ok && !s.zombie
}

// End stops a process that is not a child of this process: first with sig, and after grace with
// SIGKILL.
func End(ctx context.Context, pid int, sig syscall.Signal, grace time.Duration) error {
	for _, s := range []syscall.Signal{sig, syscall.SIGKILL} {
		_ = syscall.Kill(pid, s) // an error means that the process has ended already
		wait, cancel := context.WithTimeout(ctx, grace)
		err := Gone(wait, pid)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("process %d survives being killed", pid)
}

// Gone waits until none of the processes is running any more.
func Gone(ctx context.Context, pids ...int) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for Alive(pid) {
			select {
			case <-ctx.Done():
				return fmt.Errorf("process %d is still running: %w", pid, ctx.Err())
			case <-tick.C:
			}
		}
	}
	return nil
}

// Parent returns the process id of pid's parent; 0 = pid is not running.
func Parent(pid int) int {
	s, _ := process(pid)
	return s.parent
}
