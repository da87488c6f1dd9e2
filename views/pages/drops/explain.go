package drops

import (
	"context"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/figure"
	"dropbell/domain/reminder"
	"dropbell/views/ui"
)

func (p Explain) zone() *time.Location { return p.Template.Zone() }

// A chapter is one day of the timeline.
type chapter struct {
	day   string
	steps []entry
}

// An entry is one line of the timeline, or the present moment.
type entry struct {
	reminder.Step
	now bool
}

// chapters divides the steps by days, and marks the present between past and future steps.
func (p Explain) chapters(ctx context.Context) []chapter {
	l, now := ui.From(ctx).Locale, ui.From(ctx).Now
	var list []chapter
	add := func(e entry) {
		day := l.Date(e.At, p.zone())
		if len(list) == 0 || list[len(list)-1].day != day {
			list = append(list, chapter{day: day})
		}
		last := &list[len(list)-1]
		last.steps = append(last.steps, e)
	}
	shown := false
	for _, s := range p.Timeline.Steps {
		if !shown && s.At.After(now) {
			add(entry{Step: reminder.Step{At: now}, now: true})
			shown = true
		}
		add(entry{Step: s})
	}
	return list
}

// millis writes the time of day to the millisecond.
func millis(t time.Time, zone *time.Location) string { return t.In(zone).Format("15:04:05.000") }

// lateness writes how long after the planned instant a step happened, or that it was meant to wait.
func lateness(ctx context.Context, s reminder.Step) string {
	d := figure.Late(*s.Planned, s.At)
	switch {
	case s.Outcome == delivery.Sent && s.Reason == delivery.ReasonQuietHours:
		return ui.T(ctx, "explain.after_quiet_hours")
	case d == 0:
		return ui.T(ctx, "explain.on_time")
	case d < 10*time.Second:
		return ui.T(ctx, "explain.ms_late", d.Milliseconds())
	}
	return ui.T(ctx, "explain.late", ui.From(ctx).Locale.Duration(d))
}

// about names the reminder or announcement of a step.
func about(ctx context.Context, s reminder.Step) string {
	if s.Reminder == nil && s.Message == delivery.KindNotice {
		return ui.T(ctx, "explain.about.notices")
	}
	if s.Reminder == nil {
		return ""
	}
	channel := ui.T(ctx, "channel."+s.Reminder.Channel.String())
	if s.Message != delivery.KindReminder && s.Message != "" {
		return ui.T(ctx, "explain.about."+string(s.Message), channel)
	}
	return ui.T(ctx, "explain.about.reminder", s.Reminder.Slot.Minutes(), channel)
}

func (p Explain) title(ctx context.Context, s reminder.Step) string {
	switch s.Kind {
	case reminder.StepOutcome:
		return ui.T(ctx, "explain.outcome."+string(s.Outcome), about(ctx, s))
	case reminder.StepTried:
		return ui.N(ctx, "explain.tried", int64(s.Attempts), about(ctx, s))
	case reminder.StepExpected:
		if s.Reminder == nil {
			return ui.T(ctx, "explain.expected_notice", ui.From(ctx).Locale.DateTime(s.At, p.zone()))
		}
		return ui.T(ctx, "explain.expected", ui.From(ctx).Locale.Clock(s.At, p.zone()), ui.T(ctx, "channel."+s.Reminder.Channel.String()))
	case reminder.StepClaimed:
		if s.Reason != "" && s.Reason != string(claim.ByTap) {
			return ui.T(ctx, "explain.claimed."+s.Reason)
		}
	case reminder.StepEntered:
		if s.Reason != "" {
			return ui.T(ctx, "explain.entered_door", s.Reason, s.Detail)
		}
	case reminder.StepDrawOffered:
		return ui.T(ctx, "explain.draw_offered", ui.From(ctx).Locale.DateTime(*s.Planned, p.zone()))
	case reminder.StepWaiting:
		if s.Reason != "" {
			return ui.T(ctx, "explain.waiting."+s.Reason)
		}
	case reminder.StepDrawn:
		return ui.T(ctx, "explain.drawn."+s.Reason)
	case reminder.StepDoor:
		return ui.T(ctx, "explain.door", s.Reason)
	case reminder.StepHousehold:
		return ui.T(ctx, "explain.household", s.Reason)
	case reminder.StepFired, reminder.StepAnnounced:
		return ui.T(ctx, "explain."+string(s.Kind), about(ctx, s))
	case reminder.StepCouponLocked, reminder.StepCouponUsed, reminder.StepCouponReleased, reminder.StepCouponTimedOut,
		reminder.StepCouponRefunded, reminder.StepCouponExpired, reminder.StepCouponRevoked,
		reminder.StepCouponSuspended, reminder.StepCouponAppealed, reminder.StepCouponRestored:
		return ui.T(ctx, "explain."+string(s.Kind), strconv.FormatInt(s.CouponID, 10))
	}
	return ui.T(ctx, "explain."+string(s.Kind))
}

