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

// A series is one figure of all drops that the chart of the results can show.
type series struct {
	key, label string
	value      func(report.Figures) int64
	money      bool
}

func allSeries() []series {
	return []series{
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
	if slices.ContainsFunc(allSeries(), func(s series) bool { return s.key == key }) {
		p.series = key
	}
	known := slices.DeleteFunc(slices.Clone(p.List), func(f report.Figures) bool { return !slices.Contains(beside, parts.ID(f.Template.ID)) })
	if len(known) == 2 {
		p.beside = []string{parts.ID(known[0].Template.ID), parts.ID(known[1].Template.ID)}
	}
}

func (p Trend) chosen() series {
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
func (p Trend) of(s series, list []report.Figures) []report.Figures {
	return slices.DeleteFunc(slices.Clone(list), func(f report.Figures) bool { return s.money && f.Template.Currency != p.currency() })
}

func (p Trend) sum(s series, list []report.Figures) (sum int64) {
	for _, f := range p.of(s, list) {
		sum += s.value(f)
	}
	return sum
}

func (p Trend) text(ctx context.Context, s series, n int64) string {
	if s.money {
		return amountText(ctx, n, p.currency())
	}
	return ui.Num(ctx, n)
}

// comparable reports whether both periods have as many drops, so that their sums can be compared.
func (p Trend) comparable(s series) bool { return len(p.of(s, p.List)) == len(p.of(s, p.Before)) }

// changed says by how much the sum differs from the drops before; "" if they are fewer.
func (p Trend) changed(ctx context.Context, s series) string {
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

func (p Trend) url(s series) string {
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

// lines returns the figure's line over the drops, the earliest first, and the line over the drops
// before, as SVG paths, and the highest number. Each drop has the place of the drop that opened as
// many drops earlier.
func (p Trend) lines(s series) (now, before string, top int64) {
	lists := [2][]report.Figures{p.of(s, p.List), p.of(s, p.Before)}
	for _, list := range lists {
		for _, f := range list {
			top = max(top, s.value(f))
		}
	}
	var paths [2]string
	places := max(len(lists[0]), len(lists[1]), 2)
	for i, list := range lists {
		var b strings.Builder
		for j := range list {
			k := len(list) - 1 - j // the earliest drop is the last of the list
			x := float64(places-1-k) / float64(places-1) * resultsWidth
			y := resultsHeight - float64(max(0, s.value(list[k])))/float64(max(1, top))*(resultsHeight-8)
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(j, 1)], x, y)
		}
		paths[i] = b.String()
	}
	return paths[0], paths[1], top
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
		besideRow{ui.T(ctx, "report.sold_out"), [2]string{soldOut(ctx, pair[0]), soldOut(ctx, pair[1])}, -1},
		besideRow{ui.T(ctx, "report.p99"), [2]string{late(ctx, pair[0], 0.99), late(ctx, pair[1], 0.99)}, -1})
}
