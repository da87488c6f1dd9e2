// Package fault names the kinds of refusal with which a rule can answer. A fault is
// a package variable in the package of its rule, compared with [errors.Is]. One
// table at each edge of the program decides how a kind is answered there.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what the caller can do about a refusal.
type Kind int

// The kinds. Anything that is not a fault is a bug.
const (
	// Invalid input: the same request can never succeed.
	Invalid Kind = iota + 1
	// NotFound: the thing asked for does not exist, or not for this caller.
	NotFound
	// Conflict: the thing exists in a state that forbids the request.
	Conflict
	// Denied: the caller is known and may not do this.
	Denied
	// Unauthenticated: the caller is not known.
	Unauthenticated
	// Throttled: too many requests; the same request succeeds later.
	Throttled
	// Unavailable: something this depends on is down; retrying makes sense.
	Unavailable
)

// A Fault is one named refusal. Code is stable and part of the HTTP contract.
type Fault struct {
	Kind Kind
	Code string
	Text string
	// Key is the catalogues' key of the message in Text; see [Fault.Told].
	Key string
}

// New returns a fault to be kept in a package variable.
func New(kind Kind, code, text string) *Fault {
	return &Fault{Kind: kind, Code: code, Text: text}
}

func (f *Fault) Error() string { return f.Text }

// Is makes two faults with one code the same refusal.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code
}

// Because returns a copy of f whose text gives the reason in this case. The copy
// still matches f with [errors.Is].
func (f *Fault) Because(format string, args ...any) *Fault {
	return &Fault{Kind: f.Kind, Code: f.Code, Text: fmt.Sprintf(format, args...)}
}

// Told returns a copy of f that can be shown in every language. The catalogues' message
// for key contains the whole meaning of Text and says how to correct the problem.
// Numbers and quoted texts in Text are its arguments.
func (f *Fault) Told(key string) *Fault {
	return &Fault{Kind: f.Kind, Code: f.Code, Text: f.Text, Key: key}
}

// distinct is an error that does not match other faults with its code.
type distinct struct{ fault *Fault }

func (d *distinct) Error() string { return d.fault.Text }

// Unwrap returns the fault, for [KindOf] and [CodeOf].
func (d *distinct) Unwrap() error { return d.fault }

// Distinct returns an error with the kind, code and text of f. With [errors.Is] other faults with
// the same code do not match it. It is for faults that a program handles in its own way and that
// callers see under a code of several faults.
func Distinct(f *Fault) error { return &distinct{f} }

// A Waitlisted is the refusal Err for lack of stock, of a drop whose waitlist users can join.
type Waitlisted struct{ Err error }

func (w *Waitlisted) Error() string { return w.Err.Error() }

// Unwrap returns the refusal.
func (w *Waitlisted) Unwrap() error { return w.Err }

// ErrInvalid is the refusal of input that breaks one or more field rules; see [Fields].
var ErrInvalid = New(Invalid, "invalid_request", "the request is not valid")

// ErrStale is the refusal of an edit that is based on an old version.
var ErrStale = New(Conflict, "stale_version", "it was changed in the meantime; load it again and repeat your change")

// ErrOutcomeUnknown is the answer when the time limit ended while a change was
// being stored: the change may be stored or not. Repeating the request with the
// same idempotency key tells the outcome and changes nothing twice.
var ErrOutcomeUnknown = New(Unavailable, "overloaded",
	"no answer came in time, and the change may have been stored all the same; repeat the request with the same Idempotency-Key")

// A Field is one rule that one field of the input breaks. Message is a key of
// the catalogues with its default English text; Name is the wire name.
type Field struct {
	Name    string
	Key     string
	Message string
}

// Fields is a refusal that lists every offending field. It matches [ErrInvalid].
type Fields struct{ List []Field }

func (e *Fields) Error() string {
	if len(e.List) == 0 {
		return ErrInvalid.Text
	}
	return e.List[0].Name + ": " + e.List[0].Message
}

// Is reports whether target is [ErrInvalid].
func (e *Fields) Is(target error) bool { return errors.Is(ErrInvalid, target) }

// Add records that field name breaks a rule.
func (e *Fields) Add(name, key, format string, args ...any) {
	e.List = append(e.List, Field{Name: name, Key: key, Message: fmt.Sprintf(format, args...)})
}

// Err returns e if any field was added, otherwise nil.
func (e *Fields) Err() error {
	if len(e.List) == 0 {
		return nil
	}
	return e
}

// RetryAfter decorates a fault with the time after which a retry makes sense.
type RetryAfter struct {
	Err   error
	After time.Duration
}

func (r *RetryAfter) Error() string { return r.Err.Error() }

// Unwrap returns the fault itself.
func (r *RetryAfter) Unwrap() error { return r.Err }

// KeyOf returns the catalogues' key of the first fault in err's chain, or "".
func KeyOf(err error) string {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Key
	}
	return ""
}

// KindOf returns the kind of the first fault in err's chain, or 0 for a bug.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Kind
	}
	if _, ok := errors.AsType[*Fields](err); ok {
		return Invalid
	}
	return 0
}

// CodeOf returns the stable code of the first fault in err's chain, or "".
func CodeOf(err error) string {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Code
	}
	if _, ok := errors.AsType[*Fields](err); ok {
		return ErrInvalid.Code
	}
	return ""
}
