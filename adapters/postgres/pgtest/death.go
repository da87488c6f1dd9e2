package pgtest

import "errors"

// ErrDied is returned by the calls of a process that has died.
var ErrDied = errors.New("the process has died")

// A Death is the death of a process that makes calls one after the other. Each call has two instants, before and after it; from
// the instant At on, counted from 1, all calls fail. 0 = the process does not die.
type Death struct{ At, passed int }

// Died reports whether the process has died.
func (d *Death) Died() bool { return d.At > 0 && d.passed >= d.At }

// Around makes a call.
func (d *Death) Around(do func() error) error {
	if d.passed++; d.Died() {
		return ErrDied
	}
	if err := do(); err != nil {
		return err
	}
	if d.passed++; d.Died() {
		return ErrDied
	}
	return nil
}
