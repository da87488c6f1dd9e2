package delivery

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// MaxReason bounds a reason, in characters.
const MaxReason = 500

// ErrPaused is returned when a paused channel is paused again for another reason, because the new
// reason would replace a colleague's.
var ErrPaused = fault.New(fault.Conflict, "channel_paused", "the channel is paused already; resume it first to pause it for another reason")

// SettingStore keeps the settings that operators make for channels.
type SettingStore interface {
	Settings(ctx context.Context) ([Channels]Setting, error)
	// SaveSetting stores next with its audit entry if the channel's setting is still old,
	// otherwise it returns [fault.ErrStale].
	SaveSetting(ctx context.Context, old, next Setting, e staff.Entry) error
}

// Control holds the use cases of operators around channels. Shops share the
// channels, so staff who are limited to shops get [staff.ErrEveryShop].
type Control struct {
	Store SettingStore
	Now   func() time.Time
}

// Pause pauses the channel: workers notice within half a second, and due batches
// wait without using up attempts. A reason is required; all staff see it. A
// channel that is paused already keeps its first reason: Pause returns the
// setting with [ErrPaused], unless the reason is the same.
func (s *Control) Pause(ctx context.Context, by staff.Actor, c Channel, reason string) (Setting, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return Setting{}, err
	}
	reason = strings.TrimSpace(reason)
	e := &fault.Fields{}
	if reason == "" {
		e.Add("reason", "rule.required", "is required")
	} else if utf8.RuneCountInString(reason) > MaxReason {
		e.Add("reason", "rule.too_long", "must have at most %d characters", MaxReason)
	}
	if err := e.Err(); err != nil {
		return Setting{}, err
	}
	return s.change(ctx, by, c, "channel.pause", reason, func(next *Setting) error {
		if next.Paused {
			if next.PausedReason != reason {
				return ErrPaused.Because("%s has paused it since %s: %s", next.PausedBy, next.PausedAt.UTC().Format(time.RFC3339), next.PausedReason)
			}
			return nil
		}
		next.Paused, next.PausedReason, next.PausedAt, next.PausedBy = true, reason, s.Now(), by.Name
		return nil
	})
}

// Resume resumes a paused channel. A channel that is not paused is left unchanged.
func (s *Control) Resume(ctx context.Context, by staff.Actor, c Channel, reason string) (Setting, error) {
	return s.change(ctx, by, c, "channel.resume", reason, func(next *Setting) error {
		next.Paused, next.PausedReason, next.PausedAt, next.PausedBy = false, "", time.Time{}, ""
		return nil
	})
}

// SetRate limits the messages per second that all workers together hand to the channel's
// provider; 0 = unlimited. If shown is not nil and differs from the present rate, SetRate returns
// [fault.ErrStale].
func (s *Control) SetRate(ctx context.Context, by staff.Actor, c Channel, shown *int, rate int, reason string) (Setting, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return Setting{}, err
	}
	e := &fault.Fields{}
	if checkRate(e, rate); len(e.List) > 0 {
		return Setting{}, e
	}
	return s.change(ctx, by, c, "channel.rate", reason, func(next *Setting) error {
		if shown != nil && next.RatePerSecond != *shown && next.RatePerSecond != rate {
			return fault.ErrStale
		}
		next.RatePerSecond = rate
		return nil
	})
}

// settingTries bounds the attempts to store a change when other changes are stored in between.
// The change is valid whatever the other changes were, so the operator need not be asked again.
const settingTries = 5

func (s *Control) change(ctx context.Context, by staff.Actor, c Channel, action, reason string, decide func(*Setting) error) (Setting, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return Setting{}, err
	}
	if !c.Valid() {
		return Setting{}, ErrChannelUnavailable
	}
	for try := 1; ; try++ {
		all, err := s.Store.Settings(ctx)
		if err != nil {
			return Setting{}, err
		}
		old := all[c]
		next := old
		if err := decide(&next); err != nil {
			return old, err
		}
		if shownSetting(old) == shownSetting(next) {
			return old, nil
		}
		err = s.Store.SaveSetting(ctx, old, next, staff.Entry{Actor: by, Action: action, ObjectKind: "channel", ObjectID: c.String(),
			Reason: reason, Before: shownSetting(old), After: shownSetting(next)})
		if !errors.Is(err, fault.ErrStale) || try == settingTries {
			return next, err
		}
	}
}

// settingShown is the part of a setting that the audit log keeps.
type settingShown struct {
	Paused        bool   `json:"paused"`
	PausedReason  string `json:"paused_reason,omitempty"`
	RatePerSecond int    `json:"rate_per_second"`
}

func shownSetting(s Setting) settingShown {
	return settingShown{s.Paused, s.PausedReason, s.RatePerSecond}
}
