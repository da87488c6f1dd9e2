package coupon

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Limits of an order as payment names it.
const (
	MaxOrderID     = 64 // bytes
	MaxOrderAmount = money.Amount(1_000_000_000_000_000)
	MaxProducts    = 500
)

// A Rule is what a coupon is worth: the part of its template that is fixed
// from publication on.
type Rule struct {
	Kind       template.Kind
	AmountOff  money.Amount
	Threshold  money.Amount
	PercentOff int
	MaxOff     money.Amount
	Currency   string
	Target     template.Target
	Product    string
	// UseWithinHours and RefundTo are those of [template.Spec].
	UseWithinHours int
	RefundTo       template.RefundTo
}

// UseBy returns until when the coupon must be used so that it does not return to the stock while its
// drop runs; zero = there is no such instant.
func (r Rule) UseBy(c Coupon) time.Time {
	if r.UseWithinHours == 0 {
		return time.Time{}
	}
	return c.IssuedAt.Add(time.Duration(r.UseWithinHours) * time.Hour)
}

// RuleOf returns the rule of a template.
func RuleOf(s template.Spec) Rule {
	return Rule{s.Kind, s.AmountOff, s.Threshold, s.PercentOff, s.MaxOff, s.Currency, s.Target, s.Product, s.UseWithinHours, s.RefundTo}
}

// A Part is what an order spends on one product.
type Part struct {
	Product string
	Amount  money.Amount
}

// An Order is what payment wants to lock a coupon for.
type Order struct {
	ID     string
	Amount money.Amount
	// Currency, if given, must be the coupon's.
	Currency string
	// Products divides Amount among products; only coupons for one product need it.
	Products []Part
	// UserID, if given, must be the coupon's owner.
	UserID user.ID
}

// Check returns a [fault.Fields] that names every rule the order breaks, or nil.
func (o Order) Check() error {
	e := &fault.Fields{}
	checkOrderID(e, o.ID)
	if o.Amount < 1 || o.Amount > MaxOrderAmount {
		e.Add("order_amount", "rule.amount", "must be between %d and %d minor units", 1, MaxOrderAmount)
	}
	if o.Currency != "" && !money.CurrencyForm(o.Currency) {
		e.Add("currency", "rule.currency", "must be a three-letter ISO 4217 code such as CNY")
	}
	if len(o.Products) > MaxProducts {
		e.Add("products", "rule.too_many", "must have at most %d entries", MaxProducts)
		return e
	}
	rest := o.Amount
	for _, p := range o.Products {
		switch {
		case p.Amount < 0 || p.Amount > MaxOrderAmount:
			e.Add("products", "rule.amount", "each amount must be between %d and %d minor units", 0, MaxOrderAmount)
			return e
		case p.Product == "" || len(p.Product) > 4*template.MaxName || !utf8.ValidString(p.Product):
			e.Add("products", "rule.text", "each product must be named by at most %d characters", template.MaxName)
			return e
		}
		rest -= p.Amount
	}
	if rest < 0 && o.Amount > 0 {
		e.Add("products", "rule.products_sum", "must not add up to more than order_amount")
	}
	return e.Err()
}

// CheckOrderID returns a [fault.Fields] unless id can name an order.
func CheckOrderID(id string) error {
	e := &fault.Fields{}
	checkOrderID(e, id)
	return e.Err()
}

func checkOrderID(e *fault.Fields, id string) {
	odd := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) || r == utf8.RuneError }
	if id == "" || len(id) > MaxOrderID || strings.ContainsFunc(id, odd) {
		e.Add("order_id", "rule.order_id", "must be 1 to %d bytes without spaces and control characters", MaxOrderID)
	}
}

func (r Rule) otherCurrency(o Order) bool { return o.Currency != "" && o.Currency != r.Currency }

// Eligible returns the part of the order's amount to which the rule applies: the
// whole amount, or the amount spent on the rule's product. It returns
// [ErrNotUsable] if the order is in another currency or has nothing of the product.
func (r Rule) Eligible(o Order) (money.Amount, error) {
	if r.otherCurrency(o) {
		return 0, ErrNotUsable.Because("the coupon is in %s, the order in %s", r.Currency, o.Currency)
	}
	if r.Target != template.Product {
		return o.Amount, nil
	}
	var sum money.Amount
	for _, p := range o.Products {
		if p.Product == r.Product {
			sum += p.Amount
		}
	}
	if sum == 0 {
		return 0, ErrNotUsable.Because("the coupon is for one product, which the order's products do not name; name it in products, or use another coupon")
	}
	return sum, nil
}

// Discount returns the amount that the coupon takes off the order, at least 1 minor
// unit and at most the eligible amount. A percentage is rounded down to a whole
// minor unit. It returns [ErrNotUsable] if the eligible amount is below the
// threshold, or if nothing would be taken off.
func (r Rule) Discount(o Order) (money.Amount, error) {
	eligible, err := r.Eligible(o)
	if err != nil {
		return 0, err
	}
	if r.Missing(eligible) > 0 {
		return 0, ErrNotUsable.Because("the coupon needs at least %s %s, of which the order has %s",
			r.Threshold.Decimal(r.Currency), r.Currency, eligible.Decimal(r.Currency))
	}
	off := r.Off(eligible)
	if off < 1 {
		return 0, ErrNotUsable.Because("the coupon takes nothing off this order; use another one")
	}
	return off, nil
}

// Missing returns by how much the eligible amount is below the rule's threshold, in minor units; 0 if
// it is not, or if the rule has none.
func (r Rule) Missing(eligible money.Amount) money.Amount {
	if r.Kind == template.AmountOff {
		return 0
	}
	return max(0, r.Threshold-eligible)
}

// Off returns the amount that the rule takes off the eligible amount: at most that amount, 0 below the
// threshold, and a percentage rounded down to a whole minor unit.
func (r Rule) Off(eligible money.Amount) money.Amount {
	if r.Missing(eligible) > 0 {
		return 0
	}
	off := r.AmountOff
	if r.Kind == template.PercentOff {
		off = min(percentOf(eligible, r.PercentOff), r.MaxOff)
	}
	return max(0, min(off, eligible))
}

// percentOf returns p percent of a, rounded down, without an intermediate
// that could overflow.
func percentOf(a money.Amount, p int) money.Amount {
	n := money.Amount(p)
	return a/100*n + a%100*n/100
}
