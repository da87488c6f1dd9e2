package claim_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/claim"
)

func TestLedgerDifference(t *testing.T) {
	for _, c := range []struct {
		name string
		l    claim.Ledger
		want int64
	}{
		{"nothing", claim.Ledger{}, 0},
		{"untouched", claim.Ledger{Total: 10, OnSale: 10}, 0},
		{"under way", claim.Ledger{Total: 10, OnSale: 3, Writing: 2, Issued: 5, PerUser: 5}, 0},
		{"oversold", claim.Ledger{Total: 10, OnSale: 0, Issued: 11, PerUser: 11}, 1},
		{"lost", claim.Ledger{Total: 10, OnSale: 3, Issued: 5, PerUser: 5}, 2},
		{"counted wrongly per user", claim.Ledger{Total: 10, OnSale: 5, Issued: 5, PerUser: 4}, 1},
		{"too many for one", claim.Ledger{Total: 10, OnSale: 8, Issued: 2, PerUser: 2, OverLimit: 1}, 1},
		{"one error must not hide another", claim.Ledger{Total: 10, OnSale: 6, Issued: 5, PerUser: 4}, 2},
	} {
		if got := c.l.Difference(); got != c.want {
			t.Errorf("%s: off by %d, want %d", c.name, got, c.want)
		}
	}
}

func TestCurveHasNoGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := time.Duration(rapid.IntRange(1, 60).Draw(t, "seconds")) * time.Second
		var sold []claim.Point
		var want, most int64
		step := 0
		for range rapid.IntRange(0, 20).Draw(t, "steps") {
			n := rapid.Int64Range(1, 1000).Draw(t, "issued")
			at := opens.Add(time.Duration(step) * width)
			sold = append(sold, claim.Point{At: at, Issued: n, Most: n, MostAt: at})
			want, most = want+n, max(most, n)
			step += rapid.IntRange(1, 5).Draw(t, "gap")
		}
		c := claim.NewCurve(width, sold)
		var sum int64
		for i, p := range c.Points {
			sum += p.Issued
			if p.Total != sum || !p.At.Equal(opens.Add(time.Duration(i)*width)) {
				t.Fatalf("point %d is %+v after %d", i, p, sum)
			}
		}
		if sum != want || c.Total() != want {
			t.Fatalf("the curve reaches %d, %d were sold", c.Total(), want)
		}
		if n, at := c.Peak(); n != most || n > 0 && !slices.ContainsFunc(sold, func(p claim.Point) bool { return p.Most == n && p.MostAt.Equal(at) }) {
			t.Fatalf("the peak is %d at %v, want %d", n, at, most)
		}
	})
}
