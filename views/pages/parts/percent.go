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
