package shell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/increment"
)

// The cells have the sums of both groups, the differences for each user with the bounds of their
// intervals, and a word for each difference: beyond chance, or not enough data yet.
func TestIncrementCells(t *testing.T) {
	groups := func(users, every, others int64) *increment.Increment {
		i := &increment.Increment{Currency: "CNY", Reached: increment.Group{Users: users}, HeldOut: increment.Group{Users: users}}
		for n := range users {
			if n%every == 0 {
				i.Reached.Add(1, 1000)
			}
			if n%others == 0 {
				i.HeldOut.Add(1, 1000)
			}
		}
		return i
	}
	few, much := groups(90, 2, 3), groups(10_000, 2, 4)
	low, high := much.Revenue().Low, much.Revenue().High
	for name, c := range map[string]struct {
		of   *increment.Increment
		want []any
	}{
		"nobody is held out": {nil, make([]any, 15)},
		"few users": {few, []any{"CNY", int64(90), int64(45), int64(45_000), int64(90), int64(30), int64(30_000),
			NotEnough, 166.6667, nil, nil, NotEnough, 0.1667, nil, nil}},
		"more": {much, []any{"CNY", int64(10_000), int64(5000), int64(5_000_000), int64(10_000), int64(2500), int64(2_500_000),
			"more", 250.0, 237.0354, 262.9646, "more", 0.25, 0.237, 0.263}},
	} {
		if diff := cmp.Diff(c.want, IncrementCells(c.of)); diff != "" || len(c.want) != len(IncrementHead()) {
			t.Errorf("%s (%v to %v): %s", name, low, high, diff)
		}
	}
	for want, i := range map[string]*increment.Increment{"less": groups(10_000, 4, 2), "chance": groups(10_000, 3, 3)} {
		if cells := IncrementCells(i); cells[7] != want || cells[11] != want || cells[9] == nil {
			t.Errorf("%v, want %s", cells, want)
		}
	}
}
