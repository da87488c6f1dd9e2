package fault_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"dropbell/domain/fault"
)

var (
	errGone = fault.New(fault.NotFound, "gone", "it is gone")
	errFull = fault.New(fault.Unavailable, "full", "it is full")
)

func TestFaultsAreComparedByCode(t *testing.T) {
	wrapped := fmt.Errorf("load: %w", errGone.Because("number %d is gone", 7))
	if !errors.Is(wrapped, errGone) || errors.Is(wrapped, errFull) || errors.Is(wrapped, fault.ErrInvalid) {
		t.Errorf("%v matches the wrong faults", wrapped)
	}
	if errors.Is(errGone, errors.New("it is gone")) || errors.Is(errors.New("it is gone"), errGone) {
		t.Error("a fault equals an error with the same text")
	}
	if wrapped.Error() != "load: number 7 is gone" || errGone.Error() != "it is gone" {
		t.Errorf("texts %q and %q", wrapped, errGone)
	}
}

// TestADistinctFaultMatchesOnlyItself: callers see its kind, code and text all the same.
func TestADistinctFaultMatchesOnlyItself(t *testing.T) {
	alone := fault.Distinct(fault.New(fault.Unavailable, "full", "it is being emptied"))
	wrapped := fmt.Errorf("fill: %w", alone)
	if !errors.Is(wrapped, alone) || errors.Is(errFull, alone) || errors.Is(errFull.Because("x"), alone) {
		t.Error("a distinct fault is compared by code")
	}
	if !errors.Is(wrapped, errFull) || fault.KindOf(wrapped) != fault.Unavailable || fault.CodeOf(wrapped) != "full" || alone.Error() != "it is being emptied" {
		t.Errorf("callers see %v, %s", fault.KindOf(wrapped), fault.CodeOf(wrapped))
	}
}

func TestAFaultThatIsToldStaysTheSameRefusal(t *testing.T) {
	told := errGone.Because("number %d is gone", 7).Told("fault.gone_number")
	wrapped := fmt.Errorf("load: %w", told)
	if !errors.Is(wrapped, errGone) || told.Error() != "number 7 is gone" || fault.KindOf(told) != fault.NotFound || fault.KeyOf(wrapped) != "fault.gone_number" {
		t.Errorf("%+v", told)
	}
	for _, err := range []error{nil, errGone, errors.New("x"), &fault.Fields{}, told.Because("number 8 is gone")} {
		if key := fault.KeyOf(err); key != "" {
			t.Errorf("%v is told as %s", err, key)
		}
	}
}

func TestKindAndCodeOfAChain(t *testing.T) {
	fields := &fault.Fields{}
	fields.Add("name", "rule.required", "is required")
	joined := fmt.Errorf("%w (%w)", errFull, errors.New("connection refused"))
	for _, c := range []struct {
		name string
		err  error
		kind fault.Kind
		code string
	}{
		{"nothing", nil, 0, ""},
		{"a bug", errors.New("nil map"), 0, ""},
		{"a fault", errGone, fault.NotFound, "gone"},
		{"a wrapped fault", fmt.Errorf("save: %w", errFull), fault.Unavailable, "full"},
		{"the fault before its cause", joined, fault.Unavailable, "full"},
		{"an explained fault", errGone.Because("x"), fault.NotFound, "gone"},
		{"with a pause", &fault.RetryAfter{Err: errFull, After: time.Second}, fault.Unavailable, "full"},
		{"fields", fields, fault.Invalid, "invalid_request"},
		{"wrapped fields", fmt.Errorf("check: %w", fields), fault.Invalid, "invalid_request"},
	} {
		if got := fault.KindOf(c.err); got != c.kind {
			t.Errorf("%s: kind %d, want %d", c.name, got, c.kind)
		}
		if got := fault.CodeOf(c.err); got != c.code {
			t.Errorf("%s: code %q, want %q", c.name, got, c.code)
		}
	}
}

func TestFields(t *testing.T) {
	e := &fault.Fields{}
	if err := e.Err(); err != nil {
		t.Fatalf("no field was added and the error is %v", err)
	}
	e.Add("stock", "rule.stock", "must be at least %d", 1)
	e.Add("name", "rule.required", "is required")
	err := e.Err()
	if !errors.Is(err, fault.ErrInvalid) || errors.Is(err, fault.ErrStale) {
		t.Errorf("%v matches the wrong faults", err)
	}
	if err.Error() != "stock: must be at least 1" {
		t.Errorf("text %q", err)
	}
	want := []fault.Field{{Name: "stock", Key: "rule.stock", Message: "must be at least 1"}, {Name: "name", Key: "rule.required", Message: "is required"}}
	if len(e.List) != 2 || e.List[0] != want[0] || e.List[1] != want[1] {
		t.Errorf("fields %+v", e.List)
	}
}

func TestRetryAfterKeepsTheFault(t *testing.T) {
	err := fmt.Errorf("try: %w", &fault.RetryAfter{Err: errFull.Because("all seats taken"), After: 3 * time.Second})
	found, ok := errors.AsType[*fault.RetryAfter](err)
	if !ok || found.After != 3*time.Second || !errors.Is(err, errFull) || found.Error() != "all seats taken" {
		t.Errorf("%v: found %+v", err, found)
	}
}
