package drops

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/forecast"
	"dropbell/views/ui"
)

// A forecastHour counts the messages due in one hour, on all channels.
type forecastHour struct {
	from             time.Time
	messages, missed int64
}

// hourly adds up the messages due in each hour, from the hour of now on, for a day. The day begins
// and ends within an hour, so there are 25 hours.
func hourly(f []forecast.ChannelForecast, now time.Time) []forecastHour {
	first := now.Truncate(time.Hour)
	hours := make([]forecastHour, 25)
	for i := range hours {
		hours[i].from = first.Add(time.Duration(i) * time.Hour)
	}
	for _, c := range f {
		for _, j := range c.Jobs {
			// An overdue job counts as due now.
			h := &hours[min(len(hours)-1, max(0, int(j.DueAt.Sub(first)/time.Hour)))]
			h.messages, h.missed = h.messages+j.Messages, h.missed+j.Missed
		}
	}
	return hours
}

// busiest returns the greatest number of messages due in one hour.
func busiest(hours []forecastHour) (most int64) {
	for _, h := range hours {
		most = max(most, h.messages)
	}
	return most
}

// misses reports whether messages would miss their opening.
func misses(hours []forecastHour) bool {
	return slices.ContainsFunc(hours, func(h forecastHour) bool { return h.missed > 0 })
}

// bars returns the heights of a column of the chart: the messages sent in time, and above them the
// messages that would miss the opening. A value above zero is always visible.
func (h forecastHour) bars(most int64) (inTime, late float64) {
	height := func(n int64) float64 {
		if n == 0 || most == 0 {
			return 0
		}
		return max(2, 96*float64(n)/float64(most))
	}
	return height(h.messages - h.missed), height(h.missed)
}

// hoursText describes the chart in words.
func hoursText(ctx context.Context, hours []forecastHour) string {
	peak := hours[0]
	for _, h := range hours {
		if h.messages > peak.messages {
			peak = h
		}
	}
	l := ui.From(ctx).Locale
	return l.T("forecast.hours_label", ui.Num(ctx, peak.messages), l.Clock(peak.from, ui.From(ctx).DayZone()))
}
