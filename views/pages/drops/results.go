package drops

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// A trendSeries is one figure of all drops that the chart of the results can show.
type trendSeries struct {
	key, label string
	value      func(report.Figures) int64
	money      bool
}

func allSeries() []trendSeries {
	return []trendSeries{
		{"revenue", "money.revenue", func(f report.Figures) int64 { return int64(f.Money.Revenue()) }, true},
		{"orders", "money.orders", func(f report.Figures) int64 { return f.Money.Orders() }, false},
		{"discount", "money.discount", func(f report.Figures) int64 { return int64(f.Money.Discount()) }, true},
		{"issued", "claims.issued", func(f report.Figures) int64 { return f.Issued }, false},
		{"opened", "journey.opened", func(f report.Figures) int64 { return f.Opened }, false},
		{"sent", "stat.sent", func(f report.Figures) int64 { return f.Progress.Sent }, false},
	}
}

// Choose sets the figure of the chart, the first one if there is no such figure, and the drops that
// stand side by side, if they are two of the list.
func (p *Trend) Choose(key string, beside []string) {
	p.series = allSeries()[0].key
	if slices.ContainsFunc(allSeries(), func(s trendSeries) bool { return s.key == key }) {
		p.series = key
	}
	known := slices.DeleteFunc(slices.Clone(p.List), func(f report.Figures) bool { return !slices.Contains(beside, parts.ID(f.Template.ID)) })
	if len(known) == 2 {
		p.beside = []string{parts.ID(known[0].Template.ID), parts.ID(known[1].Template.ID)}
	}
}

func (p Trend) chosen() trendSeries {
	for _, s := range allSeries() {
		if s.key == p.series {
			return s
		}
	}
	return allSeries()[0]
}

// currency is the currency of the amounts in the chart: the currency of the latest drop.
func (p Trend) currency() string { return p.List[0].Template.Currency }

// of returns the drops whose figure the chart can show: amounts are never added up across
// currencies.
func (p Trend) of(s trendSeries, list []report.Figures) []report.Figures {
	return slices.DeleteFunc(slices.Clone(list), func(f report.Figures) bool { return s.money && f.Template.Currency != p.currency() })
}

func (p Trend) sum(s trendSeries, list []report.Figures) (sum int64) {
	for _, f := range p.of(s, list) {
		sum += s.value(f)
	}
	return sum
}

func (p Trend) text(ctx context.Context, s trendSeries, n int64) string {
	if s.money {
		return amountText(ctx, n, p.currency())
	}
	return ui.Num(ctx, n)
}

// comparable reports whether the sum can be compared with the period before: that has drops, and none are missing.
func (p Trend) comparable(s trendSeries) bool { return !p.More && p.sum(s, p.Before) > 0 }

// ended are the drops that are over: the figures of the others still grow.
func ended(ctx context.Context, list []report.Figures) []report.Figures {
	return slices.DeleteFunc(slices.Clone(list), func(f report.Figures) bool { return ui.From(ctx).Now.Before(f.Template.OverAt()) })
}

// notes say which orders an amount has, by how much the average drop that is over differs from the period before if the periods have
// different numbers of drops, how many drops are open, and what the discount returned.
func (p Trend) notes(ctx context.Context, s trendSeries) (list []string) {
	now, before, ended := p.sum(s, p.List), p.sum(s, p.Before), ended(ctx, p.of(s, p.List))
	if n, of := int64(len(ended)), int64(len(p.of(s, p.Before))); p.comparable(s) && n > 0 && n != of && before >= of {
		each := before / of
		list = append(list, ui.T(ctx, "results.per_drop", signedShare(ctx, p.sum(s, ended)/n-each, each)))
	}
	switch s.key {
	case "revenue":
		list = append(list, ui.N(ctx, "results.counted", int64(len(p.of(s, p.List)))))
		if n := len(p.of(s, p.List)) - len(ended); n > 0 {
			list = append(list, ui.N(ctx, "results.running", int64(n)))
		}
	case "discount":
		list = append(list, ui.T(ctx, "results.return", parts.Returned(ctx, money.Amount(p.sum(allSeries()[0], p.List)), money.Amount(now), p.currency()), parts.OneOf(ctx, p.currency())))
	}
	return list
}

// mostRanked is how many drops the ranking has at most.
const mostRanked = 5

// ranked returns the drops with the greatest figures above 0, the greatest first.
func (p Trend) ranked(s trendSeries, list []report.Figures) []report.Figures {
	list = slices.DeleteFunc(p.of(s, list), func(f report.Figures) bool { return s.value(f) <= 0 })
	slices.SortStableFunc(list, func(a, b report.Figures) int { return cmp.Compare(s.value(b), s.value(a)) })
	return list[:min(len(list), mostRanked)]
}

// best returns the drop with the greatest figure, nil if no figure is above 0.
func (p Trend) best(s trendSeries, list []report.Figures) *report.Figures {
	for _, f := range p.ranked(s, list) {
		return &f
	}
	return nil
}

