package coupons

import "testing"

// Counts are read however wide their digits are, and with groups of thousands.
func TestTypedCount(t *testing.T) {
	for _, text := range []string{"１０００", "1,000", "1 000", "1000"} {
		if n, broken := typedCount(text); n != 1000 || broken != nil {
			t.Errorf("%q: count %d, %+v", text, n, broken)
		}
	}
}
