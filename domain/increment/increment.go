// Package increment compares the orders of users who were addressed with the orders of users who
// were held out for comparison. Both groups are drawn at random, so the difference for each user
// is the effect of the messages.
package increment

import (
	"math"

	"dropbell/domain/money"
)

// Powers are the sums of the squares and cubes of a quantity over the users of a group. They are
// needed for intervals only; sums of money are kept exactly beside them.
type Powers struct{ Squares, Cubes float64 }

// PowersOf returns the powers of the quantity of one user.
func PowersOf(x float64) Powers { return Powers{x * x, x * x * x} }

// Plus returns the sums of both.
func (p Powers) Plus(o Powers) Powers { return Powers{p.Squares + o.Squares, p.Cubes + o.Cubes} }

// A Group sums the orders of the users of one group. Users without orders count as users.
type Group struct {
	Users, Orders int64
	// Revenue is what the users paid, in minor units.
	Revenue money.Amount
	// OrderPowers and RevenuePowers are the powers of each user's number of orders and revenue.
	OrderPowers, RevenuePowers Powers
}

// Add adds the orders of one user, who is counted in Users already.
func (g *Group) Add(orders int64, revenue money.Amount) {
	g.Orders, g.Revenue = g.Orders+orders, g.Revenue+revenue
	g.OrderPowers = g.OrderPowers.Plus(PowersOf(float64(orders)))
	g.RevenuePowers = g.RevenuePowers.Plus(PowersOf(float64(revenue)))
}

// PerUser returns the revenue for each user; 0 without users.
func (g Group) PerUser() money.Amount { return g.Revenue.Per(g.Users) }

// An Increment has the orders of both groups in one currency.
type Increment struct {
	Currency string
	// Reached are the users who were not held out, whether or not a message reached them: without
	// the unreachable users the groups would not be comparable.
	Reached, HeldOut Group
}

// Orders estimates the additional orders for each user.
func (i Increment) Orders() Estimate {
	return estimate(sample{i.Reached.Users, float64(i.Reached.Orders), i.Reached.OrderPowers}, sample{i.HeldOut.Users, float64(i.HeldOut.Orders), i.HeldOut.OrderPowers})
}

// Revenue estimates the additional revenue for each user, in minor units.
func (i Increment) Revenue() Estimate {
	return estimate(sample{i.Reached.Users, float64(i.Reached.Revenue), i.Reached.RevenuePowers}, sample{i.HeldOut.Users, float64(i.HeldOut.Revenue), i.HeldOut.RevenuePowers})
}

// An Estimate is the difference of two means for each user. With 95 % confidence the true
// difference lies between Low and High.
type Estimate struct {
	// Enough says that the interval can be trusted. If it is false there are not enough data yet,
	// and Low and High are 0.
	Enough                bool
	Difference, Low, High float64
	users                 int64
}

// Extra returns the difference for all users who were reached, and its bounds.
func (e Estimate) Extra() (n, low, high float64) {
	u := float64(e.users)
	return e.Difference * u, e.Low * u, e.High * u
}

// Sure reports whether the difference is beyond chance: there are enough data, and the interval
// does not contain 0.
func (e Estimate) Sure() bool { return e.Enough && (e.Low > 0 || e.High < 0) }

const (
	// z is the two-sided 95 % quantile of the normal distribution.
	z = 1.959963984540054
	// leastUsers is the least number of users of a group.
	leastUsers = 100
	// perSkewness times the squared skewness is the least number of users of a group.
	perSkewness = 355
)

// estimate returns the difference of the means of two independent groups. Its interval is
// difference ± z·√(v₁/n₁ + v₂/n₂), where v is the variance of a group and n its number of users:
// the interval of B. L. Welch (Biometrika 34, 1947) for groups of different variances, with the
// normal quantile, since groups are large.
//
// The normal quantile is valid only if the means are distributed normally. Orders are rare and
// amounts differ much, so the distribution of one user is skewed. There are enough data if each
// group has at least 355·s² users, where s is its skewness; then the chance of each end of the
// interval to miss the truth differs from 2.5 % by at most 0.25 %. The rule is from D. D. Boos and J. M.
// Hughes-Oliver (The American Statistician 54, 2000, pages 121–128), and rule 7 of R. Kohavi, A. Deng,
// R. Longbotham and Y. Xu (Seven Rules of Thumb for Web Site Experimenters, KDD 2014). A group in which
// nobody ordered, or of less than 100 users, never has enough.
func estimate(reached, held sample) Estimate {
	e := Estimate{Difference: reached.mean() - held.mean(), users: reached.n, Enough: reached.enough() && held.enough()}
	if e.Enough {
		half := z * math.Sqrt(reached.variance()/float64(reached.n)+held.variance()/float64(held.n))
		e.Low, e.High = e.Difference-half, e.Difference+half
	}
	return e
}

// A sample is one quantity over the users of a group.
type sample struct {
	n   int64
	sum float64
	Powers
}

func (s sample) mean() float64 {
	if s.n <= 0 {
		return 0
	}
	return s.sum / float64(s.n)
}

// variance returns the unbiased variance.
func (s sample) variance() float64 {
	n := float64(s.n)
	return (s.Squares - s.sum*s.sum/n) / (n - 1)
}

// skewness returns the third central moment in units of the standard deviation.
func (s sample) skewness() float64 {
	n, m := float64(s.n), s.mean()
	second := s.Squares/n - m*m
	return (s.Cubes/n - 3*m*s.Squares/n + 2*m*m*m) / (second * math.Sqrt(second))
}

func (s sample) enough() bool {
	if s.n < leastUsers || s.sum <= 0 || s.variance() <= 0 {
		return false
	}
	skewness := s.skewness()
	return float64(s.n) >= perSkewness*skewness*skewness
}
