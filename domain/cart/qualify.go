package cart

import (
	"slices"
	"time"
)

// Soon is how long before its expiry a coupon is said to expire soon.
const Soon = 72 * time.Hour

// An Answer says what a user's coupons do for a cart.
type Answer struct {
	// Usable are the coupons that can be used alone, the largest discount first.
	Usable []Use
	// Unusable are the other coupons.
	Unusable []Refusal
	Best     Combination
	// ExpiresSoon are the usable coupons that expire within [Soon], the earliest first.
	ExpiresSoon []Terms
}

// Qualify returns what the coupons do for the cart at now.
func Qualify(c Cart, list []Terms, now time.Time) Answer {
	a := Answer{}
	var usable []Terms
	for _, t := range list {
		alone, no := Combine(c, []Terms{t})
		if no != nil {
			a.Unusable = append(a.Unusable, *no)
			continue
		}
		a.Usable, usable = append(a.Usable, alone.Uses[0]), append(usable, t)
		if t.ExpiresAt < now.Add(Soon).UnixMicro() {
			a.ExpiresSoon = append(a.ExpiresSoon, t)
		}
	}
	slices.SortStableFunc(a.Usable, func(x, y Use) int { return int(min(1, max(-1, y.Off-x.Off))) })
	slices.SortFunc(a.ExpiresSoon, byExpiry)
	a.Best = Best(c, usable)
	return a
}
