package cell

import "testing"

func TestOf(t *testing.T) {
	for _, c := range []struct {
		id, since int64
		want      Number
	}{
		{1, 1, 0}, {2, 1, 1}, {64, 1, 63}, {65, 1, 0}, {130, 1, 1},
		// Ids below since are older than cells.
		{64, 129, 0}, {128, 129, 0}, {129, 129, 0}, {131, 129, 2},
		{1<<62 + 1, 1, 0},
	} {
		if got := Of(c.id, c.since); got != c.want {
			t.Errorf("id %d, named since %d: cell %d, want %d", c.id, c.since, got, c.want)
		}
	}
}

func TestValid(t *testing.T) {
	for n, want := range map[Number]bool{-1: false, 0: true, 63: true, 64: false} {
		if n.Valid() != want {
			t.Errorf("%d: %v", n, n.Valid())
		}
	}
}
