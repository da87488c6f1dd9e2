package drops

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// Report is the report of one drop, for staff.
type Report struct {
	report.Report
	// Links are the links to the shared report, the latest first. Address returns the address of a
	// link. Off is set while links cannot be made.
	Links   []report.Link
	Address func(linkID int64) string
	Off     bool
	Error   string
	Life    string // as chosen
	// Others are the drops that the report can be compared with, the latest first.
	Others []template.Template
}

func (p Report) url() string { return fmt.Sprintf("/templates/%d/report", p.Template.ID) }

func (p Report) share(ctx context.Context) bool {
	return ui.May(ctx, staff.ManageTemplates, p.Template.ShopNumber)
}

// SharedReport is the same for holders of a link. Picture is the absolute address of its picture
// for previews of the link.
type SharedReport struct {
	report.Report
	Picture string
}

// drawn is the common content of the staff's page and the shared page. Holders of a link have no
// drops to choose from.
type drawn struct {
	report.Report
	Others []template.Template
	// Files offers the files of what the drop earned, which staff can download.
	Files bool
}

func (p drawn) zone() *time.Location { return p.Template.Zone() }

func (p drawn) money(ctx context.Context, n money.Amount) string {
	return ui.From(ctx).Locale.Sum(n, p.Template.Currency)
}

// guarded reports whether the drop had a rule of fairness: doors, a waitlist, or a protection against scripts.
func (p drawn) guarded() bool {
	t := p.Template
	return len(t.Doors) > 0 || t.Waits() || t.Protected()
}

// outOf writes a share with its whole; "" if the whole is 0.
func outOf(ctx context.Context, n, of int64) string {
	if of == 0 {
		return ""
	}
	return ui.T(ctx, "report.out_of", ui.From(ctx).Locale.Percent(n, of), of)
}

// givenNote writes the share of the stock that is given, and how many coupons were given in all if some
// came back.
func givenNote(ctx context.Context, f report.Figures) string {
	if f.Tally.Returned == 0 {
		return outOf(ctx, f.Issued, f.Total)
	}
	return ui.T(ctx, "results.given", outOf(ctx, f.Issued, f.Total), ui.Num(ctx, f.Tally.Issued), ui.Num(ctx, f.Tally.Returned))
}

func (p drawn) outstanding(ctx context.Context) string {
	n, known := p.Outstanding()
	if !known {
		return "–"
	}
	return p.money(ctx, n)
}

// soldOut is how long the coupons lasted, "–" if some are left, or a draw gave them.
func soldOut(ctx context.Context, f report.Figures) string {
	if f.SoldOutAfter == 0 || f.Template.OpeningMode.Drawn() {
		return "–"
	}
	return ui.From(ctx).Locale.Duration(f.SoldOutAfter)
}

func (p drawn) peak(ctx context.Context) (rate, at string) {
	return peakText(ctx, p.Sales, p.zone())
}

func (p drawn) sheetSum() (sum delivery.Counts) {
	for _, s := range p.Sheets {
		sum = sum.Plus(s.Counts)
	}
	return sum
}

// A sheetCell is one number of the balance sheet.
type sheetCell struct {
	key string
	n   int64
}

func sheetCells(c delivery.Counts) []sheetCell {
	return []sheetCell{{"sent", c.Sent}, {"skipped", c.Skipped}, {"expired", c.Expired}, {"dead", c.Dead}, {"inflight", c.InFlight}}
}

// afterNote describes how reliable the number is.
func (p drawn) afterNote(ctx context.Context) string {
	if p.AfterOpening == 0 {
		return ui.T(ctx, "report.after_none")
	}
	return ui.T(ctx, "report.after_most")
}

func (p drawn) endLabel(ctx context.Context) string {
	if p.Template.State(p.At) == template.Closed {
		return ui.T(ctx, "drop.ended_at")
	}
	return ui.T(ctx, "field.closes_at")
}

