package delivery

import (
	"slices"
	"testing"

	"dropbell/domain/user"
)

// A test divides a stated share of the users who are not held out. The decision changes the content
// of the remaining users only.
func TestATestDividesAShare(t *testing.T) {
	c := Copy{Variants: []Variant{{Percent: 50}, {Percent: 50}}, HoldOut: 10, Test: &Test{Share: 20, By: ByOpened, Minutes: 60}}
	counts := map[int]int{}
	const n = 100_000
	decided := c
	decided.Test = &Test{Share: 20, By: ByOpened, Minutes: 60, Winner: new(1)}
	for id := range user.ID(n) {
		group := c.Group(5, id+1)
		counts[group]++
		want := group
		if group == Remaining {
			want = 1
		}
		if c.Pick(5, id+1) != group || decided.Pick(5, id+1) != want || decided.Group(5, id+1) != group {
			t.Fatalf("user %d of group %d gets %d, and %d after the decision", id+1, group, c.Pick(5, id+1), decided.Pick(5, id+1))
		}
	}
	for group, want := range map[int]float64{HeldOut: 0.1, 0: 0.09, 1: 0.09, Remaining: 0.72} {
		if got := float64(counts[group]) / n; got < want-0.01 || got > want+0.01 {
			t.Errorf("group %d: %.3f, want %.2f", group, got, want)
		}
	}
	if got := c.Shares(); !slices.Equal(got, []int64{90, 90, 720, 100}) || !slices.Equal(c.Groups(), []int{0, 1, Remaining, HeldOut}) {
		t.Errorf("shares %v of %v", got, c.Groups())
	}
	if !c.Equal(decided) {
		t.Error("the decision makes another content")
	}
	if decided.Test.Minutes = 70; c.Equal(decided) {
		t.Error("another time of the test is no difference")
	}
}
