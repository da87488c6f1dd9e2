package drops

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// Cockpit is the page about a drop while it takes place.
type Cockpit struct {
	template.Template
	// At is the console's clock when all this was true.
	At       time.Time
	Snapshot reminder.Cockpit
	Channels [delivery.Channels]delivery.ChannelStatus
	Pulse    reminder.Pulse
	// Ahead are the forecasts of this drop's slots that are not done.
	Ahead []forecast.Prognosis
	// Sum identifies the state; the page requests the changes since.
	Sum string

	cells ui.Cells
}

// Shape identifies the structure of the page. A page cannot turn into a state with another shape by
// changing values.
func (p Cockpit) Shape() string {
	shape := fmt.Sprintf("%d slots, empty", len(p.Snapshot.Rows))
	for _, r := range p.rows(true) {
		shape += " " + ui.SlotKey(r.Slot)
	}
	for _, c := range p.shown() {
		shape += " " + c.String()
	}
	return shape
}

// shown are the channels that have a sender or something to send.
func (p Cockpit) shown() (list []delivery.Channel) {
	for _, c := range delivery.AllChannels() {
		used := p.Channels[c].Configured
		for _, r := range p.Snapshot.Rows {
			used = used || r.Lanes[c].Booked > 0 || r.Lanes[c].Reserved > 0
		}
		if used {
			list = append(list, c)
		}
	}
	return list
}

// opened reports whether coupons are claimed, or were.
func (p Cockpit) opened() bool { return !p.At.Before(p.OpensAt) }

// rows returns the finished and passed slots that reminded no user if empty is set, otherwise all
// other slots, those of the door that opens first before the others.
func (p Cockpit) rows(empty bool) (list []reminder.CockpitRow) {
	for _, r := range p.Snapshot.Rows {
		over := r.State == reminder.Finished || r.State == reminder.Passed
		if (over && r.Counts().Reserved == 0) == empty {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b reminder.CockpitRow) int { return a.OpensAt.Compare(b.OpensAt) })
	return list
}

func (p Cockpit) url() string { return fmt.Sprintf("/templates/%d?tab=live", p.ID) }

// drawn returns p with its cells.
func (p Cockpit) drawn(ctx context.Context) Cockpit {
	if p.cells == nil {
		p.cells = p.Cells(ctx)
	}
	return p
}

// next is the slot that fires next, nil if none is ahead.
func (p Cockpit) next() *reminder.CockpitRow {
	switch p.State(p.At) {
	case template.Draft, template.Closed, template.Cancelled:
		return nil
	}
	for i, r := range p.Snapshot.Rows { // soonest first
		if r.Upcoming(p.At) {
			return &p.Snapshot.Rows[i]
		}
	}
	return nil
}

// other returns the opening or the end of the drop, whichever the head of its page does not show,
// with its label.
func (p Cockpit) other() (at time.Time, key string) {
	if s := p.State(p.At); s != template.Cancelled && (s == template.Closed || p.opened()) {
		return p.OpensAt, "field.opens_at"
	}
	return p.OverAt(), "field.closes_at"
}

// failed is how many reminders wait to be tried again.
func (p Cockpit) failed() (n int64) {
	for _, r := range p.Snapshot.Rows {
		for _, l := range r.Lanes {
			n += l.Failed
		}
	}
	return n
}

// current sums the channel over the slots that are going out, or went last.
func (p Cockpit) current(c delivery.Channel) (sum reminder.Lane) {
	sum.Channel, sum.Late = c, delivery.Lateness{}
	for _, r := range p.Snapshot.Current() {
		l := r.Lanes[c]
		sum.Counts, sum.Failed, sum.Late = sum.Counts.Plus(l.Counts), sum.Failed+l.Failed, sum.Late.Plus(l.Late)
	}
	return sum
}

// waiting is how many are booked on the channel in slots that have not fired.
func (p Cockpit) waiting(c delivery.Channel) (n int64) {
	for _, r := range p.Snapshot.Rows {
		if r.State == reminder.Waiting {
			n += r.Lanes[c].Booked
		}
	}
	return n
}

// A concern is a problem that the page shows, the worst first.
type concern struct {
	tone ui.Tone
	text string
	url  string
}

