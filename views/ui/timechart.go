package ui

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"dropbell/domain/reminder"
)

// A Curve is one line of a [TimeChart].
type Curve struct {
	Name string
	// Origin is the instant that is 0 on the axis: the opening of the curve's drop.
	Origin time.Time
	Points []reminder.Growth // ascending
	// Of is the number that the chart draws as 100 % if it draws shares.
	Of int64
}

// A ChartMark is an event on a [TimeChart].
type ChartMark struct {
	At   time.Time
	Text string
}

// A Span is a part of a [TimeChart] that one button shows.
type Span struct {
	Label    string
	From, To time.Duration // relative to the opening
}

// A TimeChart draws how a number grew around an opening, next to the same number of earlier drops
// at the same distance from their openings. Without scripts it is a drawing; a table contains the
// numbers.
type TimeChart struct {
	ID string
	// Label describes the chart in words, Value names the number, None is the text in place of a
	// chart without points.
	Label, Value, None string
	Own                Curve
	Earlier            []Curve
	Marks              []ChartMark
	Spans              []Span
	Zone               *time.Location
	// Ahead says that the chart draws the earlier curves before its own curve has begun.
	Ahead bool
	// Shares says that each curve is drawn in percent of its own [Curve.Of].
	Shares bool
}

// A chartLine is a curve in the form that the script reads: seconds from the opening, and the
// number at each second.
type chartLine struct {
	Name   string       `json:"name"`
	Points [][2]float64 `json:"points"`
}

type markData struct {
	At   int64  `json:"at"`
	Text string `json:"text"`
}

// chartData is all data that the script draws. Origin is the opening in Unix milliseconds; texts
// are in the viewer's language.
type chartData struct {
	Lines  []chartLine       `json:"lines"`
	Marks  []markData        `json:"marks"`
	Origin int64             `json:"origin"`
	Zone   string            `json:"zone"`
	Unit   string            `json:"unit,omitempty"`
	Texts  map[string]string `json:"texts"`
}

func (c Curve) seconds(at time.Time) int64 {
	return int64(at.Sub(c.Origin).Round(time.Second) / time.Second)
}

// height is the number that the chart draws: n, or its share in percent with one decimal.
func (p TimeChart) height(c Curve, n int64) float64 {
	if !p.Shares || c.Of <= 0 {
		return float64(n)
	}
	return math.Round(1000*float64(n)/float64(c.Of)) / 10
}

func (p TimeChart) line(c Curve) chartLine {
	l := chartLine{Name: c.Name, Points: [][2]float64{}}
	for _, q := range c.Points {
		x, y := float64(c.seconds(q.At)), p.height(c, q.Booked)
		if n := len(l.Points); n > 0 && l.Points[n-1][0] == x {
			l.Points[n-1][1] = y
		} else {
			l.Points = append(l.Points, [2]float64{x, y})
		}
	}
	return l
}

// at returns the number that the curve had reached x seconds from its opening. known is false
// before the curve's first point.
func (c Curve) at(x int64) (n int64, known bool) {
	for _, p := range c.Points {
		if c.seconds(p.At) > x {
			break
		}
		n, known = p.Booked, true
	}
	return n, known
}

func (p TimeChart) empty() bool { return p.unbegun() && (!p.Ahead || len(p.Earlier) == 0) }

// unbegun reports whether the own curve has no line.
func (p TimeChart) unbegun() bool { return len(p.Own.Points) < 2 }

// marks are the marks within the chart, in order.
func (p TimeChart) marks() []ChartMark {
	list := slices.Clone(p.Marks)
	slices.SortStableFunc(list, func(a, b ChartMark) int { return a.At.Compare(b.At) })
	return list
}

func (p TimeChart) data(ctx context.Context) chartData {
	d := chartData{Marks: []markData{}, Origin: p.Own.Origin.UnixMilli(), Zone: p.Zone.String(), Texts: map[string]string{
		"days": T(ctx, "chart.days"), "hours": T(ctx, "chart.hours"), "minutes": T(ctx, "chart.minutes"), "seconds": T(ctx, "chart.seconds"),
		"opening": T(ctx, "chart.opening"), "time": T(ctx, "chart.time")}}
	for _, c := range append([]Curve{p.Own}, p.Earlier...) {
		d.Lines = append(d.Lines, p.line(c))
	}
	if p.Shares {
		d.Unit = "%"
	}
	for _, m := range p.marks() {
		d.Marks = append(d.Marks, markData{p.Own.seconds(m.At), m.Text})
	}
	return d
}

