package feedback_test

import (
	"math/rand/v2"
	"testing"

	"dropbell/domain/delivery/feedback"
)

// In whatever order and however often reports come, the highest one remains.
func TestTheOrderOfReportsDoesNotMatter(t *testing.T) {
	order := []feedback.Status{"", feedback.SoftBounced, feedback.Delivered, feedback.Bounced, feedback.Complained}
	for i, before := range order {
		for j, s := range order[1:] {
			if s.Replaces(before) != (j+1 > i) {
				t.Errorf("%q after %q: %v", s, before, s.Replaces(before))
			}
		}
		if before.Valid() != (before != "") {
			t.Errorf("%q is valid: %v", before, before.Valid())
		}
	}
	for range 200 {
		known, highest := feedback.Status(""), 0
		for range 10 {
			n := 1 + rand.IntN(4)
			if order[n].Replaces(known) {
				known = order[n]
			}
			highest = max(highest, n)
		}
		if known != order[highest] {
			t.Fatalf("%q remains, not %q", known, order[highest])
		}
	}
	if feedback.Status("odd").Valid() || feedback.Status("odd").Replaces("") {
		t.Error("an unknown status was taken")
	}
}

func TestTallies(t *testing.T) {
	if sum := (feedback.Tally{Delivered: 1, Bounced: 2, Complained: 3}).Plus(feedback.Tally{Delivered: 10}); sum != (feedback.Tally{Delivered: 11, Bounced: 2, Complained: 3}) ||
		!sum.Any() || sum.Unconfirmed(20) != 7 {
		t.Error(sum)
	}
	var all feedback.Tally
	for _, s := range []feedback.Status{"", feedback.SoftBounced, feedback.Delivered, feedback.Bounced, feedback.Complained} {
		all.Count(s)
	}
	if all != (feedback.Tally{Delivered: 2, Bounced: 2, Complained: 1}) {
		t.Errorf("of each one: %+v", all)
	}
}
