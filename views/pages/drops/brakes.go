package drops

import (
	"context"

	"dropbell/views/ui"
)

// brakesNote says when the claims of the drop were reviewed.
func (p drawn) brakesNote(ctx context.Context) string {
	if p.Brakes.ReviewedAt == nil {
		return ui.T(ctx, "report.brakes.not_yet")
	}
	return ui.T(ctx, "report.brakes.at", ui.From(ctx).Locale.DateTime(*p.Brakes.ReviewedAt, p.zone()))
}
