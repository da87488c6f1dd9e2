// Package killable makes a process die, halt, fail or lose an answer at the named points of
// package killpoint when a test requests it. The programs in the folders below are the product's
// programs with this package. They are compiled from the same packages, so that only linking
// them takes extra time.
package killable

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"dropbell/killpoint"
)

// Arm connects the points of this process with the requests of tests. It must be called once,
// before any point is passed.
func Arm() { killpoint.Handle(pass) }

var folder = sync.OnceValue(func() string { return os.Getenv(killpoint.Variable) })

// pass carries out the failure that a test has requested for the point, once.
func pass(point string, p killpoint.Phase) error {
	if folder() == "" {
		return nil
	}
	for _, f := range killpoint.Failures(p) {
		from, to := filepath.Join(folder(), killpoint.Armed(point, p, f)), filepath.Join(folder(), killpoint.Hit(point, p, f))
		if os.Rename(from, to) != nil { // only one process succeeds
			continue
		}
		switch f {
		case killpoint.Kill:
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		case killpoint.Halt:
			if err := os.WriteFile(to, []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
				return err // the test could not let it go on
			}
			return syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		}
		// The error that a broken connection gives its caller.
		return &net.OpError{Op: string(f), Net: "killpoint", Err: errors.New(point)}
	}
	if file, err := os.OpenFile(filepath.Join(folder(), killpoint.Reached(point)), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = file.Close()
	}
	return nil
}
