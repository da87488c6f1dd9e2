package parts

import (
	"strconv"
	"testing"
)

func number(t *testing.T, s string) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// laid fails unless the spans lie side by side inside the bar.
func laid(t *testing.T, list []Span) (end float64) {
	t.Helper()
	for _, s := range list {
		x, width := number(t, s.X), number(t, s.Width)
		if x < end-0.2 || width <= 0 || x+width > 1000.2 {
			t.Errorf("bar: %+v does not fit behind %.1f", s, end)
		}
		end = x + width
	}
	return end
}

func TestBarsShowEveryPieceAndNeverOverflow(t *testing.T) {
	for _, c := range []struct {
		n     [3]int64
		total int64
		seen  int
		full  bool
	}{
		{[3]int64{0, 0, 0}, 0, 0, false},
		{[3]int64{5, 0, 0}, 0, 0, false},
		{[3]int64{1, 0, 1}, 1_000_000, 2, false},
		{[3]int64{999_998, 1, 1}, 1_000_000, 3, true},
		{[3]int64{50, 25, 25}, 100, 3, true},
		{[3]int64{80, 80, 80}, 100, 3, true},
	} {
		list := spans([]Piece{{"a", c.n[0]}, {"b", c.n[1]}, {"c", c.n[2]}}, c.total)
		end := laid(t, list)
		if len(list) != c.seen || (end > 999) != c.full {
			t.Errorf("%v of %d: %+v", c.n, c.total, list)
		}
	}
}
