package draw

import "dropbell/domain/template"

// Demand is how many users wanted the last drops of a shop.
type Demand struct {
	Drops int // whose users were counted; 0 = the shop had no drop
	// PerCoupon is how many users had reserved a reminder for each coupon.
	PerCoupon float64
}

// DemandOf is how many of the last drops of a shop a [Demand] is about.
const DemandOf = 5

// Thresholds of the advice, in users with a reminder for each coupon. They are a judgement: with more than one user for a coupon
// speed decides who gets one, and with five or more most users get none however the coupons are shared.
const (
	rushed  = 1
	overrun = 5
)

// Advice returns the mode that suits the demand; "" without drops to judge by.
func (d Demand) Advice() template.OpeningMode {
	switch {
	case d.Drops == 0:
		return ""
	case d.PerCoupon >= overrun:
		return template.ByDraw
	case d.PerCoupon > rushed:
		return template.Shuffled
	}
	return template.FirstCome
}
