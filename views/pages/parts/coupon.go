package parts

import (
	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// returned ends the names of texts about revoked coupons whose place is for sale again.
const returned = "returned"

func couponTone(s coupon.State) ui.Tone {
	switch s {
	case coupon.Unused:
		return ui.Good
	case coupon.Locked:
		return ui.Info
	case coupon.Expired, coupon.Suspended:
		return ui.Warn
	case coupon.Revoked:
		return ui.Bad
	}
	return ui.Neutral
}

// RuleSpec returns the rule in the form in which templates state their discount.
func RuleSpec(r coupon.Rule) template.Spec {
	return template.Spec{Kind: r.Kind, AmountOff: r.AmountOff, Threshold: r.Threshold, PercentOff: r.PercentOff, MaxOff: r.MaxOff,
		Currency: r.Currency, Target: r.Target, Product: r.Product}
}
