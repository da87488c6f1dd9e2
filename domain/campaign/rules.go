package campaign

import (
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/wording"
)

// Limits of a spec.
const (
	MaxName    = 120
	MaxUsers   = 100_000 // named one by one
	MaxRate    = 1_000_000
	MaxHorizon = 2 * 365 * 24 * time.Hour
)

// Check returns a [fault.Fields] that names every rule that s breaks, or nil. Whether the end is
// in the future is checked at publication, not for drafts.
func (s Spec) Check() error {
	e := &fault.Fields{}
	switch n := utf8.RuneCountInString(s.Name); {
	case !wording.OneLine(s.Name):
		e.Add("name", "rule.text", "must be valid text without control characters")
	case strings.TrimSpace(s.Name) == "":
		e.Add("name", "rule.required", "must not be empty")
	case n > MaxName:
		e.Add("name", "rule.too_long", "must have at most %d characters", MaxName)
	}
	if s.Shop < 0 {
		e.Add("shop_number", "rule.shop_number", "must be a positive number")
	}
	if !s.Channel.Valid() {
		e.Add("channel", "rule.channel", "unknown channel; use one of app, email, sms, webpush, webhook")
	}
	if s.GrantTemplate < 0 {
		e.Add("grant_template_id", "rule.id", "must be the id of a template")
	}
	if s.RatePerSecond < 0 || s.RatePerSecond > MaxRate {
		e.Add("rate_per_second", "rule.rate", "must be between 0 (unlimited) and %d", MaxRate)
	}
	s.Content.Check(e)
	s.Audience.check(e)
	s.checkTimes(e)
	s.checkTest(e, s.StartsAt)
	return e.Err()
}

// tidy returns s as it is stored: equal names are written alike.
func (s Spec) tidy() Spec {
	s.Name, s.Audience.Users = strings.TrimSpace(s.Name), normal(s.Audience.Users)
	return s
}

func (a Audience) check(e *fault.Fields) {
	switch a.Kind {
	case Everybody:
	case Named:
		switch {
		case len(a.Users) == 0:
			e.Add("audience.user_ids", "rule.required", "name at least one user")
		case len(a.Users) > MaxUsers:
			e.Add("audience.user_ids", "rule.too_many_users", "name at most %d users; upload a list for more", MaxUsers)
		}
	case Reserved, Holds, Segment, List:
		if a.ID <= 0 {
			e.Add("audience."+string(a.Kind), "rule.id", "must be a positive decimal number")
		}
	default:
		e.Add("audience", "rule.audience", "say exactly one of all, user_ids, reserved_template_id, holds_template_id, segment_id, list_id")
	}
}

func (s Spec) checkTimes(e *fault.Fields) {
	for name, at := range map[string]time.Time{"starts_at": s.StartsAt, "ends_at": s.EndsAt} {
		if at.Year() < 2000 || at.Year() > 9000 {
			e.Add(name, "rule.instant", "must be an instant between the years 2000 and 9000")
		}
	}
	if !s.EndsAt.After(s.StartsAt) {
		e.Add("ends_at", "rule.ends_after_start", "must lie after the start")
	}
}

// checkPublication refuses a campaign that can no longer, or not yet, be sent.
func (s Spec) checkPublication(now time.Time, channels delivery.Available) error {
	e := &fault.Fields{}
	if !s.EndsAt.After(now) {
		e.Add("ends_at", "rule.ends_ahead", "must lie in the future")
	}
	if s.StartsAt.Before(now) {
		s.checkTest(e, now)
	}
	if s.StartsAt.After(now.Add(MaxHorizon)) {
		e.Add("starts_at", "rule.horizon", "must lie within two years")
	}
	if !channels.Has(s.Channel) {
		e.Add("channel", "rule.channel_unavailable", "this channel has no configured sender")
	}
	return e.Err()
}

// TemplateID returns the template that the messages are about: the granted template, otherwise
// the template that defines the audience, otherwise 0.
func (s Spec) TemplateID() int64 {
	switch {
	case s.GrantTemplate != 0:
		return s.GrantTemplate
	case s.Audience.Kind == Reserved, s.Audience.Kind == Holds:
		return s.Audience.ID
	}
	return 0
}
