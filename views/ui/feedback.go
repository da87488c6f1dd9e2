package ui

import (
	"context"

	"dropbell/domain/feedback"
)

// ReportedText says what providers reported of sent messages; empty if nothing.
func ReportedText(ctx context.Context, t feedback.Tally, sent int64) string {
	if !t.Any() {
		return ""
	}
	return T(ctx, "feedback.tally", t.Delivered, t.Bounced, t.Complained, t.Unconfirmed(sent))
}

// ReportedTone colours what was reported of one message.
func ReportedTone(s feedback.Status) Tone {
	switch s {
	case feedback.Delivered:
		return Good
	case feedback.SoftBounced:
		return Warn
	}
	return Bad
}

// A reportedFigure is a part of what was sent.
type reportedFigure struct {
	key, class string
	n          int64
}

func reportedFigures(t feedback.Tally, sent int64) []reportedFigure {
	return []reportedFigure{{"delivered", "bar-delivered", t.Delivered}, {"unconfirmed", "bar-sent", t.Unconfirmed(sent)},
		{"bounced", "bar-bounced", t.Bounced}, {"complained", "", t.Complained}}
}
