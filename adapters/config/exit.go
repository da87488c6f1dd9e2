package config

import "errors"

// The exit codes of the programs, apart from 0.
const (
	// ExitFailed is of work that failed, and of an audit that found a difference.
	ExitFailed = 1
	// ExitMistake is of a [Mistake].
	ExitMistake = 2
)

// A Mistake is an error in a program's environment or arguments.
type Mistake struct{ Err error }

// Error returns the text of Err.
func (m Mistake) Error() string { return m.Err.Error() }

// Unwrap returns the error within.
func (m Mistake) Unwrap() error { return m.Err }

// ExitCode returns the exit code of a program that ends with err, which may be nil.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if _, ok := errors.AsType[Mistake](err); ok {
		return ExitMistake
	}
	return ExitFailed
}
