// Package figure holds the rules by which pages and reports make the numbers
// that they show from the numbers that are stored, so that figures which stand
// side by side agree with each other.
package figure

import (
	"slices"
	"time"
)

// Whole is what the results of [Shares] add up to: a thousandth of it is a
// tenth of a percent.
const Whole = 1000

// Shares returns each part's share of the sum of parts in thousandths. The
// shares add up to [Whole] (largest remainder: each share is rounded down, and
// the thousandths that are left go to the parts with the largest remainders, the
// first of equal ones). The sum of the parts is an int64. Parts below 0 count as 0. If there is nothing to share
// out, all shares are 0.
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

// divide returns n * [Whole] / sum and the remainder, for 0 ≤ n ≤ sum. Sums that
// the product would overflow lose digits that no share depends on.
func divide(n, sum int64) (share, rest int64) {
	const most = (1<<63 - 1) / Whole
	for sum > most {
		n, sum = n/2, sum/2
	}
	return n * Whole / sum, n * Whole % sum
}

// Precision is the unit of the instants that pages show to a fraction of a second.
const Precision = time.Millisecond

// Late returns how long after the planned instant something happened, as the
// difference of the two instants to the millisecond, which is how they are
// shown; 0 if it happened before.
func Late(planned, happened time.Time) time.Duration {
	return max(0, happened.Truncate(Precision).Sub(planned.Truncate(Precision)))
}
