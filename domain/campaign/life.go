package campaign

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
)

// A Transition is one step in a campaign's life that staff can take.
type Transition string

// The transitions.
const (
	Publishing Transition = "publish"
	Pausing    Transition = "pause"
	Resuming   Transition = "resume"
	Cancelling Transition = "cancel"
)

// Transitions returns every transition.
func Transitions() []Transition { return []Transition{Publishing, Pausing, Resuming, Cancelling} }

// from lists the states that each transition may start from.
func (t Transition) from() []State {
	switch t {
	case Publishing:
		return []State{Draft}
	case Pausing:
		return []State{Running}
	case Resuming:
		return []State{Paused}
	case Cancelling:
		return []State{Draft, Scheduled, Running, Paused}
	}
	return nil
}

// Allowed reports whether staff may take the step from state s.
func (t Transition) Allowed(s State) bool { return slices.Contains(t.from(), s) }

// oneOf names the states: "draft, scheduled or paused".
func oneOf(states []State) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = string(s)
	}
	last := max(0, len(names)-2)
	return strings.Join(append(names[:last:last], strings.Join(names[last:], " or ")), ", ")
}

// Allows returns why staff cannot take the step now, an [ErrTransition], or nil.
func (c Campaign) Allows(t Transition) error {
	if t.Allowed(c.State) {
		return nil
	}
	return ErrTransition.Because("the campaign is %s; to %s it must be %s", c.State, t, oneOf(t.from())).Told("fault.campaign_is." + string(c.State))
}

// step returns c one step on at now, or [ErrTransition].
func (c Campaign) step(t Transition, now time.Time) (Campaign, error) {
	if err := c.Allows(t); err != nil {
		return c, err
	}
	switch t {
	case Publishing:
		c.State, c.PublishedAt = Scheduled, &now
		c.ApprovalAskedAt, c.ApprovedBy = nil, "" // the member who asked has not approved
	case Pausing:
		c.State = Paused
	case Resuming:
		c.State = Running
	case Cancelling:
		c.State, c.EndedAt, c.Reason = Cancelled, &now, delivery.ReasonCampaignCancel
		if c.HeldAt != nil || c.ApprovalAskedAt != nil { // no longer waits for approval
			c = c.Released()
		}
	}
	return c, nil
}

// Edit returns c with the new spec. All fields of a draft may change. After publication only the
// rate may change, until the campaign is over.
func (c Campaign) Edit(s Spec) (Campaign, error) {
	if err := s.Check(); err != nil {
		return c, err
	}
	if c.State == Draft {
		c.Spec = s
		c.ApprovalAskedAt, c.ApprovedBy = nil, "" // the campaign is no longer as it was when approval was asked
		return c, nil
	}
	if c.State.Over() {
		return c, ErrTransition.Because("the campaign is %s; nothing of it can change", c.State).Told("fault.campaign_is." + string(c.State))
	}
	if err := c.sameBut(s); err != nil {
		return c, err
	}
	c.RatePerSecond = s.RatePerSecond
	return c, nil
}

// sameBut returns a [fault.Fields] that names every field of s, except the rate, that differs
// from c.
func (c Campaign) sameBut(s Spec) error {
	e := &fault.Fields{}
	fixed := func(name string, same bool) {
		if !same {
			e.Add(name, "rule.fixed_campaign", "cannot change once the campaign is published")
		}
	}
	fixed("shop_number", s.Shop == c.Shop)
	fixed("name", strings.TrimSpace(s.Name) == strings.TrimSpace(c.Name))
	fixed("title", s.Content.Equal(c.Content))
	fixed("channel", s.Channel == c.Channel)
	fixed("audience", s.Audience.Kind == c.Audience.Kind && s.Audience.ID == c.Audience.ID && slices.Equal(s.Audience.Users, c.Audience.Users))
	fixed("grant_template_id", s.GrantTemplate == c.GrantTemplate)
	fixed("starts_at", s.StartsAt.Equal(c.StartsAt))
	fixed("ends_at", s.EndsAt.Equal(c.EndsAt))
	return e.Err()
}

// Fingerprint is equal for campaigns with equal name, creator, start and end.
func (c Campaign) Fingerprint() [sha256.Size]byte {
	stamp := func(t time.Time) string { return strconv.FormatInt(t.UnixMicro(), 10) }
	// Lengths keep a name from continuing into the creator.
	return sha256.Sum256([]byte(strconv.Itoa(len(c.Name)) + ":" + c.Name + strconv.Itoa(len(c.Creator)) + ":" + c.Creator +
		stamp(c.StartsAt) + ":" + stamp(c.EndsAt)))
}

// RepublishAfter is how long an equal campaign is refused after the first.
const RepublishAfter = 30 * time.Minute
