package drops

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/views/ui"
)

// moneyText is an amount in millionths of a unit, rounded up to minor units.
func moneyText(ctx context.Context, micros int64, currency string) string {
	return ui.From(ctx).Locale.Money(delivery.AmountOf(micros, currency), currency)
}

// textCostLead returns the expected cost of the text messages, as far as it is known.
func textCostLead(ctx context.Context, c forecast.TextCost) string {
	switch {
	case c.Priced():
		return ui.T(ctx, "textcost.lead", ui.Num(ctx, c.Messages), ui.Num(ctx, c.Parts), moneyText(ctx, c.Micros, c.Currency))
	case c.Micros > 0:
		return ui.T(ctx, "textcost.lead_partly", ui.Num(ctx, c.Messages), ui.Num(ctx, c.Parts), moneyText(ctx, c.Micros, c.Currency))
	}
	return ui.T(ctx, "textcost.lead_unpriced", ui.Num(ctx, c.Messages), ui.Num(ctx, c.Parts))
}

// countryCost returns the cost of the messages to a country.
func countryCost(ctx context.Context, c forecast.TextCost, o forecast.CountryCost) string {
	if c.Currency == "" || !o.Priced {
		return ui.T(ctx, "textcost.unknown")
	}
	return moneyText(ctx, o.Micros, c.Currency)
}

func countryName(ctx context.Context, code string) string {
	if code == "" {
		return ui.T(ctx, "textcost.no_country")
	}
	return code
}

// textCostWarnings are the budgets that will not be enough.
func textCostWarnings(ctx context.Context, c forecast.TextCost) (list []string) {
	if c.DropParts > 0 {
		list = append(list, ui.T(ctx, "textcost.drop_short", ui.Num(ctx, c.DropParts), ui.Num(ctx, c.DropLeft)))
	}
	for _, d := range c.Days {
		day := ui.From(ctx).Locale.Day(d.Day, time.UTC)
		if d.Parts {
			list = append(list, ui.T(ctx, "textcost.day_short", day, ui.Num(ctx, d.Need.Parts), ui.Num(ctx, d.Left.Parts)))
		}
		if d.Money {
			list = append(list, ui.T(ctx, "textcost.money_short", day, moneyText(ctx, d.Need.Micros, c.Currency), moneyText(ctx, d.Left.Micros, c.Currency)))
		}
	}
	return list
}
