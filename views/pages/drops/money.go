package drops

import (
	"context"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/views/ui"
)

// Money is what a drop earned.
type Money struct {
	report.Money
	// BudgetURL is the page on which the drop's budget is set; empty = no link.
	BudgetURL string
	// Drop is the drop of which files are offered; 0 = none.
	Drop int64
}

func (m Money) amount(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Money(n, m.Currency)
}

func (m Money) refundNote(ctx context.Context) string {
	if m.Refunds == 0 {
		return ""
	}
	return ui.N(ctx, "money.refunds", m.Refunds)
}

// withoutNote compares with orders without coupons, or says that the shop reports none.
func (m Money) withoutNote(ctx context.Context) string {
	switch {
	case !m.Without.Reported:
		return ui.T(ctx, "money.without_unknown")
	case m.Without.Orders == 0:
		return ui.T(ctx, "money.without_none")
	}
	return ui.T(ctx, "money.without", m.amount(ctx, m.Without.Basket()))
}

func (m Money) shareNote(ctx context.Context) string {
	if m.Ordered() <= 0 {
		return ""
	}
	return ui.T(ctx, "money.share", ui.From(ctx).Locale.Percent(int64(m.Discount()), int64(m.Ordered())))
}

// returned is the revenue for each unit of discount, "–" without a discount.
func (m Money) returned(ctx context.Context) string {
	n, ok := m.Return()
	if !ok {
		return "–"
	}
	unit := money.Amount(1)
	for range money.Exponent(m.Currency) {
		unit *= 10
	}
	return m.amount(ctx, money.Amount(n)*unit/1000)
}

func (m Money) sms(ctx context.Context) string {
	if m.SMS.Currency == "" {
		return "–"
	}
	return ui.From(ctx).Locale.Money(m.SMS.Amount(), m.SMS.Currency)
}

// smsNote sets the cost of text messages against the revenue, if both are in one currency.
func (m Money) smsNote(ctx context.Context) string {
	switch {
	case m.SMS.Currency == "":
		return ui.T(ctx, "money.sms_unpriced")
	case m.SMS.Currency != m.Currency || m.Revenue() <= 0:
		return ui.N(ctx, "money.sms_parts", m.SMS.Parts)
	}
	return ui.T(ctx, "money.sms_share", ui.From(ctx).Locale.Percent(int64(m.SMS.Amount()), int64(m.Revenue())))
}

// Earned is what shops earned over some days.
type Earned struct{ report.Overview }

// A comparedSum is one currency over the last days and the days before.
type comparedSum struct{ now, before report.Sums }

func (c comparedSum) amount(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Money(n, c.now.Currency)
}

// change says by how much now differs from before.
func (c comparedSum) change(ctx context.Context, now, before int64) string {
	switch {
	case before <= 0:
		return ui.T(ctx, "money.change_new")
	case now > before:
		return ui.T(ctx, "money.change_more", ui.From(ctx).Locale.Percent(now-before, before))
	case now < before:
		return ui.T(ctx, "money.change_less", ui.From(ctx).Locale.Percent(before-now, before))
	}
	return ui.T(ctx, "money.change_same")
}

// compared returns every currency of either time.
func (e Earned) compared() (list []comparedSum) {
	before := map[string]report.Sums{}
	for _, s := range e.Before {
		before[s.Currency] = s
	}
	for _, s := range e.Now {
		list = append(list, comparedSum{s, before[s.Currency]})
		delete(before, s.Currency)
	}
	for _, s := range e.Before {
		if _, only := before[s.Currency]; only {
			list = append(list, comparedSum{report.Sums{Currency: s.Currency}, s})
		}
	}
	return list
}
