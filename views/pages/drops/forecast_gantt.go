package drops

import (
	"context"
	"time"

	"dropbell/domain/forecast"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// An axis maps the time of one drop to thousandths.
type axis struct{ from, to time.Time }

// overhang bounds the part of the axis after the opening.
const overhang = 0.2

func (d forecastDrop) axis() axis {
	a := axis{d.jobs[0].DueAt, d.deadline}
	var over time.Duration
	for _, j := range d.jobs {
		if j.DueAt.Before(a.from) {
			a.from = j.DueAt
		}
		over = max(over, overrun(j))
	}
	if over > 0 {
		a.to = a.to.Add(max(min(over, time.Duration(float64(a.to.Sub(a.from))*overhang)), time.Second))
	}
	return a
}

func (a axis) x(t time.Time) float64 {
	length := a.to.Sub(a.from)
	if length <= 0 {
		return 0
	}
	return min(1000, max(0, 1000*float64(t.Sub(a.from))/float64(length)))
}

// gantt are the parts of one job: waiting, being sent, and too late.
func (a axis) gantt(p forecast.Prognosis) []parts.Span {
	var list []parts.Span
	add := func(class string, from, to time.Time, least float64) {
		x, end := a.x(from), a.x(to)
		if width := max(end-x, least); width > 0 {
			x = min(x, 1000-width)
			list = append(list, parts.Span{Class: class, X: parts.Unit(x), Width: parts.Unit(width)})
		}
	}
	add("gantt-wait", p.DueAt, p.StartAt, 0)
	if p.Missed < p.Messages {
		add("gantt-run", p.StartAt, p.FinishAt, parts.Least)
	}
	if p.Missed > 0 {
		add("gantt-late", p.Deadline, p.Deadline.Add(overrun(p)), parts.Least)
	}
	return list
}

func ganttText(ctx context.Context, p forecast.Prognosis) string {
	if p.Missed > 0 {
		return ui.T(ctx, "forecast.line_missed", clockSpan(ctx, p), p.Missed)
	}
	return ui.T(ctx, "forecast.line", clockSpan(ctx, p), ui.From(ctx).Locale.Duration(spare(p)))
}