// answer says which drop has the greatest figure.
func (p Trend) answer(ctx context.Context, s trendSeries) string {
	best := p.best(s, p.List)
	if best == nil {
		return ui.T(ctx, s.label)
	}
	return ui.T(ctx, "results.best."+s.key, best.Template.Name, p.text(ctx, s, s.value(*best)))
}

// headline is the sum of the figure, and by how much it differs from the period before.
func (p Trend) headline(ctx context.Context, s trendSeries) string {
	sum, before := p.sum(s, p.List), p.sum(s, p.Before)
	text := ui.Labelled(ctx, ui.T(ctx, s.label), p.text(ctx, s, sum))
	switch {
	case !p.comparable(s):
		return text
	case sum >= 2*before:
		return ui.T(ctx, "results.headline_times", text, ui.Ratio(ctx, float64(sum)/float64(before)))
	case sum > before:
		return ui.T(ctx, "results.headline_more", text, ui.From(ctx).Locale.Percent(sum-before, before))
	case sum < before:
		return ui.T(ctx, "results.headline_less", text, ui.From(ctx).Locale.Percent(before-sum, before))
	}
	return ui.T(ctx, "results.headline_same", text)
}

// ordered returns the drops as the table shows them: sorted by a figure, the greatest first, or the
// latest first.
func (p Trend) ordered() Trend {
	for _, c := range p.sorts() {
		if c.key == p.Sort {
			p.List = slices.Clone(p.List)
			slices.SortStableFunc(p.List, func(a, b report.Figures) int { return cmp.Compare(c.value(b), c.value(a)) })
		}
	}
	return p
}

// sorts are the figures that the table can be sorted by. Revenue of several currencies is none.
func (p Trend) sorts() []trendSeries {
	list := append(allSeries(), trendSeries{"used", "report.used", func(f report.Figures) int64 { return f.Tally.Used }, false})
	return slices.DeleteFunc(list, func(s trendSeries) bool { return s.money && p.currencies() > 1 })
}

// sortURL is the table sorted by the figure, or by the opening for ""; it is "" if the table cannot be sorted by the figure.
func (p Trend) sortURL(key string) string {
	if key != "" && !slices.ContainsFunc(p.sorts(), func(s trendSeries) bool { return s.key == key }) {
		return ""
	}
	q := p.query()
	q.Set("series", p.chosen().key)
	if key != "" {
		q.Set("sort", key)
	}
	return "/results?" + q.Encode() + "#drops"
}

// total is the sum of the table's column, an amount for each currency.
func (p Trend) total(ctx context.Context, key string) string {
	sums := map[string]int64{}
	for _, s := range append(allSeries(), p.sorts()...) {
		if s.key != key {
			continue
		}
		if !s.money {
			return ui.Num(ctx, p.sum(s, p.List))
		}
		for _, f := range p.List {
			sums[f.Template.Currency] += s.value(f)
		}
		break
	}
	var texts []string
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		texts = append(texts, amountText(ctx, sums[currency], currency))
	}
	return strings.Join(texts, " + ")
}

// query has the period and the shop, for addresses.
func (p Trend) query() url.Values {
	q := url.Values{}
	if p.Shop != "" {
		q.Set("shop", p.Shop)
	}
	if p.Period.Span == report.Chosen {
		q.Set("from", p.From)
		q.Set("to", p.To)
	} else if p.Period.Span != report.Spans()[0] {
		q.Set("period", string(p.Period.Span))
	}
	return q
}

func (p Trend) url(s trendSeries) string {
	q := p.query()
	q.Set("series", s.key)
	return "/results?" + q.Encode() + "#chart"
}

func (p Trend) spanURL(s report.Span) string {
	q := url.Values{"period": {string(s)}, "series": {p.chosen().key}}
	if p.Shop != "" {
		q.Set("shop", p.Shop)
	}
	return "/results?" + q.Encode()
}

// note says which drops the drawing shows.
func (p Trend) note(ctx context.Context, s trendSeries) string {
	l, zone := ui.From(ctx).Locale, p.Period.From().Location()
	note := ui.N(ctx, "results.chart_note", int64(len(p.of(s, p.List))), l.Date(p.Period.From(), zone), l.Date(p.Period.To().AddDate(0, 0, -1), zone))
	if before := len(p.of(s, p.Before)); before > 0 {
		return ui.T(ctx, "ui.sentences", note, ui.N(ctx, "results.chart_before", int64(before)))
	}
	return ui.T(ctx, "ui.sentences", note, ui.T(ctx, "results.chart_alone"))
}

// partName is the name of the part that begins at the instant.
func (p Trend) partName(ctx context.Context, from time.Time) string {
	if p.Period.Span == report.Months12 {
		return ui.From(ctx).Locale.Month(from)
	}
	return ui.From(ctx).Locale.Day(from, from.Location())
}