// clock writes an instant of the drop's day to the second, "–" if it is unknown.
func (p drawn) clock(ctx context.Context, at *time.Time) string {
	if at == nil {
		return "–"
	}
	return ui.From(ctx).Locale.Clock(at.Truncate(time.Second), p.zone())
}

// balanceNote says whether the sheet balances, and the source that it was counted from.
func (p drawn) balanceNote(ctx context.Context) string {
	switch {
	case p.Archived:
		return ui.T(ctx, "report.archived")
	case p.Difference != 0:
		return ui.N(ctx, "balance.off", p.Difference)
	}
	return ui.T(ctx, "balance.fine")
}

// late writes one quantile of the lateness.
func late(ctx context.Context, f report.Figures, q float64) string { return quantile(ctx, f.Late, q) }

// earned is what the drop earned.
func (p drawn) earned() Money {
	m := Money{Money: p.Money}
	if p.Files {
		m.Drop = p.Template.ID
	}
	return m
}

// compared returns the drop and the drops before it, the latest first.
func (p drawn) compared() []report.Figures {
	list := []report.Figures{p.Figures}
	for _, e := range p.Earlier {
		list = append(list, e.Figures)
	}
	return list
}

// ChartsOf returns the charts of one drop next to earlier drops of its shop.
func ChartsOf(ctx context.Context, t template.Template, growth []reminder.Growth, sales claim.Curve, events []reminder.TemplateStep, earlier []report.Past) (booked, sold ui.TimeChart) {
	booked = ui.TimeChart{ID: "growth", Label: ui.T(ctx, "chart.growth", t.Name), Value: ui.T(ctx, "growth.booked"), None: ui.T(ctx, "growth.none"), Zone: t.Zone(),
		Own: ui.Curve{Name: t.Name, Origin: t.OpensAt, Points: growth}, Marks: marksOf(ctx, events),
		Spans: []ui.Span{{Label: ui.T(ctx, "chart.last_day"), From: -24 * time.Hour}, {Label: ui.T(ctx, "chart.last_hour"), From: -time.Hour}}}
	sold = ui.TimeChart{ID: "sales", Label: ui.T(ctx, "chart.sales", t.Name), Value: ui.T(ctx, "claims.issued"), None: ui.T(ctx, "claims.none"), Zone: t.Zone(),
		Own: ui.Curve{Name: t.Name, Origin: t.OpensAt, Points: ui.Sold(sales)}, Marks: during(marksOf(ctx, events), sales),
		Spans: []ui.Span{{Label: ui.T(ctx, "chart.first_minute"), To: time.Minute}, {Label: ui.T(ctx, "chart.first_minutes"), To: 10 * time.Minute}}}
	shown := besideFor * max(sales.EndAfter(t.OpensAt), time.Minute/besideFor)
	if !sales.GoneAt.IsZero() {
		shown = max(2*sales.GoneAfter(t.OpensAt), sales.EndAfter(t.OpensAt))
	}
	sold.Own.Of, sold.Shares = t.Stock, unlike(t, earlier)
	ahead := time.Duration(math.MaxInt64)
	if len(growth) > 0 {
		ahead = besideFor * max(t.OpensAt.Sub(growth[0].At), time.Hour)
	}
	for _, e := range earlier {
		name := e.Template.Name + " · " + ui.From(ctx).Locale.Day(e.Template.OpensAt, t.Zone())
		if len(e.Growth) > 1 {
			booked.Earlier = append(booked.Earlier, ui.Curve{Name: name, Origin: e.Template.OpensAt, Points: since(e.Growth, e.Template.OpensAt.Add(-ahead))})
		}
		if len(e.Sales.Points) > 0 {
			sold.Earlier = append(sold.Earlier, ui.Curve{Name: name, Origin: e.Template.OpensAt, Of: e.Template.Stock, Points: until(ui.Sold(e.Sales), e.Template.OpensAt.Add(shown))})
		}
	}
	return booked, sold
}

