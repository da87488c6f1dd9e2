package drops

import (
	"context"
	"fmt"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/views/ui"
)

// URL is where the announcement of the kind is confirmed and sent.
func (p Announce) URL(kind delivery.Kind) string {
	return fmt.Sprintf("/templates/%d/announcements/%s", p.Template.ID, kind)
}

// running reports whether an announcement is still going out.
func (p Announce) running() bool {
	for _, a := range p.List {
		if a.State != reminder.AnnouncementFinished {
			return true
		}
	}
	return false
}

func announced(a reminder.AnnouncementStatus) delivery.Counts {
	var sum delivery.Counts
	for _, c := range a.Channels {
		sum = sum.Plus(c)
	}
	return sum
}

func announcementTone(a reminder.AnnouncementStatus) ui.Tone {
	switch {
	case a.StopReason != "":
		return ui.Warn
	case a.State != reminder.AnnouncementFinished:
		return ui.Info
	case announced(a).Dead+announced(a).Expired > 0:
		return ui.Warn
	}
	return ui.Good
}

// announcementState names the state of an announcement. A finished announcement with a stop reason is
// called stopped.
func announcementState(ctx context.Context, a reminder.AnnouncementStatus) string {
	if a.StopReason != "" && a.State == reminder.AnnouncementFinished {
		return ui.T(ctx, "announce.state.stopped")
	}
	return ui.T(ctx, "announce.state."+string(a.State))
}

// announcedText describes the outcome of an announcement so far.
func announcedText(ctx context.Context, a reminder.AnnouncementStatus) string {
	c := announced(a)
	if c.Reserved == 0 && a.State != reminder.AnnouncementFinished {
		return ui.T(ctx, "announce.preparing")
	}
	if c.Reserved == 0 {
		return ui.T(ctx, "announce.nobody")
	}
	return ui.T(ctx, "announce.progress", c.Sent, c.Reserved)
}
