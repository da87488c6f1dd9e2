package waitlist

import (
	"time"

	"dropbell/domain/template"
	"dropbell/domain/user"
)

// MaxLapses is after how many offers that a user did not accept in time the user gets no further one.
const MaxLapses = 2

// LastHour is how long before the end of a drop no more offers are made to single users: all users
// who wait are told at once, and the first of them get the coupons.
const LastHour = time.Hour

// asleep are the quiet hours of users who have set none, on their own clock.
var asleep = user.QuietHours{From: 22 * 60, To: 8 * 60}

// Rushes reports whether all users who wait for t can accept its coupons at now.
func Rushes(t template.Template, now time.Time) bool {
	return t.Waitlist == template.OfferNext && !now.Before(GivesUntil(t).Add(-LastHour))
}

// OfferEnds returns until when an offer that is made at now can be accepted: for this many minutes,
// which count in the hours in which the owner is awake, and not after end.
func OfferEnds(now time.Time, minutes int, owner user.User, end time.Time) time.Time {
	if owner.Quiet.From == owner.Quiet.To {
		owner.Quiet = asleep
	}
	zone, at := owner.Zone(), now
	for left := time.Duration(minutes) * time.Minute; at.Before(end); {
		if until, sleeping := owner.Sleeps(at); sleeping {
			at = until
			continue
		}
		night := nextNight(at, owner.Quiet, zone)
		if !at.Add(left).After(night) {
			at = at.Add(left)
			break
		}
		left -= night.Sub(at)
		at = night
	}
	if at.After(end) {
		return end
	}
	return at
}

// nextNight returns the next beginning of the quiet hours after at.
func nextNight(at time.Time, quiet user.QuietHours, zone *time.Location) time.Time {
	day := at.In(zone)
	for ahead := 0; ; ahead++ {
		night := time.Date(day.Year(), day.Month(), day.Day()+ahead, 0, int(quiet.From), 0, 0, zone)
		if night.After(at) {
			return night
		}
	}
}
