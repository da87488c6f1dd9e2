package figure_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/figure"
)

func TestShares(t *testing.T) {
	for _, c := range []struct{ parts, want []int64 }{
		{nil, []int64{}},
		{[]int64{0, 0}, []int64{0, 0}},
		{[]int64{-5, 0}, []int64{0, 0}},
		{[]int64{1, 1, 1}, []int64{334, 333, 333}},
		{[]int64{5, 0, 5}, []int64{500, 0, 500}},
		{[]int64{1, 999_999}, []int64{0, 1000}},
		{[]int64{2, 2, 3}, []int64{286, 286, 428}}, // 285.7, 285.7, 428.6
		{[]int64{1 << 60, 1 << 59, 1 << 59}, []int64{500, 250, 250}},
	} {
		if got := figure.Shares(c.parts); !slices.Equal(got, c.want) {
			t.Errorf("Shares(%v) = %v, want %v", c.parts, got, c.want)
		}
	}
}

// Shares add up to the whole, keep the order of the parts, and differ from the
// exact share by less than one unit.
func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 12).Draw(t, "parts")
		var sum, whole int64
		for _, n := range parts {
			sum += n
		}
		shares := figure.Shares(parts)
		for i, s := range shares {
			whole += s
			if exact := float64(parts[i]) / float64(max(1, sum)) * figure.Whole; float64(s) <= exact-1 || float64(s) >= exact+1 {
				t.Fatalf("part %d of %v: %d, exactly %f", i, parts, s, exact)
			}
			for j := range shares {
				if parts[i] > parts[j] && shares[i] < shares[j] {
					t.Fatalf("%v: the larger part has the smaller share: %v", parts, shares)
				}
			}
		}
		if sum > 0 && whole != figure.Whole {
			t.Fatalf("shares %v of %v add up to %d", shares, parts, whole)
		}
	})
}

// Lateness is the difference of the two instants as a page shows them.
func TestLate(t *testing.T) {
	at := time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		planned, happened time.Duration
		want              time.Duration
	}{
		{0, 1600 * time.Microsecond, time.Millisecond},
		{900 * time.Microsecond, 1100 * time.Microsecond, time.Millisecond},
		{0, 400 * time.Microsecond, 0},
		{0, -time.Second, 0},
		{0, 3 * time.Second, 3 * time.Second},
	} {
		if got := figure.Late(at.Add(c.planned), at.Add(c.happened)); got != c.want {
			t.Errorf("planned +%s, happened +%s: %s late, want %s", c.planned, c.happened, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 83_120: "83,120", 1_234_567: "1,234,567"} {
		if got := figure.Grouped(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
