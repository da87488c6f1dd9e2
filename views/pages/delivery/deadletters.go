package delivery

import (
	"context"
	"slices"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// FilterOf is how a stored filter would be typed.
func FilterOf(f delivery.DeadLetterFilter) parts.DeadFilter {
	typed := parts.DeadFilter{Fingerprint: f.Fingerprint}
	if f.Channel != nil {
		typed.Channel = f.Channel.String()
	}
	if f.TemplateID != 0 {
		typed.Template = parts.ID(f.TemplateID)
	}
	if f.CampaignID != 0 {
		typed.Campaign = parts.ID(f.CampaignID)
	}
	if f.UserID != 0 {
		typed.User = f.UserID.String()
	}
	return typed
}

func channelOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "letters.all_channels")}}
	for _, c := range delivery.AllChannels() {
		list = append(list, ui.Option{Value: c.String(), Label: ui.T(ctx, "channel."+c.String())})
	}
	return list
}

// bad returns the title and the text for a filter that cannot be read.
func (p DeadLetters) bad(ctx context.Context) (title, text string) {
	if slices.ContainsFunc(p.Errors, func(f fault.Field) bool { return f.Name != "channel" }) {
		return ui.T(ctx, "letters.bad_title"), ui.T(ctx, "letters.bad_text")
	}
	return ui.T(ctx, "letters.bad_channel_title"), ui.T(ctx, "letters.bad_channel_text")
}

// total counts the groups' letters; most is the largest group.
func (p DeadLetters) total() (sum, most int64) {
	for _, g := range p.Groups {
		sum, most = sum+g.Dead, max(most, g.Dead)
	}
	return sum, most
}

// jobRunning is the state of a job that is being worked on.
const jobRunning = "running"

// where returns the jobs that are running, or the jobs that are not.
func (p Jobs) where(running bool) (some Jobs) {
	for _, j := range p.List {
		if (j.State == jobRunning) == running {
			some.List = append(some.List, j)
		}
	}
	return some
}

// Running reports whether one of the jobs is being worked on.
func (p Jobs) Running() bool {
	for _, j := range p.List {
		if j.State == jobRunning {
			return true
		}
	}
	return false
}

func jobTone(j delivery.DeadLetterJob) ui.Tone {
	switch j.State {
	case jobRunning:
		return ui.Info
	case "finished":
		return ui.Good
	}
	return ui.Neutral
}

func jobPieces(j delivery.DeadLetterJob) []parts.Piece {
	done := "bar-inflight"
	if j.Action == delivery.Discard {
		done = "bar-skipped"
	}
	return []parts.Piece{{Class: "bar-sent", N: j.Sent}, {Class: done, N: j.Done}, {Class: "bar-expired", N: j.Late}}
}

// jobText describes the progress of a job.
func jobText(ctx context.Context, j delivery.DeadLetterJob) string {
	l := ui.From(ctx).Locale
	parts := []string{l.T("letters.job.done."+string(j.Action), j.Done)}
	if j.Late > 0 {
		parts = append(parts, l.T("letters.job.late", j.Late))
	}
	if j.Sent > 0 {
		parts = append(parts, l.T("letters.job.sent", j.Sent))
	}
	return ui.Labelled(ctx, l.T("letters.job.progress", worked(j), max(j.Total, worked(j))), strings.Join(parts, l.T("ui.list_join")))
}

func worked(j delivery.DeadLetterJob) int64 { return j.Done + j.Late + j.Sent }

// jobLeft returns the approximate remaining time of a job with a rate.
func jobLeft(ctx context.Context, j delivery.DeadLetterJob) string {
	if j.State != jobRunning || j.Rate == 0 || j.Total <= worked(j) {
		return ""
	}
	left := time.Duration(float64(j.Total-worked(j)) / float64(j.Rate) * float64(time.Second))
	return ui.T(ctx, "letters.job.left", ui.From(ctx).Locale.Duration(max(left, time.Second)))
}

func (p Replay) pieces() []parts.Piece {
	return []parts.Piece{{Class: "bar-inflight", N: p.Triage.InTime}, {Class: "bar-expired", N: p.Triage.TooLate}, {Class: "bar-sent", N: p.Triage.AlreadySent}}
}

// sentence is the whole result of the dry run.
func (p Replay) sentence(ctx context.Context) string {
	return ui.T(ctx, "replay.sentence", p.Triage.InTime, p.Triage.TooLate, p.Triage.AlreadySent)
}

// takes says how long sending all messages that are in time takes.
func (p Replay) takes(ctx context.Context) string {
	if p.PerSecond == 0 {
		return ui.T(ctx, "replay.as_fast")
	}
	return ui.T(ctx, "replay.takes", p.PerSecond, ui.From(ctx).Locale.Duration(max(p.Triage.Takes(p.PerSecond), time.Second)))
}

func (p Replay) rateError(ctx context.Context) string {
	return ui.ErrorOf(ctx, p.Errors, "rate_per_second")
}

// useless reports whether a replay would change nothing.
func (p Replay) useless() bool { return p.Triage.InTime == 0 && p.Triage.AlreadySent == 0 }

// submit returns the label of the button. If no recipient can be reached in time any more, the
// button still settles recipients that another attempt has reached.
func (p Replay) submit(ctx context.Context) string {
	if p.rateError(ctx) != "" {
		return ui.T(ctx, "replay.submit_any")
	}
	if p.Triage.InTime == 0 {
		return ui.T(ctx, "replay.settle")
	}
	return ui.N(ctx, "replay.submit", p.Triage.InTime)
}
