package campaign

import (
	"math"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/increment"
	"dropbell/domain/money"
)

// A Tally counts the actions of one group of a campaign's recipients. Each
// number counts users, each user once.
//
// Actions count if they happened in the campaign's window: from its start until
// [ResultsFor] after its end, by the database's clock. So all groups are
// observed over the same time, whether or not they were sent anything.
type Tally struct {
	// Variant is the index of the content the group gets, [delivery.HeldOut], or
	// [delivery.Remaining] for the users who are not in the test.
	Variant int
	// Assigned is the number of users of the audience whom [delivery.Copy.Group] puts into the
	// group, as far as batches of them exist.
	Assigned int64
	// Sent is how many of the assigned users the message reached, at whatever time.
	Sent int64
	// Opened is how many users followed the tracked link in their message. Held-out users have no
	// link.
	Opened int64
	// Reserved is how many users have a reservation of the campaign's template (see
	// [Spec.TemplateID]) that was made in the window. A reservation that was cancelled, or that
	// existed before, does not count.
	Reserved int64
	// Claimed is how many users got a coupon of that template in the window in any way: claimed,
	// by code, or granted, also by the campaign itself.
	Claimed int64
	// Used is how many users paid with a coupon of that template in the window, whenever they got
	// the coupon. A coupon that was refunded since does not count.
	Used int64
	// Spent are the orders in which users paid with these coupons.
	Spent Spent
}

// Spent are the orders in which users of a group used coupons of the campaign's template in
// the window. An order with several coupons counts once; a refunded order does not count.
type Spent struct {
	Currency string // of the template; empty = none was counted
	Orders   int64
	// Ordered is the amount before discounts, in minor units, and Discount what coupons took off.
	Ordered, Discount money.Amount
	// OrderPowers and RevenuePowers are the powers of each user's number of orders and revenue.
	OrderPowers, RevenuePowers increment.Powers
}

// OfUser returns s, the orders of one user, with their powers.
func (s Spent) OfUser() Spent {
	s.OrderPowers, s.RevenuePowers = increment.PowersOf(float64(s.Orders)), increment.PowersOf(float64(s.Revenue()))
	return s
}

// Revenue returns what customers paid.
func (s Spent) Revenue() money.Amount { return s.Ordered - s.Discount }

// Basket returns the average amount of an order before discounts; 0 without orders.
func (s Spent) Basket() money.Amount { return s.Ordered.Per(s.Orders) }

// Per returns the revenue for each of n users or messages; 0 if n is 0.
func (s Spent) Per(n int64) money.Amount { return s.Revenue().Per(n) }

// Plus returns the sum of both, which are of one campaign and so in one currency.
func (s Spent) Plus(o Spent) Spent {
	return Spent{max(s.Currency, o.Currency), s.Orders + o.Orders, s.Ordered + o.Ordered, s.Discount + o.Discount,
		s.OrderPowers.Plus(o.OrderPowers), s.RevenuePowers.Plus(o.RevenuePowers)}
}

// Plus returns the sums of both, under t's variant.
func (t Tally) Plus(o Tally) Tally {
	return Tally{t.Variant, t.Assigned + o.Assigned, t.Sent + o.Sent, t.Opened + o.Opened, t.Reserved + o.Reserved,
		t.Claimed + o.Claimed, t.Used + o.Used, t.Spent.Plus(o.Spent)}
}

// ResultsFor is how long after the end of a campaign users' actions still count as its results.
const ResultsFor = 7 * 24 * time.Hour

// Results are the results of a campaign at the last count by a worker.
type Results struct {
	// Groups are the groups A, B if it exists, and the held-out users if there are any. Empty
	// until the first count.
	Groups []Tally
	// CountedTo is the instant before which everything is counted; nil = never.
	CountedTo *time.Time
	// Until is the end of the window; nil until the campaign has ended.
	Until *time.Time
	// Final says that the results do not change any more: the window is over, or the retention of
	// the rows to count is over.
	Final bool
	// Compared says that the results have what the interval of an increment is computed from, unless
	// that could not be counted any more; see [Results.Incomparable]. It is false until the first
	// count.
	Compared bool
	// AccountOff is [Balance.Difference] as recounted then; nil = never.
	AccountOff *int64
	// Reported counts the sent messages on which the provider has reported, as of now.
	Reported feedback.Tally
	// SMS is what the campaign's text messages cost, as of now.
	SMS delivery.SMSCosts
}

