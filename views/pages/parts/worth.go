package parts

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// Worth describes the discount of a coupon in a few words, such as "20% off, at most ¥30".
func Worth(ctx context.Context, s template.Spec) string {
	l := ui.From(ctx).Locale
	switch s.Kind {
	case template.ThresholdOff:
		return l.T("worth.threshold", typed(l, s.AmountOff, s.Currency), typed(l, s.Threshold, s.Currency))
	case template.PercentOff:
		text := l.T("worth.percent", percentOff(ctx, s.PercentOff), typed(l, s.MaxOff, s.Currency))
		if s.Threshold > 0 {
			text = l.T("worth.percent_threshold", text, l.Money(s.Threshold, s.Currency))
		}
		return text
	}
	return l.T("worth.amount", typed(l, s.AmountOff, s.Currency))
}

// Headline is the big figure on the coupon.
func Headline(ctx context.Context, s template.Spec) string {
	l := ui.From(ctx).Locale
	if s.Kind == template.PercentOff {
		return l.T("worth.percent_big", percentOff(ctx, s.PercentOff))
	}
	return l.T("worth.amount_big", typed(l, s.AmountOff, s.Currency))
}

// Terms returns the conditions that the headline leaves out: the least order, and the maximum of a
// percentage.
func Terms(ctx context.Context, s template.Spec) string {
	l := ui.From(ctx).Locale
	switch s.Kind {
	case template.ThresholdOff:
		return l.T("worth.from", typed(l, s.Threshold, s.Currency))
	case template.PercentOff:
		text := l.T("worth.at_most", typed(l, s.MaxOff, s.Currency))
		if s.Threshold > 0 {
			text = l.T("worth.percent_threshold", text, l.Money(s.Threshold, s.Currency))
		}
		return text
	}
	return l.T("worth.any_order")
}

// typed writes an amount that a coupon must have; without it, as in a form before any input, a dash with the sign of the currency.
func typed(l *i18n.Locale, a money.Amount, currency string) string {
	if a == 0 {
		return strings.Replace(l.Money(0, currency), "0", "–", 1)
	}
	return l.Money(a, currency)
}

// CurrencyOptions offers every currency, the present one first.
func CurrencyOptions(present string) []ui.Option {
	list := []ui.Option{{Value: present, Label: present}}
	for _, code := range money.Currencies() {
		if code != present {
			list = append(list, ui.Option{Value: code, Label: code})
		}
	}
	return list
}

// percentOff follows the custom of the language: Chinese states the part that is still to be paid,
// in tenths ("8折" is 20 % off).
func percentOff(ctx context.Context, percent int) string {
	if percent == 0 {
		return "–" // a form before any input
	}
	if ui.From(ctx).Locale.Tag != "zh-CN" {
		return strconv.Itoa(percent)
	}
	return strconv.FormatFloat(float64(100-percent)/10, 'f', -1, 64)
}

// Validity says how long a claimed coupon can be used.
func Validity(ctx context.Context, t template.Template) string {
	l := ui.From(ctx).Locale
	switch {
	case t.ValidUntil != nil:
		return l.T("valid.until", l.DateTime(*t.ValidUntil, t.Zone()))
	case t.ValidHours > 0 && t.ValidHours%24 == 0:
		return l.N("valid.days", int64(t.ValidHours/24))
	case t.ValidHours > 0:
		return l.N("valid.hours", int64(t.ValidHours))
	}
	return ""
}

// NoticeDays lists the days before the expiry on which owners get a notice.
func NoticeDays(ctx context.Context, n template.NoticeDays) string {
	var list []string
	for _, d := range n.List() {
		if d == 0 {
			list = append(list, ui.T(ctx, "notice_days.last"))
		} else {
			list = append(list, ui.N(ctx, "notice_days.before", int64(d)))
		}
	}
	if len(list) == 0 {
		return ui.T(ctx, "form.never")
	}
	return strings.Join(list, ui.T(ctx, "ui.list_join"))
}

// ShopFilter offers every shop and, first, all of them.
func ShopFilter(ctx context.Context, shops []template.Shop) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "templates.all_shops")}}
	for _, s := range shops {
		list = append(list, ui.Option{Value: fmt.Sprint(s.Number), Label: fmt.Sprintf("%s · #%d", s.Name, s.Number)})
	}
	return list
}

// ShopOptions offers every shop, with its number and its time zone by name.
func ShopOptions(ctx context.Context, shops []template.Shop) []ui.Option {
	list := make([]ui.Option, 0, len(shops))
	for _, s := range shops {
		list = append(list, ui.Option{Value: fmt.Sprint(s.Number), Label: fmt.Sprintf("%s · #%d · %s", s.Name, s.Number, ZoneName(ctx, s.Timezone))})
	}
	return list
}
