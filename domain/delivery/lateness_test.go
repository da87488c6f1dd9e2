package delivery

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func spanOf(d time.Duration) int {
	for i, bound := range latenessBounds {
		if d < bound {
			return i
		}
	}
	return len(latenessBounds)
}

func TestLatenessBoundsAscend(t *testing.T) {
	b := LatenessBounds()
	if !slices.IsSorted(b) || len(slices.Compact(slices.Clone(b))) != len(b) || b[0] <= 0 {
		t.Errorf("%v", b)
	}
}

// A quantile is never better than the truth, and worse by one span at most.
func TestLatenessQuantile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		late := rapid.SliceOfN(rapid.Int64Range(-int64(time.Second), int64(59*time.Minute)), 1, 300).Draw(t, "late")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		l, half := Lateness{}, Lateness{}
		for i, d := range late {
			if i%2 == 0 {
				half[spanOf(time.Duration(d))]++
			} else {
				l[spanOf(time.Duration(d))]++
			}
		}
		l = l.Plus(half)
		upTo, bounded := l.Quantile(q)
		if !bounded || l.Messages() != int64(len(late)) {
			t.Fatalf("%v %v of %d messages", upTo, bounded, l.Messages())
		}
		within, below := 0, 0
		lower := time.Duration(-1 << 62)
		if i := slices.Index(latenessBounds[:], upTo); i > 0 {
			lower = latenessBounds[i-1]
		}
		for _, d := range late {
			if time.Duration(d) < upTo {
				within++
			}
			if time.Duration(d) < lower {
				below++
			}
		}
		if float64(within) < q*float64(len(late)) {
			t.Fatalf("only %d of %d are within %v, want the share %v", within, len(late), upTo, q)
		}
		if below > 0 && float64(below) >= q*float64(len(late)) {
			t.Fatalf("%d of %d are within %v already, and %v was said", below, len(late), lower, upTo)
		}
	})
}

func TestLatenessWithoutEnd(t *testing.T) {
	if upTo, bounded := (Lateness{}).Quantile(0.5); bounded || upTo != 0 {
		t.Errorf("nothing counted: %v %v", upTo, bounded)
	}
	l := Lateness{spanOf(time.Second): 98, len(latenessBounds): 2}
	if upTo, bounded := l.Quantile(0.5); upTo != 1250*time.Millisecond || !bounded {
		t.Errorf("median %v %v", upTo, bounded)
	}
	if upTo, bounded := l.Quantile(0.99); upTo != time.Hour || bounded {
		t.Errorf("99th percentile %v %v", upTo, bounded)
	}
}

func TestLatestLeavesOthersOut(t *testing.T) {
	last := len(LatenessBounds())
	for _, c := range []struct {
		counted Lateness
		others  []time.Duration
		upTo    time.Duration
		bounded bool
	}{
		{Lateness{}, nil, 0, false},
		{Lateness{0: 3, 2: 4}, nil, 30 * time.Millisecond, true},
		{Lateness{0: 3, last: 1}, nil, 0, false},
		{Lateness{0: 3, last: 1}, []time.Duration{9 * time.Hour}, 10 * time.Millisecond, true},
		{Lateness{0: 3, last: 2}, []time.Duration{9 * time.Hour}, 0, false},
		// Counted a moment after it was recorded, in the next span.
		{Lateness{0: 3, 3: 1}, []time.Duration{25 * time.Millisecond}, 10 * time.Millisecond, true},
		// A span begins with its bound.
		{Lateness{0: 3, 1: 1}, []time.Duration{10 * time.Millisecond}, 10 * time.Millisecond, true},
		{Lateness{0: 1}, []time.Duration{time.Millisecond}, 0, false},
	} {
		if upTo, bounded := c.counted.Latest(c.others); upTo != c.upTo || bounded != c.bounded {
			t.Errorf("%v without %v: %v %v", c.counted, c.others, upTo, bounded)
		}
	}
}
