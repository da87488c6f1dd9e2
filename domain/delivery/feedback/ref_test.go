package feedback_test

import (
	"math"
	"strings"
	"testing"

	"dropbell/domain/delivery/feedback"
)

func TestAReferenceIsReadBack(t *testing.T) {
	r := feedback.NewRefs("a secret, an older one")
	for _, want := range []feedback.Ref{{}, {Batch: 1, User: 2}, {Batch: 987654321, User: 12345678}, {Batch: math.MaxInt64, User: math.MaxInt64}} {
		text := r.Text(want)
		if len(text) > 45 {
			t.Errorf("%v: %d characters", want, len(text))
		}
		for _, s := range []string{text, strings.ToUpper(text)} {
			if got, ok := r.Parse(s); !ok || got != want {
				t.Errorf("%s is %v, %v, not %v", s, got, ok, want)
			}
		}
		if got, ok := r.Parse(feedback.NewRefs("an older one").Text(want)); !ok || got != want {
			t.Errorf("by the older secret: %v, %v", got, ok)
		}
	}
}

func TestNoReferenceIsReadThatWasNotWritten(t *testing.T) {
	r := feedback.NewRefs("a secret")
	good := r.Text(feedback.Ref{Batch: 77, User: 99})
	forged := []string{"", "a", good[1:], good + "0", good[:len(good)-1], feedback.NewRefs("another").Text(feedback.Ref{Batch: 77, User: 99}), "zzzz", strings.Repeat("v", 45), strings.Repeat("0", 500)}
	for i := range good {
		changed := []byte(good)
		changed[i] = 'a' + (changed[i]+1)%4
		if string(changed) != good {
			forged = append(forged, string(changed))
		}
	}
	for _, s := range forged {
		// The last character has bits to spare.
		if got, ok := r.Parse(s); ok && got != (feedback.Ref{Batch: 77, User: 99}) {
			t.Errorf("%q is read as %v", s, got)
		}
	}
	var none feedback.Refs
	if text := none.Text(feedback.Ref{Batch: 1, User: 1}); text != "" {
		t.Errorf("without a secret: %q", text)
	}
	if _, ok := none.Parse(good); ok {
		t.Error("read without a secret")
	}
}
