//go:build killpoints

package killpoint

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

var folder = sync.OnceValue(func() string { return os.Getenv(Variable) })

// Before is the instant right before the operation is executed or committed.
func Before(point string) error { return pass(point, BeforeIt) }

// After is the instant right after it.
func After(point string) error { return pass(point, AfterIt) }

// Around runs the operation between its two instants.
func Around(point string, do func() error) error {
	if err := Before(point); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return After(point)
}

// Caller returns a point's name for the function that called its caller, such
// as "work.Outbox.Relay". Closures have the name of the function around them.
func Caller() string {
	pc := make([]uintptr, 1)
	if runtime.Callers(3, pc) == 0 {
		return "unknown"
	}
	frame, _ := runtime.CallersFrames(pc).Next()
	name := frame.Function[strings.LastIndexByte(frame.Function, '/')+1:]
	name = strings.NewReplacer("(*", "", ")", "", "[...]", "").Replace(name)
	kept := strings.Split(name, ".")
	for i, part := range kept {
		if i > 1 && strings.HasPrefix(part, "func") && strings.Trim(part[4:], "0123456789") == "" {
			kept = kept[:i]
			break
		}
	}
	return strings.Join(kept, ".")
}

// pass lets happen what a test has asked for, once.
func pass(point string, p Phase) error {
	if folder() == "" {
		return nil
	}
	for _, f := range Failures(p) {
		from, to := filepath.Join(folder(), Armed(point, p, f)), filepath.Join(folder(), Hit(point, p, f))
		if os.Rename(from, to) != nil { // only one process succeeds
			continue
		}
		if f == Kill {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		// The error that a broken connection gives to its caller.
		return &net.OpError{Op: string(f), Net: "killpoint", Err: errors.New(point)}
	}
	if file, err := os.OpenFile(filepath.Join(folder(), Reached(point)), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = file.Close()
	}
	return nil
}