// json returns the data for an attribute: a script element would need the nonce of each viewer's
// page, and parts of pages are rendered once for all viewers.
func (p TimeChart) json(ctx context.Context) string {
	raw, _ := json.Marshal(p.data(ctx)) // strings and numbers
	return string(raw)
}

// all are the chart's curves, the own one last.
func (p TimeChart) all() []Curve { return append(slices.Clone(p.Earlier), p.Own) }

// first is the earliest second of all curves.
func (p TimeChart) first() int64 {
	first := int64(1 << 62)
	for _, c := range p.all() {
		for _, q := range c.Points {
			first = min(first, c.seconds(q.At))
		}
	}
	return first
}

// last is the latest second of all curves.
func (p TimeChart) last() int64 {
	last := int64(-1 << 62)
	for _, c := range p.all() {
		for _, q := range c.Points {
			last = max(last, c.seconds(q.At))
		}
	}
	return last
}

// top is the greatest height of all curves.
func (p TimeChart) top() float64 {
	top := 1.0
	for _, c := range p.all() {
		top = max(top, p.height(c, most(c.Points)))
	}
	return top
}

// topText writes the greatest height.
func (p TimeChart) topText(ctx context.Context) string {
	if p.Shares {
		return From(ctx).Locale.Percent(int64(10*p.top()), 1000)
	}
	return Num(ctx, int64(p.top()))
}

// offsetText says how long before or after the opening something is.
func offsetText(ctx context.Context, seconds int64) string {
	l, d := From(ctx).Locale, time.Duration(seconds)*time.Second
	switch {
	case d < 0:
		return l.T("chart.before", l.Duration(d))
	case d > 0:
		return l.T("chart.after", l.Duration(d))
	}
	return l.T("chart.opening")
}

// paths returns the chart's lines as SVG paths, the lines of earlier drops first and the drop's own
// line last, and the area below the own line.
func (p TimeChart) paths() (lines []string, area string) {
	first, top := p.first(), p.top()
	span := float64(max(1, p.last()-first))
	for _, c := range p.all() {
		var b strings.Builder
		end := 0.0
		area = ""
		for i, q := range c.Points {
			end = float64(c.seconds(q.At)-first) / span * chartWidth
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(i, 1)], end, chartHeight-p.height(c, q.Booked)/top*(chartHeight-8))
		}
		lines = append(lines, b.String())
		if begin := c.Points; len(begin) > 0 {
			area = fmt.Sprintf("%sL%.1f %.1fL%.1f %.1fZ", b.String(), end, chartHeight, float64(c.seconds(begin[0].At)-first)/span*chartWidth, chartHeight)
		}
	}
	return lines, area
}

// A chartRow is one line of the table: the drop's own number, and the numbers of earlier drops at
// the same time from their openings, "" for a missing number.
type chartRow struct {
	at      time.Time
	own     int64
	earlier []string
}

// chartRows is how many lines the table has at most.
const chartRows = 24

func (p TimeChart) rows(ctx context.Context) (rows []chartRow) {
	for _, q := range sampled(p.Own.Points, chartRows) {
		row := chartRow{at: q.At, own: q.Booked}
		for _, c := range p.Earlier {
			text := "–"
			if n, known := c.at(p.Own.seconds(q.At)); known {
				text = Num(ctx, n)
			}
			row.earlier = append(row.earlier, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// spans returns the buttons that show a part of the time instead of the whole.
func (p TimeChart) spans() []Span {
	if p.unbegun() {
		return nil
	}
	line := p.line(p.Own).Points
	return slices.DeleteFunc(slices.Clone(p.Spans), func(s Span) bool {
		first, last := int64(line[0][0]), int64(line[len(line)-1][0])
		return cmp.Compare(int64(s.From/time.Second), first) <= 0 && cmp.Compare(int64(s.To/time.Second), last) >= 0
	})
}

func (s Span) bounds() string {
	return fmt.Sprintf("%d %d", int64(s.From/time.Second), int64(s.To/time.Second))
}

// chartInk names the colour of the earlier curve with the number.
func chartInk(i int) string { return []string{"first", "second", "third"}[min(i, 2)] }
