package parts

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/delivery"
	"dropbell/views/ui"
)

// ChannelState is how a channel is doing: the tone and the key of the words.
func ChannelState(s delivery.ChannelStatus) (ui.Tone, string) {
	switch {
	case !s.Configured:
		return ui.Neutral, "channel.not_configured"
	case s.Paused:
		return ui.Warn, "channel.paused"
	case s.CircuitKnown && s.Circuit.State == delivery.CircuitOpen:
		return ui.Bad, "circuit.open"
	case s.CircuitKnown && s.Circuit.State == delivery.CircuitHalfOpen:
		return ui.Warn, "circuit.half-open"
	case s.Held():
		return ui.Warn, "circuit.held"
	case s.Unanswered():
		return ui.Warn, "circuit.unanswered"
	}
	return ui.Good, "channel.ready"
}

// ChannelHalted says that messages wait for the channel, and why; "" while messages do not wait.
func ChannelHalted(ctx context.Context, s delivery.ChannelStatus, now time.Time, zone *time.Location) string {
	if s.Configured && !s.Paused && !s.Open() && !s.Held() {
		return ""
	}
	_, state := ChannelState(s)
	text := ui.T(ctx, "channel.halted", ui.T(ctx, "channel."+s.Channel.String()), ui.T(ctx, state))
	if why := ChannelNote(ctx, s, now, zone); why != "" {
		text = ui.T(ctx, "ui.sentences", text, why)
	}
	return text
}

// ChannelNote says why a channel sends no messages; "" if it sends.
func ChannelNote(ctx context.Context, s delivery.ChannelStatus, now time.Time, zone *time.Location) string {
	l := ui.From(ctx).Locale
	switch {
	case s.Paused && s.PausedBy != "":
		return l.T("channels.paused_by", s.PausedReason, s.PausedBy, l.DateTime(s.PausedAt, zone))
	case s.Paused:
		return s.PausedReason
	case s.CircuitKnown && s.Circuit.State != delivery.CircuitClosed && s.Circuit.Detail != "":
		return l.T("circuit.detail", s.Circuit.Failures, l.Said(s.Circuit.Detail))
	case s.CircuitKnown && s.Circuit.State != delivery.CircuitClosed:
		return l.T("circuit.why", s.Circuit.Failures)
	case s.Held():
		return l.T("circuit.held.until", l.DateTime(s.Circuit.HeldUntil, zone))
	}
	return ""
}

// Brief writes a short duration with the precision that matters.
func Brief(ctx context.Context, d time.Duration) string {
	l := ui.From(ctx).Locale
	switch {
	case d < time.Second:
		return l.T("duration.millis", d.Milliseconds())
	case d < 10*time.Second:
		return l.T("duration.fine_seconds", fmt.Sprintf("%.1f", d.Seconds()))
	}
	return l.Duration(d)
}

// Rate writes messages per second.
func Rate(ctx context.Context, perSecond float64) string {
	l := ui.From(ctx).Locale
	if perSecond > 0 && perSecond < 10 {
		return l.T("cockpit.per_second", fmt.Sprintf("%.1f", perSecond))
	}
	return l.T("cockpit.per_second", l.Number(int64(perSecond+0.5)))
}

// ChannelLabel is the name of a channel, with a note if it has no sender.
func ChannelLabel(ctx context.Context, ch delivery.Channel, configured delivery.ChannelSet) string {
	label := ui.T(ctx, "channel."+ch.String())
	if !configured.Has(ch) {
		label = ui.T(ctx, "campaign.channel_off", label)
	}
	return label
}
