package parts

import (
	"context"
	"strings"

	"dropbell/views/ui"
)

// PercentText writes n percent.
func PercentText(ctx context.Context, n int) string {
	return ui.From(ctx).Locale.Percent(int64(n), 100)
}

// PercentTyped shows a typed percentage with one percent sign.
func PercentTyped(typed string) string {
	if typed == "" {
		return ""
	}
	return strings.TrimSuffix(typed, "%") + " %"
}

// Before is the average order before discounts, with a further note.
func Before(ctx context.Context, basket, note string) string {
	return ui.T(ctx, "money.before", basket) + " · " + note
}

// Change says by how much now differs from the time before.
func Change(ctx context.Context, now, before int64) string {
	switch {
	case before <= 0:
		return ui.T(ctx, "money.change_new")
	case now > 2*before:
		return ui.T(ctx, "money.change_times", ui.Ratio(ctx, float64(now)/float64(before)))
	case now > before:
		return ui.T(ctx, "money.change_more", ui.From(ctx).Locale.Percent(now-before, before))
	case now < before:
		return ui.T(ctx, "money.change_less", ui.From(ctx).Locale.Percent(before-now, before))
	}
	return ui.T(ctx, "money.change_same")
}
