package waitlist_test

import (
	"testing"
	"time"

	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// TestOffersCountWakingHours: the minutes of an offer pass while its owner is awake, by the owner's clock and quiet
// hours, also where clocks are changed, and an offer never lasts longer than its drop.
func TestOffersCountWakingHours(t *testing.T) {
	shanghai, berlin := user.User{Timezone: "Asia/Shanghai"}, user.User{Timezone: "Europe/Berlin"}
	late := user.User{Timezone: "Asia/Shanghai", Quiet: user.QuietHours{From: 60, To: 10 * 60}}
	at := func(text string) time.Time {
		instant, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	for name, c := range map[string]struct {
		from    string
		minutes int
		owner   user.User
		want    string
	}{
		"in the day":                       {"2026-12-01T12:00:00+08:00", 30, shanghai, "2026-12-01T12:30:00+08:00"},
		"until the night":                  {"2026-12-01T21:30:00+08:00", 30, shanghai, "2026-12-01T22:00:00+08:00"},
		"over the night":                   {"2026-12-01T21:45:00+08:00", 30, shanghai, "2026-12-02T08:15:00+08:00"},
		"in the night":                     {"2026-12-01T23:45:00+08:00", 30, shanghai, "2026-12-02T08:30:00+08:00"},
		"before the morning":               {"2026-12-02T03:00:00+08:00", 30, shanghai, "2026-12-02T08:30:00+08:00"},
		"a day of minutes":                 {"2026-12-01T12:00:00+08:00", 1440, shanghai, "2026-12-02T22:00:00+08:00"},
		"quiet hours of the owner":         {"2026-12-01T23:45:00+08:00", 30, late, "2026-12-02T00:15:00+08:00"},
		"over quiet hours of the owner":    {"2026-12-02T00:45:00+08:00", 30, late, "2026-12-02T10:15:00+08:00"},
		"clocks go back in the night":      {"2026-10-24T21:45:00+02:00", 30, berlin, "2026-10-25T08:15:00+01:00"},
		"clocks go forward in the night":   {"2027-03-27T21:45:00+01:00", 30, berlin, "2027-03-28T08:15:00+02:00"},
		"the drop ends before":             {"2026-12-30T12:00:00+08:00", 1440, shanghai, "2026-12-31T00:00:00Z"},
		"the drop ends before the morning": {"2026-12-31T07:00:00+08:00", 30, shanghai, "2026-12-31T00:00:00Z"},
	} {
		end := at("2027-06-01T00:00:00Z")
		if c.want == "2026-12-31T00:00:00Z" {
			end = at(c.want)
		}
		if got := waitlist.OfferEnds(at(c.from), c.minutes, c.owner, end); !got.Equal(at(c.want)) {
			t.Errorf("%s: %v, want %v", name, got, at(c.want))
		}
	}
}

// TestLastHour: in the last hour in which a drop gives coupons all users who wait can accept them.
func TestLastHour(t *testing.T) {
	closes := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{Spec: template.Spec{Waitlist: template.OfferNext, ClosesAt: closes}}
	valid := drop
	valid.ValidUntil = new(closes.Add(-time.Hour))
	issue := drop
	issue.Waitlist = template.IssueNext
	for _, c := range []struct {
		t    template.Template
		left time.Duration
		want bool
	}{{drop, waitlist.LastHour + time.Second, false}, {drop, waitlist.LastHour, true}, {valid, 3*time.Hour + time.Second, false}, {valid, 3 * time.Hour, true}, {issue, time.Minute, false}} {
		if got := waitlist.Rushes(c.t, closes.Add(-c.left)); got != c.want {
			t.Errorf("%v before the end: %v", c.left, got)
		}
	}
}
