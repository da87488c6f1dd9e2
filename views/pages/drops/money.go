package drops

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/views/pages/parts"
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

// amount writes one of the amounts of the card.
func (m Money) amount(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Sum(n, m.Currency)
}

// meanText is an average of n orders or messages, "–" without any.
func meanText(amount string, n int64) string {
	if n == 0 {
		return "–"
	}
	return amount
}

// messageNote is the revenue per message where it is another than the revenue per reminder.
func (m Money) messageNote(ctx context.Context) string {
	if m.PerMessage() == m.PerReminder() {
		return ""
	}
	return ui.T(ctx, "money.per_message", m.amount(ctx, m.PerMessage()))
}

func (m Money) refundNote(ctx context.Context) string {
	if m.Refunds == 0 {
		return ""
	}
	return ui.N(ctx, "money.refunds", m.Refunds)
}

// averageNotes are the average before discounts and the average of orders without coupons, or that
// the shop reports none.
func (m Money) averageNotes(ctx context.Context) string {
	return parts.Before(ctx, m.amount(ctx, m.Basket()), m.withoutNote(ctx))
}

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

// Earned is what shops earned over some days.
type Earned struct{ report.Overview }

// A comparedSum is one currency over the last days and the days before. sms is what text messages cost.
type comparedSum struct {
	now, before    report.Sums
	sms, smsBefore money.Amount
}

func (c comparedSum) amount(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Sum(n, c.now.Currency)
}

// drawn reports whether the currency has orders to draw.
func (e Earned) drawn(c comparedSum) bool {
	return slices.ContainsFunc(slices.Concat(e.Hours, e.HoursBefore), func(h report.Hour) bool { return h.Currency == c.now.Currency })
}

// chart is the revenue of the currency by day, beside the days before if they had any.
func (e Earned) chart(ctx context.Context, c comparedSum) ui.BarChart {
	l := ui.From(ctx).Locale
	p := ui.Amounts(ctx, c.now.Currency)
	p.ID, p.Label = "earned-"+c.now.Currency, ui.T(ctx, "money.by_day", c.now.Currency)
	p.Now, p.Then = ui.T(ctx, "money.last_days", int64(e.Days)), ui.T(ctx, "money.days_before", int64(e.Days))
	bars := func(amounts []money.Amount, from time.Time) (list []ui.ChartBar) {
		for i, n := range amounts {
			list = append(list, ui.ChartBar{Name: l.Day(from.AddDate(0, 0, i), from.Location()), N: int64(n)})
		}
		return list
	}
	now, before := e.Daily(c.now.Currency)
	p.Bars = bars(now, e.From)
	if c.before.Paid+c.before.Refunds > 0 {
		p.Before = bars(before, e.From.AddDate(0, 0, -e.Days))
	}
	return p
}

// compared returns every currency of either time, in the order of their codes.
func (e Earned) compared() (list []comparedSum) {
	of := func(currency string) *comparedSum {
		i, found := slices.BinarySearchFunc(list, currency, func(c comparedSum, code string) int { return strings.Compare(c.now.Currency, code) })
		if !found {
			sums := report.Sums{Currency: currency}
			list = slices.Insert(list, i, comparedSum{now: sums, before: sums})
		}
		return &list[i]
	}
	for _, s := range e.Now {
		of(s.Currency).now = s
	}
	for _, s := range e.Before {
		of(s.Currency).before = s
	}
	for _, c := range e.SMS.Priced() {
		of(c.Currency).sms = c.Amount()
	}
	for _, c := range e.SMSBefore.Priced() {
		of(c.Currency).smsBefore = c.Amount()
	}
	return list
}
