package parts

import (
	"context"

	"dropbell/domain/user"
	"dropbell/views/ui"
)

// Values of the filter that are no outcome of their own. HeldOutOutcome selects users who are
// skipped as held out; WaitingOutcome selects users whose message is sent after quiet hours, and
// UndecidedOutcome users who wait for the version that wins a test.
const (
	HeldOutOutcome   = "held_out"
	WaitingOutcome   = "waiting"
	UndecidedOutcome = "undecided"
)

// UserName is the name of a user, or the id of one without a name.
func UserName(ctx context.Context, u user.User) string {
	if u.Name != "" {
		return u.Name
	}
	return ui.T(ctx, "user.nameless", u.ID.String())
}

// ReasonText returns the reason's own name if it has no text: providers and later releases may have
// more reasons.
func ReasonText(ctx context.Context, reason string) string {
	if key := "reason." + reason; ui.From(ctx).Locale.Has(key) {
		return ui.T(ctx, key)
	}
	return reason
}
