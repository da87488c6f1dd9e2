package drops

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

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
		{"issued", "claims.issued", func(f report.Figures) int64 { return f.Issued }, false},
		{"used", "report.used", func(f report.Figures) int64 { return f.Tally.Used }, false},
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

// comparable reports whether both periods have as many drops, so that their sums can be compared.
func (p Trend) comparable(s trendSeries) bool { return len(p.of(s, p.List)) == len(p.of(s, p.Before)) }

// changed says by how much the sum differs from the drops before; "" if they are fewer.
func (p Trend) changed(ctx context.Context, s trendSeries) string {
	now, before := p.sum(s, p.List), p.sum(s, p.Before)
	switch {
	case !p.comparable(s) || before <= 0:
		return ""
	case now > before:
		return ui.T(ctx, "money.change_more", ui.From(ctx).Locale.Percent(now-before, before))
	case now < before:
		return ui.T(ctx, "money.change_less", ui.From(ctx).Locale.Percent(before-now, before))
	}
	return ui.T(ctx, "money.change_same")
}

func (p Trend) url(s trendSeries) string {
	q := url.Values{"series": {s.key}}
	if p.Shop != "" {
		q.Set("shop", p.Shop)
	}
	return "/results?" + q.Encode() + "#chart"
}

// The size of the drawing.
const (
	resultsWidth  = 600
	resultsHeight = 160
)

// A column is one drop's figure in the drawing, with the drop and its figure in words. The column
// of a place without a drop has no words.
type column struct {
	x, y, width, height float64
	day, words          string
}

// A resultsDrawing is the figure of the last drops as columns, the earliest first, and the figure
// of the drops before as a dashed stroke over the column of the drop that opened as many drops
// later. before is an SVG path. top is the amount at the upper edge.
type resultsDrawing struct {
	columns []column
	before  string
	top     int64
}

// note says which drops the drawing shows.
func (p Trend) note(ctx context.Context, s trendSeries) string {
	note := ui.N(ctx, "results.chart_note", int64(len(p.of(s, p.List))))
	if before := len(p.of(s, p.Before)); before > 0 {
		note = ui.T(ctx, "ui.sentences", note, ui.N(ctx, "results.chart_before", int64(before)))
	}
	return note
}

func (p Trend) drawing(ctx context.Context, s trendSeries) (d resultsDrawing) {
	now, before := p.of(s, p.List), p.of(s, p.Before)
	var most int64
	for _, f := range slices.Concat(now, before) {
		most = max(most, s.value(f))
	}
	d.top = scaleTop(most)
	height := func(f report.Figures) float64 {
		return float64(max(0, s.value(f))) / float64(d.top) * resultsHeight
	}
	places := max(len(now), len(before))
	step := float64(resultsWidth) / float64(max(1, places))
	// The latest drop is the first of the list and has the last place.
	left := func(i int) float64 { return float64(places-1-i) * step }
	day := ""
	for i := places - 1; i >= 0; i-- {
		c := column{x: left(i) + step*.2, y: resultsHeight, width: step * .6}
		if i < len(now) {
			f := now[i]
			c.height = height(f)
			c.y -= c.height
			c.day, c.words = ui.From(ctx).Locale.Day(f.Template.OpensAt, f.Template.Zone()), dropAndDay(ctx, f.Template)+": "+p.text(ctx, s, s.value(f))
			if c.day == day {
				c.day = ui.From(ctx).Locale.Clock(f.Template.OpensAt, f.Template.Zone())
			} else {
				day = c.day
			}
		}
		d.columns = append(d.columns, c)
	}
	var strokes strings.Builder
	for i, f := range before {
		fmt.Fprintf(&strokes, "M%.1f %.1fh%.1f", left(i)+step*.1, resultsHeight-height(f), step*.8)
	}
	d.before = strokes.String()
	return d
}

func tenths(f float64) string { return fmt.Sprintf("%.1f", f) }

// scaleTop returns the least of 1, 2, 4 and 10 times a power of ten that is at least n: half of it
// can be read as well. It returns at least 2.
func scaleTop(n int64) int64 {
	for power := int64(1); ; power *= 10 {
		for _, factor := range []int64{2, 4, 10} {
			if rounded := factor * power; rounded >= n {
				return rounded
			}
		}
	}
}

func (p Trend) ticked(t template.Template) bool { return slices.Contains(p.beside, parts.ID(t.ID)) }

// A besideRow is one figure of the two drops side by side. more is the index of the greater one, -1
// if they are equal or cannot be compared.
type besideRow struct {
	label string
	texts [2]string
	more  int
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

func besideRows(ctx context.Context, pair []report.Figures) (rows []besideRow) {
	for _, s := range allSeries() {
		row := besideRow{label: ui.T(ctx, s.label), more: -1}
		values := [2]int64{s.value(pair[0]), s.value(pair[1])}
		for i, n := range values {
			row.texts[i] = ui.Num(ctx, n)
			if s.money {
				row.texts[i] = amountText(ctx, n, pair[i].Template.Currency)
			}
		}
		if same := pair[0].Template.Currency == pair[1].Template.Currency; values[0] != values[1] && (same || !s.money) {
			row.more = 0
			if values[1] > values[0] {
				row.more = 1
			}
		}
		rows = append(rows, row)
	}
	return append(rows,
		besideRow{ui.T(ctx, "money.sms"), [2]string{smsCost(ctx, pair[0]), smsCost(ctx, pair[1])}, -1},
		besideRow{ui.T(ctx, "report.sold_out"), [2]string{soldOut(ctx, pair[0]), soldOut(ctx, pair[1])}, -1},
		besideRow{ui.T(ctx, "report.p99"), [2]string{quantileWithin(ctx, pair[0].Late), quantileWithin(ctx, pair[1].Late)}, -1})
}
