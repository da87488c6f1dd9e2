package cart

import (
	"cmp"
	"math/bits"
	"slices"

	"dropbell/domain/coupon"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// stage is the place of a rule in the order of effect: coupons of products, then amounts off, then
// percentages. Within the coupons of products, amounts come before percentages too.
func stage(r coupon.Rule) int {
	n := 0
	if r.Kind == template.PercentOff {
		n = 1
	}
	if r.Target != template.Product {
		n += 2
	}
	return n
}

// inEffect compares two coupons by their order of effect. Within a stage the higher threshold comes
// first and then the smaller discount, so that as few coupons as possible fall below their threshold
// because of another coupon. Coupons with equal rules are ordered by id.
func inEffect(a, b Terms) int {
	return cmp.Or(cmp.Compare(stage(a.Rule), stage(b.Rule)), cmp.Compare(b.Rule.Threshold, a.Rule.Threshold),
		cmp.Compare(a.Rule.AmountOff, b.Rule.AmountOff), cmp.Compare(a.Rule.PercentOff, b.Rule.PercentOff),
		cmp.Compare(a.Rule.MaxOff, b.Rule.MaxOff), cmp.Compare(a.Rule.Product, b.Rule.Product), cmp.Compare(a.ID, b.ID))
}

// applies reports whether the rule applies to the line.
func applies(r coupon.Rule, l Line) bool {
	return r.Target != template.Product || l.Product == r.Product
}

// Alone returns what the coupon takes off the cart if it is the only coupon, or why it cannot be used.
func Alone(c Cart, t Terms) (money.Amount, *Refusal) {
	return t.off(c, func(int) money.Amount { return 0 })
}

// off returns what the coupon takes off the cart if taken of each line is discounted already. Only
// the part that is not discounted yet counts.
func (t Terms) off(c Cart, taken func(line int) money.Amount) (money.Amount, *Refusal) {
	refuse := func(r Reason) (money.Amount, *Refusal) { return 0, &Refusal{Coupon: t.ID, Reason: r} }
	switch {
	case c.Shop != 0 && t.Shop != c.Shop:
		return refuse(OtherShop)
	case t.Rule.Currency != c.Currency:
		return refuse(OtherCurrency)
	}
	var eligible, whole money.Amount
	for i, l := range c.Lines {
		if applies(t.Rule, l) {
			eligible, whole = eligible+l.Amount-taken(i), whole+l.Amount
		}
	}
	if whole == 0 {
		return refuse(NotInCart)
	}
	if missing := t.Rule.Missing(eligible); missing > 0 {
		return 0, &Refusal{Coupon: t.ID, Reason: BelowThreshold, Missing: missing}
	}
	off := t.Rule.Off(eligible)
	if off < 1 {
		return refuse(NothingOff)
	}
	return off, nil
}

// use divides what the coupon takes off among the lines, of which left is what is not discounted yet.
func (t Terms) use(c Cart, off money.Amount, left func(line int) money.Amount) Use {
	parts := make([]money.Amount, 0, MaxLines)
	for i, l := range c.Lines {
		part := money.Amount(0)
		if applies(t.Rule, l) {
			part = left(i)
		}
		parts = append(parts, part)
	}
	return Use{t.ID, off, Spread(off, parts)}
}

// Combine returns what the coupons take off the cart together. It returns the first refusal if they
// cannot all be used: the same coupon twice counts as too many coupons of the drop.
func Combine(c Cart, list []Terms) (Combination, *Refusal) {
	list = slices.Clone(list)
	slices.SortFunc(list, inEffect)
	if r := refusedTogether(list); r != nil {
		return Combination{}, r
	}
	sum := Combination{Exact: true}
	left := make([]money.Amount, len(c.Lines))
	for i, l := range c.Lines {
		left[i] = l.Amount
	}
	for _, t := range list {
		off, r := t.off(c, func(i int) money.Amount { return c.Lines[i].Amount - left[i] })
		if r != nil {
			return Combination{}, r
		}
		u := t.use(c, off, func(i int) money.Amount { return left[i] })
		for i, share := range u.Shares {
			left[i] -= share
		}
		sum.Uses, sum.Discount = append(sum.Uses, u), sum.Discount+off
	}
	return sum, nil
}

func refusedTogether(list []Terms) *Refusal {
	if len(list) > MaxCoupons {
		return &Refusal{Coupon: list[MaxCoupons].ID, Reason: TooMany}
	}
	for i, t := range list {
		same := 1
		for _, o := range list[:i] {
			if o.TemplateID == t.TemplateID {
				same++
			}
			if o.ID == t.ID || same > t.perOrder() {
				return &Refusal{Coupon: t.ID, Reason: TooManyOfDrop}
			}
			if o.Shop != t.Shop {
				return &Refusal{Coupon: t.ID, Reason: OtherShop, Other: o.ID}
			}
			if !t.together(&o) {
				return &Refusal{Coupon: t.ID, Reason: StandsAlone, Other: o.ID}
			}
		}
	}
	return nil
}

// Spread divides off among the parts in proportion to their size, by the method of the largest
// remainder (Hamilton's method): each share is rounded down, and the units that are left go to the parts with the largest
// remainders, the earlier part first. The sum of the shares is off, and no share is larger than its part,
// if off is at most the sum of the parts.
func Spread(off money.Amount, parts []money.Amount) []money.Amount {
	var sum money.Amount
	for _, p := range parts {
		sum += p
	}
	shares := make([]money.Amount, len(parts))
	if off < 1 || sum < 1 {
		return shares
	}
	type remainder struct {
		of uint64
		at int
	}
	remainders := make([]remainder, 0, MaxLines)
	left := off
	for i, p := range parts {
		if p < 1 {
			continue
		}
		high, low := bits.Mul64(uint64(off), uint64(p))
		share, of := bits.Div64(high, low, uint64(sum))
		shares[i], left = money.Amount(share), left-money.Amount(share)
		remainders = append(remainders, remainder{of, i})
	}
	if left > 0 {
		slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.of, a.of) })
	}
	for _, r := range remainders[:left] {
		shares[r.at]++
	}
	return shares
}
