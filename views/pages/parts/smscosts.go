package parts

import (
	"context"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/figure"
	"dropbell/domain/money"
	"dropbell/views/ui"
)

// SMSCosts is what text messages cost, each currency by itself, such as "¥405.00 + $1.20"; "–" if no
// price is known.
func SMSCosts(ctx context.Context, costs delivery.SMSCosts) string {
	var list []string
	for _, c := range costs.Priced() {
		list = append(list, ui.From(ctx).Locale.Sum(c.Amount(), c.Currency))
	}
	return OrDash(strings.Join(list, " + "))
}

// SMSCostsNote sets the cost of text messages against the revenue. Without revenue in their currency,
// or if they were paid in several currencies, it says how many parts were sent.
func SMSCostsNote(ctx context.Context, costs delivery.SMSCosts, revenue money.Amount, currency string) string {
	amount, all := costs.In(currency)
	switch {
	case len(costs.Priced()) == 0:
		return ui.T(ctx, "money.sms_unpriced")
	case !all || revenue <= 0:
		return ui.N(ctx, "money.sms_parts", costs.Parts())
	}
	return ui.T(ctx, "money.sms_share", ui.N(ctx, "money.sms_parts", costs.Parts()), ui.From(ctx).Locale.Percent(int64(amount), int64(revenue)))
}

// Returned is the revenue for each unit of discount, "–" without a discount.
func Returned(ctx context.Context, revenue, discount money.Amount, currency string) string {
	n, ok := figure.Ratio(revenue, discount)
	if !ok {
		return "–"
	}
	return ui.From(ctx).Locale.Sum(money.Amount(n*money.Unit(currency)/figure.Whole), currency)
}

// OneOf writes one unit of the currency, such as ¥1.
func OneOf(ctx context.Context, currency string) string {
	return ui.From(ctx).Locale.Money(money.Amount(money.Unit(currency)), currency)
}
