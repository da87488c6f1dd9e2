package campaign

import (
	"math"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
)

// A Look is one of the moments at which a test may be decided.
type Look int

// The looks. Halfway exists in tests that may end early.
const (
	Halfway Look = 1 // at half of the test's time
	AtEnd   Look = 2
)

// earlyZ is the two-sided 99.9 % quantile of the normal distribution. A test ends at the look
// halfway only if the difference is beyond chance with this confidence. With this bound one look in
// between leaves the confidence at the end nearly unchanged: J. L. Haybittle (British Journal of
// Radiology 44, 1971) and R. Peto et al. (British Journal of Cancer 34, 1976).
const earlyZ = 3.290526731491895

// An Arm counts the recipients in the test who got one variant, up to a look.
type Arm struct {
	Variant  int   `json:"variant"`
	Assigned int64 `json:"assigned"`
	Sent     int64 `json:"sent"`
	// Did is how many recipients did what the test is decided by: opened or claimed; of a test by
	// revenue it is how many have paid.
	Did int64 `json:"did"`
	// Revenue is the amount of their orders in minor units of Currency, Squares the sum of the
	// squared amounts per recipient.
	Revenue  int64   `json:"revenue,omitempty"`
	Squares  float64 `json:"squares,omitempty"`
	Currency string  `json:"currency,omitempty"`
}

// share is the share of recipients who did what the test is decided by.
func (a Arm) share(by string) Share {
	if by == delivery.ByOpened {
		return Share{a.Did, a.Sent}
	}
	return Share{a.Did, a.Assigned}
}

// Value returns the rate of the arm, with the bounds between which the true rate lies with 95 %
// confidence: Wilson's interval, see [Share.Interval]. Of a test by revenue it is the mean amount
// per assigned recipient in minor units, with the interval of a mean of many (the central limit
// theorem): 1.96 standard errors on both sides.
func (a Arm) Value(by string) (value, low, high float64) {
	if by != delivery.ByRevenue {
		s := a.share(by)
		low, high = s.Interval()
		return s.Rate(), low, high
	}
	mean, deviation := a.mean()
	return mean, max(0, mean-z*deviation), mean + z*deviation
}

// mean returns the mean amount per recipient and the standard error of the mean.
func (a Arm) mean() (mean, deviation float64) {
	if a.Assigned == 0 {
		return 0, 0
	}
	n := float64(a.Assigned)
	mean = float64(a.Revenue) / n
	return mean, math.Sqrt(max(0, a.Squares/n-mean*mean) / n)
}

// difference returns by how much the value of b exceeds the value of a, with its bounds at the
// quantile z.
func difference(by string, a, b Arm, z float64) (d, low, high float64) {
	if by != delivery.ByRevenue {
		c := compare("", b.share(by), a.share(by), z)
		return c.Difference, c.Low, c.High
	}
	m1, d1 := a.mean()
	m2, d2 := b.mean()
	d, wide := m2-m1, z*math.Hypot(d1, d2)
	return d, d - wide, d + wide
}

// A Decision of a test says which variant is sent to the remaining recipients.
type TestDecision struct {
	Look Look
	At   time.Time
	// Winner is nil if the look halfway did not end the test.
	Winner *int
	// Arms are the numbers by which the test was decided, A first.
	Arms []Arm
}

// Beyond reports whether the difference between the arms is beyond chance with 95 % confidence.
func (d TestDecision) Beyond(by string) bool {
	if len(d.Arms) < 2 {
		return false
	}
	_, low, high := difference(by, d.Arms[0], d.Arms[1], z)
	return low > 0 || high < 0
}

// DecideTest returns the decision of a look with the counted arms A and B. At the end the variant
// with the higher value wins, and A if they are equal. Halfway a variant wins only beyond the bound
// that [delivery.Test.Early] states.
func DecideTest(t delivery.Test, look Look, at time.Time, a, b Arm) TestDecision {
	d := TestDecision{Look: look, At: at, Arms: []Arm{a, b}}
	quantile := z
	if look == Halfway {
		quantile = earlyZ
	}
	more, low, high := difference(t.By, a, b, quantile)
	if look == Halfway && low <= 0 && high >= 0 {
		return d
	}
	d.Winner = new(0)
	if more > 0 {
		d.Winner = new(1)
	}
	return d
}

// checkTest adds the rules that the test of a campaign breaks, which is sent from start, to e.
func (s Spec) checkTest(e *fault.Fields, start time.Time) {
	t := s.Content.Test
	if t == nil {
		return
	}
	if s.TemplateID() == 0 && t.By != delivery.ByOpened {
		e.Add("test_by", "rule.test_by_drop", "can be counted only in a campaign about a drop; choose the clicks")
	}
	if s.GrantTemplate != 0 && t.By == delivery.ByClaimed {
		e.Add("test_by", "rule.test_by_granted", "cannot decide: every recipient is given the coupon")
	}
	if !start.Add(t.Lasts()).Before(s.EndsAt) {
		e.Add("test_minutes", "rule.test_ends", "must be over before the campaign ends")
	}
}