// Group returns the tally of one variant.
func (r Results) Group(variant int) (Tally, bool) {
	i := slices.IndexFunc(r.Groups, func(t Tally) bool { return t.Variant == variant })
	if i < 0 {
		return Tally{Variant: variant}, false
	}
	return r.Groups[i], true
}

// Total is the tally of all recipients.
func (r Results) Total() (sum Tally) {
	for _, t := range r.Groups {
		sum = sum.Plus(t)
	}
	return sum
}

// Agree reports whether the results count the same recipients and messages as p, the campaign's
// progress. Messages sent after the last count are missing in the results.
func (r Results) Agree(p Progress) bool {
	sum := r.Total()
	return sum.Assigned == p.Reserved && sum.Sent == p.Sent
}

// Meant is the tally of all recipients who are not held out.
func (r Results) Meant() Tally {
	var sum Tally
	for _, t := range r.Groups {
		if t.Variant != delivery.HeldOut {
			sum = sum.Plus(t)
		}
	}
	return sum
}

// Increment compares the orders of the users who were meant to get the message with the orders of
// the held-out users. It returns false if there are no held-out users, no order is counted, or
// [Results.Incomparable].
func (r Results) Increment() (increment.Increment, bool) {
	held, ok := r.Group(delivery.HeldOut)
	currency := r.Total().Spent.Currency
	return increment.Increment{Currency: currency, Reached: r.Meant().group(), HeldOut: held.group()}, ok && currency != "" && !r.Incomparable()
}

// Incomparable reports whether there are held-out users and used coupons, but no interval can be
// computed: the results were final before increments existed, and the orders could not be counted
// again as they were then.
func (r Results) Incomparable() bool {
	_, held := r.Group(delivery.HeldOut)
	sum := r.Total()
	return held && r.Final && r.Compared && sum.Used > 0 && sum.Spent.OrderPowers.Squares == 0
}

func (t Tally) group() increment.Group {
	return increment.Group{Users: t.Assigned, Orders: t.Spent.Orders, Revenue: t.Spent.Revenue(), OrderPowers: t.Spent.OrderPowers, RevenuePowers: t.Spent.RevenuePowers}
}

// A Measure is one thing that recipients may do.
type Measure string

// The measures, in the order in which users take these actions.
const (
	Opening   Measure = "opened"
	Reserving Measure = "reserved"
	Claiming  Measure = "claimed"
	Using     Measure = "used"
)

// Measures returns the measures that can be counted for the campaign. Links are counted in every
// campaign.
func (s Spec) Measures() []Measure {
	switch {
	case s.TemplateID() == 0:
		return []Measure{Opening}
	case s.GrantTemplate == 0 && s.Audience.Kind == Reserved:
		return []Measure{Opening, Claiming, Using} // all recipients have reserved before
	}
	return []Measure{Opening, Reserving, Claiming, Using}
}

// Goal returns the measure by which the campaign is judged: [Using] if each recipient is given a
// coupon or has one, [Opening] if the campaign is about no template, otherwise [Claiming].
func (s Spec) Goal() Measure {
	switch {
	case s.TemplateID() == 0:
		return Opening
	case s.GrantTemplate != 0, s.Audience.Kind == Holds:
		return Using
	}
	return Claiming
}

// Of returns the share of users who did m. For [Opening], which requires a message, it is the
// share among the users who were sent to. For other measures it is the share among all assigned
// users: without the unreachable users the groups would not be comparable.
func (t Tally) Of(m Measure) Share {
	switch m {
	case Opening:
		return Share{t.Opened, t.Sent}
	case Reserving:
		return Share{t.Reserved, t.Assigned}
	case Claiming:
		return Share{t.Claimed, t.Assigned}
	case Using:
		return Share{t.Used, t.Assigned}
	}
	return Share{}
}

// A Share is K of N users.
type Share struct{ K, N int64 }

// Rate returns K/N, or 0 if N is 0.
func (s Share) Rate() float64 {
	if s.N <= 0 {
		return 0
	}
	return float64(s.K) / float64(s.N)
}

// z is the two-sided 95 % quantile of the normal distribution.
const z = 1.959963984540054

// Interval returns the bounds between which the true rate lies with 95 % confidence; 0 and 1 if N
// is 0. It is the score interval of E. B. Wilson (Journal of the American Statistical Association
// 22, 1927), which is valid for small numbers as well.
func (s Share) Interval() (low, high float64) { return s.interval(z) }

