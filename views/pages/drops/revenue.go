package drops

import (
	"context"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// The most bars of a revenue chart: two days of hours, and a quarter of days.
const (
	mostHours = 48
	mostDays  = 92
)

// A revenueBar is the orders of one hour or day.
type revenueBar struct {
	from time.Time
	report.Sums
}

// A revenueChart draws the revenue of a drop over time as bars, from the first order on. Refunds are
// in the hour of the refund, so the revenue of an hour may be below 0.
type revenueChart struct {
	key  string // "hours" or "days"
	bars []revenueBar
	// left is the number of further hours or days that have no place in the chart.
	left int
	zone *time.Location
	// step returns the begin of the hour or day after from.
	step func(from time.Time) time.Time
}

// revenueCharts returns the revenue by hour and, if the orders are of several days, by day of the
// shop's zone.
func revenueCharts(hours []report.Hour, zone *time.Location) (list []revenueChart) {
	if len(hours) == 0 {
		return nil
	}
	byHour := revenueChart{key: "hours", zone: zone, step: func(from time.Time) time.Time { return from.Add(time.Hour) }}
	byHour.fill(hours, mostHours, func(at time.Time) time.Time { return at.In(zone) })
	byDay := revenueChart{key: "days", zone: zone, step: func(from time.Time) time.Time { return from.AddDate(0, 0, 1) }}
	byDay.fill(hours, mostDays, func(at time.Time) time.Time {
		y, m, d := at.In(zone).Date()
		return time.Date(y, m, d, 0, 0, 0, 0, zone)
	})
	if len(byDay.bars) > 1 {
		list = append(list, byDay)
	}
	return append(list, byHour)
}

// fill makes the bars, also for times without orders. begin returns the begin of the bar that has the
// hour.
func (c *revenueChart) fill(hours []report.Hour, most int, begin func(time.Time) time.Time) {
	next := begin(hours[0].From)
	for _, h := range hours {
		for at := begin(h.From); !next.After(at); next = c.step(next) {
			if len(c.bars) == most {
				c.left++
				continue
			}
			c.bars = append(c.bars, revenueBar{next, report.Sums{Currency: h.Currency}})
		}
		if c.left == 0 {
			last := &c.bars[len(c.bars)-1]
			last.Sums = last.Plus(h.Sums)
		}
	}
}

// bounds returns the highest revenue, at least 0, and the lowest, at most 0.
func (c revenueChart) bounds() (top, bottom money.Amount) {
	for _, b := range c.bars {
		top, bottom = max(top, b.Revenue()), min(bottom, b.Revenue())
	}
	return top, bottom
}

// A drawnBar is the rectangle of a bar in a drawing of 600 by 160.
type drawnBar struct {
	x, y, width, height, text string
	loss                      bool
}

func (c revenueChart) drawing(ctx context.Context) (list []drawnBar) {
	top, bottom := c.bounds()
	scale := (resultsHeight - 8) / max(1, float64(top-bottom))
	zero := 8 + float64(top)*scale
	step := float64(resultsWidth) / float64(max(1, len(c.bars)))
	width := min(step*0.8, 60)
	for i, b := range c.bars {
		height := float64(b.Revenue()) * scale
		d := drawnBar{x: parts.Unit(float64(i)*step + (step-width)/2), y: parts.Unit(zero - max(0, height)), width: parts.Unit(width), height: parts.Unit(max(height, -height)), loss: height < 0,
			text: c.when(ctx, b.from) + ": " + ui.From(ctx).Locale.Money(b.Revenue(), b.Currency)}
		list = append(list, d)
	}
	return list
}

// when writes the begin of a bar.
func (c revenueChart) when(ctx context.Context, at time.Time) string {
	if c.key == "days" {
		return ui.From(ctx).Locale.Day(at, c.zone)
	}
	return ui.From(ctx).Locale.DateTime(at, c.zone)
}

// named reports whether every bar has its label below it: days that are few.
func (c revenueChart) named() bool { return c.key == "days" && len(c.bars) <= 10 }

// loses reports whether more was refunded than paid in any of the bars.
func (c revenueChart) loses() bool {
	_, bottom := c.bounds()
	return bottom < 0
}

func (c revenueChart) last() revenueBar { return c.bars[len(c.bars)-1] }

// amounts are the amounts of the table.
func (c revenueChart) amounts() (list []money.Amount) {
	for _, b := range c.bars {
		list = append(list, b.Revenue(), b.Refunded())
	}
	return list
}

// withOrders returns the bars that have payments or refunds.
func (c revenueChart) withOrders() (list []revenueBar) {
	for _, b := range c.bars {
		if b.Paid+b.Refunds > 0 {
			list = append(list, b)
		}
	}
	return list
}
