// Package figure holds the rules by which pages and reports compute the numbers
// that they show from the stored numbers, so that numbers shown side by side agree.
package figure

import (
	"slices"
	"strconv"
	"time"
)

// Whole is the sum of the results of [Shares]: one thousandth of the whole is a
// tenth of a percent.
const Whole = 1000

// Shares returns each part's share of the sum of parts in thousandths. The shares add up to [Whole]
// (largest remainder: each share is rounded down, and the remaining thousandths go to the parts
// with the largest remainders, first to the first of equal parts). The sum of the parts must fit an
// int64. Parts below 0 count as 0. If the sum is 0, all shares are 0.
func Shares(parts []int64) []int64 {
	shares := make([]int64, len(parts))
	var sum int64
	for _, n := range parts {
		sum += max(0, n)
	}
	if sum == 0 {
		return shares
	}
	left := int64(Whole)
	rest := make([]int64, len(parts))
	order := make([]int, len(parts))
	for i, n := range parts {
		shares[i], rest[i] = divide(max(0, n), sum)
		left -= shares[i]
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(1, max(-1, rest[b]-rest[a]))) })
	for _, i := range order[:left] {
		shares[i]++
	}
	return shares
}

// divide returns n * [Whole] / sum and the remainder, for 0 ≤ n ≤ sum. If the
// product would overflow, low digits are dropped on which no share depends.
func divide(n, sum int64) (share, rest int64) {
	const most = (1<<63 - 1) / Whole
	for sum > most {
		n, sum = n/2, sum/2
	}
	return n * Whole / sum, n * Whole % sum
}

// Ratio returns a for each unit of b in thousandths, rounded down; false if b is not above 0.
func Ratio[N ~int64](a, b N) (int64, bool) {
	if b <= 0 {
		return 0, false
	}
	return int64(float64(a) / float64(b) * Whole), true
}

// Precision is the unit of the instants that pages show to a fraction of a second.
const Precision = time.Millisecond

// Late returns how long after the planned instant something happened, 0 if it
// happened before. Both instants are taken to the millisecond, as they are shown.
func Late(planned, happened time.Time) time.Duration {
	return max(0, happened.Truncate(Precision).Sub(planned.Truncate(Precision)))
}

// Grouped writes n, which is not negative, in English: with a comma before each group of three digits.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