func stepTone(s reminder.Step) ui.Tone {
	switch s.Kind {
	case reminder.StepOutcome:
		return ui.OutcomeTone(string(s.Outcome))
	case reminder.StepClaimed, reminder.StepCouponUsed, reminder.StepCouponRestored:
		return ui.Good
	case reminder.StepCouponTimedOut, reminder.StepCouponRefunded, reminder.StepCouponExpired, reminder.StepCouponRevoked,
		reminder.StepCouponSuspended, reminder.StepCouponAppealed:
		return ui.Warn
	case reminder.StepTried, reminder.StepMoved, reminder.StepPaused, reminder.StepCancelled, reminder.StepSkipped, reminder.StepLapsed, reminder.StepDrawRefused:
		return ui.Warn
	case reminder.StepExpected, reminder.StepFired, reminder.StepAnnounced:
		return ui.Info
	}
	return ui.Neutral
}

func stepIcon(s reminder.Step) string {
	switch s.Kind {
	case reminder.StepReserved:
		return "bell-ringing"
	case reminder.StepClaimed:
		return "tag"
	case reminder.StepEntered, reminder.StepDrawn, reminder.StepDrawAccepted:
		return "tag"
	case reminder.StepDrawOffered, reminder.StepDrawLapsed:
		return "clock"
	case reminder.StepDoor, reminder.StepHousehold:
		return "users"
	case reminder.StepStruck, reminder.StepNoDoor, reminder.StepDrawRefused:
		return "ban"
	case reminder.StepCouponLocked:
		return "lock"
	case reminder.StepCouponUsed:
		return "check"
	case reminder.StepCouponReleased, reminder.StepCouponTimedOut, reminder.StepCouponRefunded:
		return "refresh"
	case reminder.StepCouponExpired:
		return "clock"
	case reminder.StepCouponRevoked:
		return "ban"
	case reminder.StepCouponSuspended:
		return "player-pause"
	case reminder.StepCouponAppealed:
		return "message"
	case reminder.StepCouponRestored:
		return "check"
	case reminder.StepChanged:
		return "pencil"
	case reminder.StepPublished:
		return "rocket"
	case reminder.StepMoved:
		return "calendar-time"
	case reminder.StepPaused:
		return "player-pause"
	case reminder.StepResumed:
		return "player-play"
	case reminder.StepClosed:
		return "flag"
	case reminder.StepCancelled, reminder.StepWithdrawn, reminder.StepLeftWaitlist, reminder.StepSkipped:
		return "ban"
	case reminder.StepFired:
		return "bell-ringing"
	case reminder.StepTried:
		return "refresh"
	case reminder.StepAnnounced:
		return "send"
	case reminder.StepExpected, reminder.StepWaiting:
		return "clock"
	}
	return outcomeIcon(s.Outcome)
}

func outcomeIcon(o delivery.Outcome) string {
	switch ui.OutcomeTone(string(o)) {
	case ui.Good:
		return "check"
	case ui.Bad:
		return "alert-circle"
	}
	return "minus"
}

// ofDraw reports whether the step is about the user's entry in a draw.
func ofDraw(s reminder.Step) bool {
	return s.Kind == reminder.StepStruck || s.Kind == reminder.StepDrawn
}

// nothing says that there are no reminders: not any more, or never. Of an entry in a draw it says how far it came.
func (p Explain) nothing(ctx context.Context) string {
	for _, s := range slices.Backward(p.Timeline.Steps) {
		switch s.Kind {
		case reminder.StepEntered, reminder.StepDrawn, reminder.StepStruck, reminder.StepDrawOffered, reminder.StepDrawAccepted, reminder.StepDrawLapsed:
			return p.title(ctx, s)
		}
	}
	for _, s := range p.Timeline.Steps {
		switch {
		case s.Kind == reminder.StepReserved, s.Kind == reminder.StepWithdrawn, s.Message == delivery.KindReminder:
			return ui.T(ctx, "explain.nothing_reserved")
		}
	}
	return ui.T(ctx, "explain.never_reserved")
}

// verdict sums the timeline up in words.
func (p Explain) verdict(ctx context.Context) []string {
	counted := map[string]int64{}
	order := []string{"sent", "dead", "expired", "skipped", "in_flight", "waiting"}
	for _, it := range p.Timeline.Items {
		switch state := it.State; delivery.Outcome(state) {
		case delivery.Recovered:
			counted["sent"]++
		case delivery.Discarded:
			counted["dead"]++
		case delivery.Failed, delivery.InFlight, "due":
			counted["in_flight"]++
		default:
			counted[state]++
		}
	}
	var list []string
	for _, k := range order {
		if n := counted[k]; n > 0 {
			list = append(list, ui.N(ctx, "explain.count."+k, n))
		}
	}
	return list
}

// ahead are the reminders that are still to come, in order.
func (p Explain) ahead() []reminder.Step {
	var list []reminder.Step
	for _, s := range p.Timeline.Steps {
		if s.Kind == reminder.StepExpected {
			list = append(list, s)
		}
	}
	return list
}
