package drops

import (
	"context"
	"slices"

	"dropbell/domain/forecast"
	"dropbell/views/ui"
)

// limitMisses reports whether mails would be missed because of a limit.
func limitMisses(limits []forecast.Limit) bool {
	return slices.ContainsFunc(limits, func(l forecast.Limit) bool { return l.Missed > 0 })
}

// limitText describes a limit in one line.
func limitText(ctx context.Context, l forecast.Limit) string {
	switch {
	case l.Name == forecast.WarmUpLimit && l.Missed > 0:
		return ui.N(ctx, "forecast.limit.plan_missed", l.Missed, l.Messages, l.Today, mostText(ctx, l.Tomorrow))
	case l.Name == forecast.WarmUpLimit:
		return ui.T(ctx, "forecast.limit.plan", l.Today, mostText(ctx, l.Tomorrow))
	case l.Missed > 0:
		return ui.N(ctx, "forecast.limit.missed", l.Missed, l.Name, l.Messages, duration(ctx, l.Takes), l.PerSecond, duration(ctx, l.Earlier))
	}
	return ui.N(ctx, "forecast.limit.in_time", l.Messages, l.Name, duration(ctx, l.Takes), l.PerSecond)
}

// mostText writes how many mails a day may have; -1 = any number.
func mostText(ctx context.Context, most int64) string {
	if most < 0 {
		return ui.T(ctx, "forecast.limit.any")
	}
	return ui.Num(ctx, most)
}

func inTime(l forecast.Limit) bool { return l.Missed == 0 }
