package ui

import (
	"context"
	"strconv"
)

// maxBell is the greatest number on the bell.
const maxBell = 99

func bellCount(n int) string {
	if n > maxBell {
		return strconv.Itoa(maxBell) + "+"
	}
	return strconv.Itoa(n)
}

func bellLabel(ctx context.Context) string {
	if n := From(ctx).Alerts; n > 0 {
		return N(ctx, "alerts.bell", int64(n))
	}
	return T(ctx, "alerts.title")
}