// interval is [Share.Interval] for the two-sided quantile z.
func (s Share) interval(z float64) (low, high float64) {
	if s.N <= 0 {
		return 0, 1
	}
	n, p := float64(s.N), min(1, s.Rate())
	middle := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	scale := 1 + z*z/n
	return max(0, (middle-half)/scale), min(1, (middle+half)/scale)
}

// A Comparison sets the rates of two groups side by side.
type Comparison struct {
	Measure     Measure
	First, Than Share
	// Difference is the rate of the first group minus the rate of the other group, from −1 to 1.
	// With 95 % confidence the true difference lies between Low and High.
	Difference, Low, High float64
}

// Compare compares the rates of two independent groups. The interval of the difference is
// computed from the intervals of both groups: method 10 of R. G. Newcombe (Statistics in Medicine
// 17, 1998, pages 873–890).
func Compare(m Measure, first, than Tally) Comparison { return compare(m, first.Of(m), than.Of(m), z) }

// compare is [Compare] for the two-sided quantile z.
func compare(m Measure, first, than Share, z float64) Comparison {
	c := Comparison{Measure: m, First: first, Than: than}
	p1, p2 := c.First.Rate(), c.Than.Rate()
	l1, u1 := c.First.interval(z)
	l2, u2 := c.Than.interval(z)
	c.Difference = p1 - p2
	c.Low = c.Difference - math.Hypot(p1-l1, u2-p2)
	c.High = c.Difference + math.Hypot(u1-p1, p2-l2)
	return c
}

// A Verdict is the conclusion that a comparison allows.
type Verdict string

// The verdicts.
const (
	Nothing   Verdict = "none"   // no user of either group did it
	MayChance Verdict = "chance" // the difference may be chance
	More      Verdict = "more"   // the first group did it more, beyond chance
	Less      Verdict = "less"   // the first group did it less, beyond chance
)

// Verdict judges the difference by its interval: if the interval contains 0, the difference may
// be chance.
func (c Comparison) Verdict() Verdict {
	switch {
	case c.First.K == 0 && c.Than.K == 0:
		return Nothing
	case c.Low > 0:
		return More
	case c.High < 0:
		return Less
	}
	return MayChance
}

// Lift returns by which fraction the first group's rate exceeds the other group's: 0.25 = a
// quarter more. known is false if the other group's rate is 0.
func (c Comparison) Lift() (part float64, known bool) {
	if c.Than.K == 0 || c.Than.N == 0 {
		return 0, false
	}
	return c.First.Rate()/c.Than.Rate() - 1, true
}

// Extra returns how many users of the first group acted because of the difference between the
// groups: the difference of the rates times the size of the first group. It is negative if the
// rate of the first group is lower. low and high are its bounds.
func (c Comparison) Extra() (n, low, high int64) {
	of := func(rate float64) int64 { return int64(math.Round(rate * float64(c.First.N))) }
	return of(c.Difference), of(c.Low), of(c.High)
}

// Versions compares B with A; false if there is no B, or nothing is counted.
func (r Results) Versions(m Measure) (Comparison, bool) {
	a, ok1 := r.Group(0)
	b, ok2 := r.Group(1)
	return Compare(m, b, a), ok1 && ok2
}

// Effect compares the users who were meant to get the message with the held-out users. It returns
// false if there are no held-out users, or nothing is counted.
func (r Results) Effect(m Measure) (Comparison, bool) {
	held, ok := r.Group(delivery.HeldOut)
	return Compare(m, r.Meant(), held), ok && m != Opening // held-out users have no link
}

const (
	// countEvery is the least time between two counts.
	countEvery = 30 * time.Second
	// countShare times the duration of a count is the delay before the next count, so that
	// counting takes at most a twentieth of one worker's time.
	countShare = 20
	// countAge divides the time since the end of the campaign; the result is the delay before the
	// next count. Few actions happen late.
	countAge = 24
)

// CountAgain returns the delay before the next count. took is the duration of the last count;
// ended is the time since the end of the campaign, or 0 if it has not ended.
func CountAgain(took, ended time.Duration) time.Duration {
	return max(countEvery, countShare*took, ended/countAge)
}

// Duration is the time from the campaign's start until each recipient had an
// outcome, or until now.
func (c Campaign) Duration(now time.Time) time.Duration {
	switch {
	case c.StartedAt == nil:
		return 0
	case c.SettledAt != nil:
		return max(0, c.SettledAt.Sub(*c.StartedAt))
	case c.EndedAt != nil:
		return max(0, c.EndedAt.Sub(*c.StartedAt))
	}
	return max(0, now.Sub(*c.StartedAt))
}
