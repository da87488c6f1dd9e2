package drops

import (
	"context"
	"time"

	"dropbell/domain/report"
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

// drawing is the revenue by bar.
func (c revenueChart) drawing(ctx context.Context) ui.BarChart {
	d := ui.Amounts(ctx, c.bars[0].Currency)
	d.ID, d.Label = "revenue-"+c.key, ui.T(ctx, "revenue."+c.key)
	for _, b := range c.bars {
		d.Bars = append(d.Bars, ui.ChartBar{Name: c.when(ctx, b.from), N: int64(b.Revenue())})
	}
	return d
}

// when writes the begin of a bar.
func (c revenueChart) when(ctx context.Context, at time.Time) string {
	if c.key == "days" {
		return ui.From(ctx).Locale.Day(at, c.zone)
	}
	l := ui.From(ctx).Locale
	return ui.T(ctx, "revenue.hour", l.Day(at, c.zone), l.Clock(at, c.zone))
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