// drawing is the figure by the parts of the period, beside the period before if that has drops.
func (p Trend) drawing(ctx context.Context, s trendSeries) ui.BarChart {
	number := func(n int64) string { return ui.Num(ctx, n) }
	c := ui.BarChart{Text: number, Axis: number}
	if s.money {
		c = ui.Amounts(ctx, p.currency())
	}
	c.Label, c.Now, c.Then = ui.T(ctx, "results.chart", ui.T(ctx, s.label)), ui.T(ctx, "results.now"), ui.T(ctx, "results.before")
	begins := func(starts []time.Time) (list []ui.ChartBar) {
		for _, from := range starts[:len(starts)-1] {
			list = append(list, ui.ChartBar{Name: p.partName(ctx, from)})
		}
		return list
	}
	c.Bars = begins(p.Period.Starts)
	if len(p.of(s, p.Before)) > 0 {
		c.Before = begins(p.Period.BeforeStarts)
	}
	for _, f := range p.of(s, slices.Concat(p.List, p.Before)) {
		i, before := p.Period.Part(f.Template.OpensAt)
		if before {
			c.Before[i].N += s.value(f)
		} else {
			c.Bars[i].N += s.value(f)
		}
	}
	return c
}

func (p Trend) ticked(t template.Template) bool { return slices.Contains(p.beside, parts.ID(t.ID)) }

// A besideRow is one figure of the two drops side by side. more is the index of the greater one, -1
// if they are equal or cannot be compared. difference is by how much the first differs from the second.
type besideRow struct {
	label      string
	texts      [2]string
	more       int
	difference string
}

// pair returns the two drops that stand side by side.
func (p Trend) pair() (list []report.Figures) {
	for _, f := range p.List {
		if slices.Contains(p.beside, parts.ID(f.Template.ID)) {
			list = append(list, f)
		}
	}
	return list
}

// besideSeries are the figures of two drops side by side that have no sum over drops.
func besideSeries() []trendSeries {
	return []trendSeries{
		{"average", "money.basket", func(f report.Figures) int64 { return int64(f.Money.Average()) }, true},
		{"per_coupon", "results.per_coupon", func(f report.Figures) int64 { return int64(f.PerCoupon()) }, true},
	}
}

// unfinished says of each drop whose coupons can still be claimed or used that its figures will grow.
func unfinished(ctx context.Context, pair []report.Figures) (list []string) {
	for _, f := range pair {
		age := ui.From(ctx).Locale.Duration(ui.From(ctx).Now.Sub(f.Template.OpensAt))
		if ui.From(ctx).Now.Before(f.Template.OverAt()) {
			list = append(list, ui.T(ctx, "results.still_open", dropAndDay(ctx, f.Template), age))
		} else if ui.From(ctx).Now.Before(report.UsableUntil(f.Template)) {
			list = append(list, ui.T(ctx, "results.still_used", dropAndDay(ctx, f.Template), age))
		}
	}
	return list
}

func besideRows(ctx context.Context, pair []report.Figures) (rows []besideRow) {
	for _, s := range append(allSeries(), besideSeries()...) {
		row := besideRow{label: ui.T(ctx, s.label), more: -1}
		values := [2]int64{s.value(pair[0]), s.value(pair[1])}
		for i, n := range values {
			row.texts[i] = ui.Num(ctx, n)
			if s.money {
				row.texts[i] = amountText(ctx, n, pair[i].Template.Currency)
			}
		}
		if same := pair[0].Template.Currency == pair[1].Template.Currency; same || !s.money {
			row.difference = differenceText(ctx, s, values, pair[0].Template.Currency)
			if values[0] > values[1] {
				row.more = 0
			} else if values[0] < values[1] {
				row.more = 1
			}
		}
		rows = append(rows, row)
	}
	others := []struct {
		label string
		text  func(report.Figures) string
	}{{"results.use_rate", func(f report.Figures) string { return ui.From(ctx).Locale.Percent(f.Tally.Used, f.Given()) }},
		{"money.return", func(f report.Figures) string {
			return parts.Returned(ctx, f.Money.Revenue(), f.Money.Discount(), f.Template.Currency)
		}}, {"money.sms", func(f report.Figures) string { return smsCost(ctx, f) }}, {"report.sold_out", func(f report.Figures) string { return soldOut(ctx, f) }},
		{"report.p99", func(f report.Figures) string { return quantileWithin(ctx, f.Late) }}}
	for _, o := range others {
		rows = append(rows, besideRow{label: ui.T(ctx, o.label), texts: [2]string{o.text(pair[0]), o.text(pair[1])}, more: -1})
	}
	return rows
}

// differenceText writes by how much the first value differs from the second, with its share of the second.
func differenceText(ctx context.Context, s trendSeries, values [2]int64, currency string) string {
	n := values[0] - values[1]
	if n == 0 {
		return ui.T(ctx, "results.same")
	}
	sign, size := "+", n
	if n < 0 {
		sign, size = "−", -n
	}
	text := sign + ui.Num(ctx, size)
	if s.money {
		text = sign + amountText(ctx, size, currency)
	}
	if values[1] > 0 {
		text = ui.T(ctx, "results.share", text, signedShare(ctx, n, values[1]))
	}
	return text
}

// signedShare writes the share of a difference with its sign; the share of 0 is 0%.
func signedShare(ctx context.Context, difference, of int64) string {
	if difference < 0 {
		return "−" + ui.From(ctx).Locale.Percent(-difference, of)
	}
	return "+" + ui.From(ctx).Locale.Percent(difference, of)
}
