// Package live keeps Live Activities on iPhones up to date. Each drop has a broadcast channel at
// Apple, and one request reaches every phone that shows the drop, however many there are.
package live

import (
	"time"

	"dropbell/domain/template"
)

// Content is the content of an activity. The app's ActivityAttributes.ContentState has the same
// fields.
type Content struct {
	OpensAt int64 `json:"opens_at"` // seconds of the Unix epoch
	// State is the state of the drop: scheduled, open, sold_out, paused, closed or cancelled.
	State string `json:"state"`
	// Minutes is the time until the opening, rounded up to a reminder slot; 0 = more than an hour
	// is left, or the drop is not scheduled.
	Minutes int `json:"minutes"`
	// Left is the share of coupons that are not issued, in percent, in steps of five.
	Left int `json:"left"`
}

const (
	// gap is the least time between a broadcast and the next one that changes only the share of
	// coupons, so a drop has at most four a minute. Apple delivers frequent updates late.
	gap = 15 * time.Second
	// look is how often a scheduled or paused drop is checked. Events trigger a check earlier,
	// but Redis may lose events.
	look = time.Minute
	// KeepFor is how long after the end of a drop its channel is kept: phones that were off
	// receive the end from it.
	KeepFor = time.Hour
	// leftStep is the step of [Content.Left].
	leftStep = 5
)

// ContentAt returns the content of the drop's activities at now.
func ContentAt(t template.Template, now time.Time) Content {
	c := Content{OpensAt: t.OpensAt.Unix(), State: string(t.State(now))}
	if ahead := t.OpensAt.Sub(now); c.State == string(template.Scheduled) && ahead <= template.Slots*template.SlotStep {
		c.Minutes = int((ahead+template.SlotStep-1)/template.SlotStep) * int(template.SlotStep/time.Minute)
	}
	if t.Stock > 0 {
		// A share above nothing is not shown as nothing.
		c.Left = int((t.StockLeft()*100/t.Stock + leftStep - 1) / leftStep * leftStep)
		if c.Left == 0 && t.StockLeft() > 0 {
			c.Left = leftStep
		}
	}
	return c
}

// A Case is a drop with its channel, as a worker has leased it.
type Case struct {
	Template template.Template
	Now      time.Time // the database's
	Channel  string    // "" = none yet
	Told     *Content  // the last broadcast; nil = none
	ToldAt   time.Time
	Ended    bool
	Failures int
}

// A Step is the work due for a drop.
type Step int

// The steps.
const (
	Wait   Step = iota // nothing until Move.Next
	Create             // a channel
	Tell               // broadcast Move.Content
	Delete             // the channel, and the row
	Forget             // the row: there is no channel, and no need for one
)

// A Move is a decided step.
type Move struct {
	Step    Step
	Content Content
	// End ends the activities.
	End bool
	// Urgent is false of a change of the share alone.
	Urgent bool
	// Until is when the content is stale; the broadcast is worthless then.
	Until time.Time
	// Next is when the drop is looked at again after the step.
	Next time.Time
}

// over returns when the drop ended, and whether it has.
func (c Case) over() (time.Time, bool) {
	t := c.Template
	switch t.State(c.Now) {
	case template.Closed:
		return t.OverAt(), true
	case template.Cancelled:
		if t.EndedAt != nil {
			return *t.EndedAt, true
		}
		return t.UpdatedAt, true
	case template.Draft: // taken back
		return t.UpdatedAt, true
	}
	return t.EndsAt(), false
}

// Decide returns the move at the case's instant. The move broadcasts the present state only: if
// the worker is late, states that have passed meanwhile are left out.
func Decide(c Case) Move {
	end, over := c.over()
	now := ContentAt(c.Template, c.Now)
	m := Move{Content: now, End: over, Urgent: true, Until: end, Next: c.next(end)}
	switch {
	case over && c.Channel == "":
		m.Step = Forget
	case c.Channel == "":
		m.Step, m.Next = Create, c.Now
	case over && c.Ended:
		if !c.Now.Before(end.Add(KeepFor)) {
			m.Step = Delete
		}
	case over:
		m.Step, m.Until = Tell, c.Now.Add(KeepFor)
	case c.Told == nil || *c.Told != now:
		m.Step = Tell
		if now.State == string(template.Scheduled) {
			m.Until = c.Template.OpensAt
		}
		if m.Urgent = c.Told == nil || !c.Told.same(now); !m.Urgent && c.Now.Before(c.ToldAt.Add(gap)) {
			m.Step, m.Next = Wait, c.ToldAt.Add(gap)
		}
	}
	return m
}

// same reports whether the contents differ in the share alone.
func (c Content) same(other Content) bool {
	c.Left = other.Left
	return c == other
}

// next is when the state of the drop changes without an event, or its share may have.
func (c Case) next(end time.Time) time.Time {
	t := c.Template
	switch t.State(c.Now) {
	case template.Scheduled:
		soon := c.Now.Add(look)
		for k := template.Slot(template.Slots); k >= 1; k-- {
			if due := k.DueAt(t.OpensAt); due.After(c.Now) {
				return earlier(soon, due)
			}
		}
		return earlier(soon, t.OpensAt)
	case template.Open, template.SoldOut:
		return earlier(c.Now.Add(gap), end)
	case template.Paused:
		return earlier(c.Now.Add(look), end)
	}
	// The end may be undone, and Redis lose the event.
	return earlier(c.Now.Add(look), end.Add(KeepFor))
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
