// Package cart holds the rules of orders that use several coupons: which coupons go together, in
// which order they take effect, how a discount is divided among the lines of the order, and which
// combination takes the most off.
package cart

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// Limits of a cart.
const (
	MaxLines    = 200
	MaxLineID   = 64 // bytes
	MaxQuantity = 1_000_000
	// MaxCoupons is the most coupons that an order can use.
	MaxCoupons = 5
	// MaxCandidates is the most coupons among which [Best] searches.
	MaxCandidates = 30
)

// A Line is one line of an order.
type Line struct {
	// ID names the line within its order.
	ID string
	// Product is the product as templates name it. Empty = no coupon for one product applies.
	Product  string
	Quantity int64
	// Amount is the price of the whole line before discounts, in minor units.
	Amount money.Amount
}

// A Cart is an order that is being put together. All amounts are minor units of Currency.
type Cart struct {
	// Shop is the shop of the order; 0 = the shop of the coupons. Coupons of two shops never go together.
	Shop     int64
	Currency string
	Lines    []Line
}

// Amount returns the sum of the lines.
func (c Cart) Amount() (sum money.Amount) {
	for _, l := range c.Lines {
		sum += l.Amount
	}
	return sum
}

// Check returns a [fault.Fields] that names every rule the cart breaks, or nil.
func (c Cart) Check() error {
	e := &fault.Fields{}
	if !money.CurrencyForm(c.Currency) {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
	if len(c.Lines) < 1 || len(c.Lines) > MaxLines {
		e.Add("lines", "rule.lines", "must have 1 to %d entries", MaxLines)
		return e
	}
	var sum money.Amount
	seen := make(map[string]bool, len(c.Lines))
	for i, l := range c.Lines {
		name := func(field string) string { return "lines[" + strconv.Itoa(i) + "]." + field }
		switch {
		case l.ID == "" || len(l.ID) > MaxLineID || strings.ContainsFunc(l.ID, odd):
			e.Add(name("id"), "rule.order_id", "must be 1 to %d bytes without spaces and control characters", MaxLineID)
		case seen[l.ID]:
			e.Add(name("id"), "rule.line_twice", "must differ from the ids of the other lines")
		}
		seen[l.ID] = true
		if utf8.RuneCountInString(l.Product) > template.MaxName || strings.ContainsRune(l.Product, 0) || !utf8.ValidString(l.Product) {
			e.Add(name("product"), "rule.too_long", "must have at most %d characters", template.MaxName)
		}
		if l.Quantity < 1 || l.Quantity > MaxQuantity {
			e.Add(name("quantity"), "rule.quantity", "must be between %d and %d", 1, MaxQuantity)
		}
		if l.Amount < 0 || l.Amount > coupon.MaxOrderAmount {
			e.Add(name("amount"), "rule.amount", "must be between %d and %d minor units", 0, coupon.MaxOrderAmount)
			continue
		}
		sum += l.Amount
	}
	if e.Err() == nil && (sum < 1 || sum > coupon.MaxOrderAmount) {
		e.Add("lines", "rule.lines_sum", "must add up to between %d and %d minor units", 1, coupon.MaxOrderAmount)
	}
	return e.Err()
}

func odd(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == utf8.RuneError }

// Terms are what decides about the use of a coupon: its rule, and the coupons that it goes together
// with. Rule and Stacking are those of its template.
type Terms struct {
	ID         int64
	TemplateID int64
	Shop       int64
	Rule       coupon.Rule
	Stacking
	// ExpiresAt is when the coupon expires, in microseconds of the Unix epoch.
	ExpiresAt int64
}

// Stacking says which coupons a template's coupons go together with in one order. The zero value
// stands alone.
type Stacking struct {
	// Group is the group of the template; empty = its coupons go with no coupon of another template.
	Group string
	// With are the groups that Group goes together with. A group that goes with itself is in its own list.
	With []string
	// PerOrder is how many coupons of the template an order can use; 0 means 1.
	PerOrder int
}

func (s Stacking) perOrder() int { return max(1, s.PerOrder) }

// Names reports whether With has the group; no group is in no list.
func (s Stacking) Names(group string) bool {
	for _, g := range s.With {
		if g == group && g != "" {
			return true
		}
	}
	return false
}

// Together reports whether coupons of two templates go together: each names the group of the other.
func (s Stacking) Together(o Stacking) bool { return s.Names(o.Group) && o.Names(s.Group) }

// together reports whether an order can use both coupons. The number of coupons of one template is
// limited apart from that, by Stacking.PerOrder.
func (t *Terms) together(o *Terms) bool {
	switch {
	case t.Shop != o.Shop:
		return false
	case t.TemplateID == o.TemplateID:
		return t.perOrder() > 1
	}
	return t.Together(o.Stacking)
}

// Reason says why a coupon or a combination cannot be used, as the API names it.
type Reason string

// The reasons.
const (
	OtherCurrency  Reason = "other_currency"
	OtherShop      Reason = "other_shop"
	NotInCart      Reason = "product_not_in_cart"
	BelowThreshold Reason = "below_threshold"
	NothingOff     Reason = "nothing_to_take_off"
	// StandsAlone: the coupon does not go together with another coupon of the combination.
	StandsAlone Reason = "stands_alone"
	// TooManyOfDrop: more coupons of one template than an order can use.
	TooManyOfDrop Reason = "too_many_of_drop"
	TooMany       Reason = "too_many_coupons"
)

// A Refusal is why a coupon cannot be used for a cart.
type Refusal struct {
	Coupon int64
	Reason Reason
	// Missing is the amount by which the part of the cart that the coupon applies to is below its
	// threshold, for BelowThreshold.
	Missing money.Amount
	// Other is the coupon that Coupon does not go together with, for StandsAlone.
	Other int64
}

// A Use is what one coupon takes off a cart.
type Use struct {
	Coupon int64
	Off    money.Amount
	// Shares divides Off among the lines of the cart, in their order; the sum is Off.
	Shares []money.Amount
}

// A Combination is a set of coupons that a cart uses together.
type Combination struct {
	// Uses are in the order of effect.
	Uses     []Use
	Discount money.Amount
	// Exact is set unless a better combination may exist that was not examined.
	Exact bool
}

// Coupons returns the ids of the coupons in the order of effect.
func (c Combination) Coupons() []int64 {
	ids := make([]int64, len(c.Uses))
	for i, u := range c.Uses {
		ids[i] = u.Coupon
	}
	return ids
}

// Lines returns the discount of each line of the cart, of all coupons together.
func (c Combination) Lines(n int) []money.Amount {
	sums := make([]money.Amount, n)
	for _, u := range c.Uses {
		for i, share := range u.Shares {
			sums[i] += share
		}
	}
	return sums
}
