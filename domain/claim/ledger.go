package claim

import "time"

// A Ledger accounts for a template's stock: every coupon of the total is in exactly
// one place, which is on sale, kept for users who wait, being written, or issued.
type Ledger struct {
	TemplateID int64
	Total      int64
	// OnSale is the number of coupons that can still be claimed, as counted by the
	// store that decides claims.
	OnSale int64
	// Writing is the number of coupons that a gate has given away and not written
	// yet. It is always 0 for the durable gate, which writes each claim as it
	// decides.
	Writing int64
	// Held is the number of coupons that are kept for users who wait. HeldOff is how many of
	// these the waitlist's own counters and coupons do not explain, in either direction.
	Held, HeldOff int64
	// Issued is the number of coupons in the database without Returned, the coupons
	// that were returned to stock. Both are counted from the rows.
	Issued, Returned int64
	// PerUser is the sum of the counters behind the limit per user. A revoked
	// coupon still counts.
	PerUser int64
	// OverLimit is how many users and households have more than they may.
	OverLimit int64
}

// Difference returns how many coupons are unaccounted for; 0 is as it must be.
func (l Ledger) Difference() int64 {
	return abs(l.Total-l.OnSale-l.Held-l.Writing-l.Issued) + l.HeldOff + abs(l.PerUser-l.Issued-l.Returned) + l.OverLimit
}

func abs(n int64) int64 { return max(n, -n) }

// A Curve says how a template sold, in steps of equal width.
type Curve struct {
	Width time.Duration
	// Points are without gaps, from the first coupon to the last.
	Points []Point
	// GoneAt is when the stock was given for the first time, to the second; the zero time = not yet, or not known. A later raise of
	// the stock does not change it.
	GoneAt time.Time
}

// A Point is one step of a curve.
type Point struct {
	At     time.Time // when the step begins
	Issued int64     // in this step
	Total  int64     // at its end
	// Most is the number of coupons in the second of this step with the most coupons, which began at MostAt.
	Most   int64
	MostAt time.Time
}

// NewCurve returns the curve through sold, the steps in which coupons were issued.
// The steps are in order of time; each begins a multiple of width after the first.
func NewCurve(width time.Duration, sold []Point) Curve {
	c := Curve{Width: width}
	var total int64
	for _, p := range sold {
		for n := len(c.Points); n > 0 && c.Points[n-1].At.Add(width).Before(p.At); n = len(c.Points) {
			c.Points = append(c.Points, Point{At: c.Points[n-1].At.Add(width), Total: total})
		}
		total += p.Issued
		p.Total = total
		c.Points = append(c.Points, p)
	}
	return c
}

// Total returns how many coupons the curve has reached.
func (c Curve) Total() int64 {
	if len(c.Points) == 0 {
		return 0
	}
	return c.Points[len(c.Points)-1].Total
}

// EndAfter returns the time from the opening to the end of the last step that sold
// something; 0 if nothing was sold after the opening.
func (c Curve) EndAfter(opensAt time.Time) time.Duration {
	if len(c.Points) == 0 {
		return 0
	}
	return max(0, c.Points[len(c.Points)-1].At.Add(c.Width).Sub(opensAt))
}

// GoneAfter returns the time from the opening until the stock was given for the first time. If that is not known it is the time until
// the last coupon.
func (c Curve) GoneAfter(opensAt time.Time) time.Duration {
	if c.GoneAt.IsZero() {
		return c.EndAfter(opensAt)
	}
	return max(0, c.GoneAt.Sub(opensAt))
}

// Peak returns the number of coupons in the second with the most coupons, and when it began; 0 if nothing
// was sold.
func (c Curve) Peak() (most int64, at time.Time) {
	for _, p := range c.Points {
		if p.Most > most {
			most, at = p.Most, p.MostAt
		}
	}
	return most, at
}
