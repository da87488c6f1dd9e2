package cart

import (
	"cmp"
	"slices"
	"time"

	"dropbell/domain/money"
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
	a := Answer{Usable: make([]Use, 0, len(list))}
	usable := make([]Terms, 0, len(list))
	for _, t := range list {
		off, no := Alone(c, t)
		if no != nil {
			a.Unusable = append(a.Unusable, *no)
			continue
		}
		whole := func(line int) money.Amount { return c.Lines[line].Amount }
		a.Usable, usable = append(a.Usable, t.use(c, off, whole)), append(usable, t)
		if t.ExpiresAt < now.Add(Soon).UnixMicro() {
			a.ExpiresSoon = append(a.ExpiresSoon, t)
		}
	}
	slices.SortStableFunc(a.Usable, func(x, y Use) int { return cmp.Compare(y.Off, x.Off) })
	slices.SortFunc(a.ExpiresSoon, byExpiry)
	a.Best = Best(c, usable)
	return a
}
