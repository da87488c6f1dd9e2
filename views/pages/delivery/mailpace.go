package delivery

import (
	"context"
	"strconv"

	"dropbell/domain/delivery"
	"dropbell/views/ui"
)

// planMost returns the greatest number of mails of a day, planned or sent.
func planMost(days []delivery.WarmUpDay) (most int64) {
	for _, d := range days {
		most = max(most, d.Most, d.Sent)
	}
	return most
}

// planBar is the height of a bar; a value above zero is visible.
func planBar(n, most int64) float64 {
	if n == 0 || most == 0 {
		return 0
	}
	return max(2, 96*float64(n)/float64(most))
}

// planText describes today's part of the plan in one line, "" after the plan has ended. Before the
// first day of the plan, the number of the first day applies.
func planText(ctx context.Context, days []delivery.WarmUpDay) string {
	for _, d := range days {
		if d.Today {
			return ui.T(ctx, "mailpace.plan_today", d.Sent, d.Most)
		}
	}
	return ""
}

// planBox is the drawing's size.
func planBox(days []delivery.WarmUpDay) string { return "0 0 " + strconv.Itoa(40*len(days)) + " 100" }
