package ui

import (
	"context"

	"dropbell/domain/delivery/feedback"
)

// ReportedText describes the providers' reports about sent messages; empty if there are no reports.
func ReportedText(ctx context.Context, t feedback.Tally, sent int64) string {
	if !t.Any() {
		return ""
	}
	return T(ctx, "feedback.tally", t.Delivered, t.Bounced, t.Complained, t.Unconfirmed(sent))
}

// ReportedTone is the colour of the report about one message.
func ReportedTone(s feedback.Status) Tone {
	switch s {
	case feedback.Delivered:
		return Good
	case feedback.SoftBounced:
		return Warn
	}
	return Bad
}

// A reportedFigure is a part of the sent messages.
type reportedFigure struct {
	key, class string
	n          int64
}

func reportedFigures(t feedback.Tally, sent int64) []reportedFigure {
	return []reportedFigure{{"delivered", "bar-delivered", t.Delivered}, {"unconfirmed", "bar-sent", t.Unconfirmed(sent)},
		{"bounced", "bar-bounced", t.Bounced}, {"complained", "", t.Complained}}
}