// unlike reports whether the stock of an earlier drop with a curve is more than twice, or less than half, of the stock of t.
func unlike(t template.Template, earlier []report.Past) bool {
	return slices.ContainsFunc(earlier, func(e report.Past) bool {
		return len(e.Sales.Points) > 0 && (e.Template.Stock > 2*t.Stock || t.Stock > 2*e.Template.Stock)
	})
}

// smsCost is what the text messages about the drop cost, "–" if none was sent or there are no prices.
func smsCost(ctx context.Context, f report.Figures) string {
	return parts.SMSCosts(ctx, f.Money.SMS)
}

// besideFor is how many times as long as the drop's own coupons lasted, or its own reminders were reserved, the earlier drops
// are drawn: at least a minute, or four hours; once the own coupons are gone, twice as long as they lasted. A drop that sold for hours would press a drop of seconds to the margin.
const besideFor = 4

// until returns the points until the instant, and at least the first two.
func until(points []reminder.Growth, end time.Time) []reminder.Growth {
	for i, g := range points {
		if i > 1 && g.At.After(end) {
			return points[:i]
		}
	}
	return points
}

// since returns the points from the instant on, with the last point before it and at least the last two.
func since(points []reminder.Growth, start time.Time) []reminder.Growth {
	for i := len(points) - 2; i > 0; i-- {
		if !points[i].At.After(start) {
			return points[i:]
		}
	}
	return points
}

// marksOf are the events in words.
func marksOf(ctx context.Context, events []reminder.TemplateStep) (list []ui.ChartMark) {
	for _, e := range events {
		list = append(list, ui.ChartMark{At: e.At, Text: ui.T(ctx, "chart.mark."+string(e.Kind))})
	}
	return list
}

// during are the marks within the time in which coupons were given.
func during(list []ui.ChartMark, c claim.Curve) (within []ui.ChartMark) {
	if len(c.Points) == 0 {
		return nil
	}
	from, to := c.Points[0].At, c.Points[len(c.Points)-1].At.Add(c.Width)
	for _, m := range list {
		if !m.At.Before(from) && !m.At.After(to) {
			within = append(within, m)
		}
	}
	return within
}

// charts show the earlier drops. A chosen drop stands instead of them.
func (p drawn) charts(ctx context.Context) (booked, sold ui.TimeChart) {
	earlier := p.Earlier
	if o := p.Other; o != nil && !slices.ContainsFunc(earlier, func(e report.Past) bool { return e.Template.ID == o.Template.ID }) {
		earlier = []report.Past{*o}
	}
	return ChartsOf(ctx, p.Template, p.Growth, p.Sales, p.Events, earlier)
}

func lifeOptions(ctx context.Context) (list []ui.Option) {
	for _, l := range report.Lives() {
		days := int64(l / (24 * time.Hour))
		list = append(list, ui.Option{Value: fmt.Sprint(days), Label: ui.N(ctx, "duration.days", days)})
	}
	return list
}

// linkState says whether a link still works.
func linkState(ctx context.Context, l report.Link) (ui.Tone, string) {
	switch {
	case l.RevokedAt != nil:
		return ui.Neutral, ui.T(ctx, "report.link.revoked")
	case !l.Valid(ui.From(ctx).Now):
		return ui.Neutral, ui.T(ctx, "report.link.expired")
	}
	return ui.Good, ui.T(ctx, "report.link.valid")
}

// Trend is what drops brought by period.
type Trend struct {
	report.Trend
	Period report.Period
	// From and To are the days as typed, and Errors are those of them that cannot be read.
	From, To string
	Errors   []fault.Field
	Shops    []template.Shop
	Shop     string // as chosen, "" = all
	Export   string // the address of the file of these drops
	// Sort is the figure that the table is sorted by; any other text sorts by the opening.
	Sort string
	// series is the figure of the chart. beside are the ids of two drops that stand side by side.
	series string
	beside []string
}

