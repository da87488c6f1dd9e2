// Package killpoint names the instants at which a failure is most harmful: right before and
// right after each commit, answer of a provider, entry of a stream and removal from the outbox.
// In the programs of lab/chaos/killable a test can make a process die, halt, fail or lose an
// answer at one of these instants. No other program contains the code for that: there a point
// only compares a variable with nil.
//
// A point is named once, by the operation that it surrounds. docs/proof.md says which test goes
// through the list of points.
package killpoint

import (
	"runtime"
	"strings"
)

// handle is called at each side of every point; nil = a point does nothing.
var handle func(point string, p Phase) error

// Handle lets f decide, before and after every point, which error the operation
// returns; nil for none. Only the programs of lab/chaos/killable call Handle, once,
// before any point is passed.
func Handle(f func(point string, p Phase) error) { handle = f }

// Before is the instant right before the operation is executed or committed.
func Before(point string) error { return pass(point, BeforeIt) }

// After is the instant right after it.
func After(point string) error { return pass(point, AfterIt) }

func pass(point string, p Phase) error {
	if handle == nil {
		return nil
	}
	return handle(point, p)
}

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
// as "work.Outbox.Relay"; "" where points do nothing. Closures have the name of
// the function around them.
func Caller() string {
	if handle == nil {
		return ""
	}
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

// A Phase is one side of an operation.
type Phase string

// The phases.
const (
	BeforeIt Phase = "before"
	AfterIt  Phase = "after"
)

// A Failure is one thing that can happen at a point.
type Failure string

// The failures.
const (
	// Kill ends the process with SIGKILL.
	Kill Failure = "kill"
	// Halt stops the process with SIGSTOP, together with all locks that it holds, until
	// the test continues it. The file [Hit] then contains the process id.
	Halt Failure = "halt"
	// Fail returns an error instead of carrying the operation out.
	Fail Failure = "error"
	// Lose returns an error although the operation was executed.
	Lose Failure = "lost"
)

// Failures returns the failures that are possible in the phase.
func Failures(p Phase) []Failure {
	if p == BeforeIt {
		return []Failure{Kill, Halt, Fail}
	}
	return []Failure{Kill, Lose}
}

// Armed returns the name of a file in the folder that [Variable] names. The file
// makes the failure happen at the next process that passes the point. That process
// renames the file to [Hit]. A process that passes a point without such a file
// creates a file named [Reached].
func Armed(point string, p Phase, f Failure) string {
	return "armed." + point + "." + string(p) + "." + string(f)
}

// Hit is the name of the file once the failure has happened.
func Hit(point string, p Phase, f Failure) string {
	return "hit." + point + "." + string(p) + "." + string(f)
}

// Reached is the name of the file that the first process passing the point creates.
func Reached(point string) string { return "reached." + point }

// Variable names the folder.
const Variable = "DROPBELL_TEST_KILLPOINTS"