// concerns are the present problems of the drop.
func (p Cockpit) concerns(ctx context.Context) (list []concern) {
	add := func(tone ui.Tone, url, text string) { list = append(list, concern{tone, text, url}) }
	sum, failed := p.Snapshot.Progress(), p.failed()
	var overdue []template.Slot
	for _, r := range p.Snapshot.Rows {
		if r.Overdue(p.At) {
			overdue = append(overdue, r.Slot.Slot)
		}
	}
	if len(overdue) > 0 {
		add(ui.Bad, "", overdueText(ctx, overdue))
	}
	for _, c := range delivery.AllChannels() {
		list = append(list, p.channelConcerns(ctx, c)...)
	}
	if n := p.Snapshot.DeadLetters; n > 0 {
		add(ui.Bad, fmt.Sprintf("/dead-letters?template=%d", p.ID), ui.N(ctx, "problem.dead", n))
	}
	if sum.Expired > 0 {
		add(ui.Bad, "", ui.N(ctx, "problem.expired", sum.Expired))
	}
	if sum.Difference() != 0 {
		add(ui.Bad, fmt.Sprintf("/templates/%d/balance", p.ID), ui.N(ctx, "problem.balance", sum.Difference()))
	}
	if failed > 0 {
		add(ui.Warn, "", ui.N(ctx, "cockpit.retries", failed))
	}
	if p.State(p.At) == template.Paused {
		add(ui.Warn, "", ui.T(ctx, "problem.paused"))
	}
	return list
}

func (p Cockpit) channelConcerns(ctx context.Context, c delivery.Channel) (list []concern) {
	s, lane, waiting := p.Channels[c], p.current(c), p.waiting(c)
	if lane.InFlight == 0 && waiting == 0 {
		return nil
	}
	name := ui.T(ctx, "channel."+c.String())
	switch {
	case !s.Configured:
		list = append(list, concern{ui.Bad, ui.T(ctx, "problem.no_sender", name, lane.InFlight+waiting), "/channels"})
	case s.Paused:
		list = append(list, concern{ui.Warn, ui.T(ctx, "cockpit.paused", name, lane.InFlight+waiting), "/channels"})
	case s.CircuitKnown && s.Circuit.State != delivery.CircuitClosed:
		list = append(list, concern{ui.Bad, ui.T(ctx, "cockpit.circuit_open", name), "/channels"})
	case s.Held():
		list = append(list, concern{ui.Warn, ui.T(ctx, "cockpit.held", name), "/channels"})
	}
	var missed int64
	for _, j := range p.Ahead {
		if j.Channel == c {
			missed += j.Missed
		}
	}
	if missed > 0 {
		list = append(list, concern{ui.Warn, ui.N(ctx, "cockpit.would_miss", missed, name), "/forecast"})
	}
	return list
}

// verdict describes the state of the drop in one sentence.
func (p Cockpit) verdict(ctx context.Context) concern {
	for _, tone := range []ui.Tone{ui.Bad, ui.Warn} {
		for _, c := range p.concerns(ctx) {
			if c.tone == tone {
				return c
			}
		}
	}
	l := ui.From(ctx).Locale
	var running delivery.Counts
	for _, r := range p.Snapshot.Current() {
		if r.Running() {
			running = running.Plus(r.Counts())
		}
	}
	sum := p.Snapshot.Progress()
	switch {
	case len(p.Snapshot.Rows) == 0:
		return concern{tone: ui.Neutral, text: l.T("template.draft_title")}
	case running.InFlight > 0:
		return concern{tone: ui.Info, text: l.T("cockpit.sending", running.Sent, running.Reserved, l.Percent(running.Sent, running.Reserved))}
	case sum.Waiting > 0:
		return concern{tone: ui.Good, text: l.N("cockpit.ready", sum.Waiting)}
	case sum.Reserved > 0:
		return concern{tone: ui.Good, text: l.T("cockpit.all_out", sum.Sent, sum.Reserved)}
	}
	return concern{tone: ui.Neutral, text: l.T("cockpit.nothing")}
}

// others are the concerns except the concern of the verdict.
func (p Cockpit) others(ctx context.Context) (list []concern) {
	verdict := p.verdict(ctx)
	for _, c := range p.concerns(ctx) {
		if c != verdict {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b concern) int { return ui.Severity(a.tone) - ui.Severity(b.tone) })
	return list
}

func (p Cockpit) count(ctx context.Context) string {
	if slot := p.next(); slot != nil {
		return ui.Countdown(ctx, slot.DueAt)
	}
	return ""
}

func (p Cockpit) causesOf(c delivery.Channel) (list []reminder.Cause) {
	for _, cause := range p.Snapshot.Causes {
		if cause.Channel == c && len(list) < shownCauses {
			list = append(list, cause)
		}
	}
	return list
}

// causeText returns the provider's words, or the reason why the message was not sent.
func causeText(ctx context.Context, c reminder.Cause) string {
	if c.Sample != "" {
		return ui.Said(ctx, c.Sample)
	}
	if c.Fingerprint != "" {
		return ui.Said(ctx, c.Fingerprint)
	}
	return ui.T(ctx, "reason."+c.Reason)
}