// A trendBar is one number with a bar. width is its length relative to the column's greatest
// number, in thousandths; "" = no bar. notes are the figures that belong to the number.
type trendBar struct {
	text  string
	notes []trendNote
	width string
}

// A trendNote is a figure below a number, with the key of its label, "" without one. figure is the
// figure's name, "" without one.
type trendNote struct{ label, text, figure string }

// barsOf is one column. Without value it has no bars. Notes without a figure are left out.
func barsOf(list []report.Figures, value func(report.Figures) int64, draw func(report.Figures) (string, []trendNote)) []trendBar {
	var most int64
	for _, f := range list {
		if value != nil {
			most = max(most, value(f))
		}
	}
	bars := make([]trendBar, len(list))
	for i, f := range list {
		text, notes := draw(f)
		bars[i] = trendBar{text: text, notes: slices.DeleteFunc(notes, func(n trendNote) bool { return n.text == "" || n.text == "–" })}
		if value != nil {
			bars[i].width = parts.Unit(1000 * float64(max(0, value(f))) / float64(max(1, most)))
		}
	}
	return bars
}

// A trendColumn is one figure of all drops.
type trendColumn struct {
	key, figure string
	bars        []trendBar
}

// minor reports whether a phone shows the column only on demand.
func (c trendColumn) minor() bool { return c.figure == "sent" || c.figure == "opened" }

// minor reports whether the table of results shows the note only on demand.
func (n trendNote) minor() bool {
	return n.label == "money.orders" || n.label == "trend.sms" || n.label == "report.p99"
}

// currencies returns the number of currencies of the drops.
func (p Trend) currencies() int {
	all := map[string]bool{}
	for _, f := range p.List {
		all[f.Template.Currency] = true
	}
	return len(all)
}

// columns are few, so that the table is no wider than a page: what belongs to a figure is a note
// below it.
func (p Trend) columns(ctx context.Context) []trendColumn {
	share := func(n, of int64) trendNote { return trendNote{"", outOf(ctx, n, of), ""} }
	amount := func(f report.Figures, a money.Amount) string {
		return ui.From(ctx).Locale.Sum(a, f.Template.Currency)
	}
	column := func(key, figure string, value func(report.Figures) int64, notes func(report.Figures) []trendNote) trendColumn {
		return trendColumn{key, figure, barsOf(p.List, value, func(f report.Figures) (string, []trendNote) {
			return ui.Num(ctx, value(f)), notes(f)
		})}
	}
	revenue := func(f report.Figures) int64 { return int64(f.Money.Revenue()) }
	if p.currencies() > 1 { // the lengths of bars would compare currencies
		revenue = nil
	}
	return []trendColumn{
		column("stat.sent", "sent", func(f report.Figures) int64 { return f.Progress.Sent }, func(f report.Figures) []trendNote {
			return []trendNote{share(f.Progress.Sent, f.Progress.Expected()), {"report.p99", quantileWithin(ctx, f.Late), ""}}
		}),
		column("journey.opened", "opened", func(f report.Figures) int64 { return f.Opened }, func(report.Figures) []trendNote { return nil }),
		column("claims.issued", "issued", func(f report.Figures) int64 { return f.Issued }, func(f report.Figures) []trendNote {
			return []trendNote{{"", givenNote(ctx, f), ""}, {"report.sold_out", soldOut(ctx, f), ""}}
		}),
		column("report.used", "used", func(f report.Figures) int64 { return f.Tally.Used }, func(f report.Figures) []trendNote {
			return []trendNote{share(f.Tally.Used, f.Given())}
		}),
		{"money.revenue", "revenue", barsOf(p.List, revenue, func(f report.Figures) (string, []trendNote) {
			return amount(f, f.Money.Revenue()), []trendNote{{"money.orders", ui.Num(ctx, f.Money.Orders()), "orders"}, {"money.discount", amount(f, f.Money.Discount()), ""}, {"trend.sms", smsCost(ctx, f), ""}}
		})},
	}
}
