package user_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/user"
	"dropbell/musttest"
)

func clockSpan(t *testing.T, from, to string) user.QuietHours {
	q, ok := user.ParseQuietHours(from, to)
	if !ok {
		t.Fatal(from, to)
	}
	return q
}

func TestTheEndOfQuietHours(t *testing.T) {
	for _, c := range []struct{ zone, from, to, at, want string }{
		{"UTC", "22:00", "08:00", "2027-01-01T23:00:00Z", "2027-01-02T08:00:00Z"},
		{"UTC", "22:00", "08:00", "2027-01-01T07:59:59.5Z", "2027-01-01T08:00:00Z"},
		{"UTC", "09:00", "14:00", "2027-01-01T09:00:00Z", "2027-01-01T14:00:00Z"},
		// 02:00 to 03:00 does not exist.
		{"America/New_York", "22:00", "02:30", "2027-03-14T00:30:00-05:00", "2027-03-14T03:00:00-04:00"},
		{"America/New_York", "22:00", "02:30", "2027-03-14T01:30:00-05:00", "2027-03-14T03:00:00-04:00"},
		{"America/New_York", "22:00", "03:30", "2027-03-14T01:30:00-05:00", "2027-03-14T03:30:00-04:00"},
		// 01:00 to 02:00 comes twice.
		{"America/New_York", "22:00", "01:30", "2027-11-07T01:10:00-04:00", "2027-11-07T01:30:00-04:00"},
		{"America/New_York", "22:00", "01:30", "2027-11-07T01:10:00-05:00", "2027-11-07T01:30:00-05:00"},
		// There is no midnight.
		{"America/Santiago", "22:00", "00:30", "2027-09-04T23:00:00-04:00", "2027-09-05T01:00:00-03:00"},
		{"America/Santiago", "22:00", "00:30", "2027-09-04T23:30:00-04:00", "2027-09-05T01:00:00-03:00"},
	} {
		zone, err := time.LoadLocation(c.zone)
		musttest.OK(t, err)
		at, _ := time.Parse(time.RFC3339, c.at)
		if got := clockSpan(t, c.from, c.to).End(at, zone).Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s %s-%s at %s: %s, want %s", c.zone, c.from, c.to, c.at, got, c.want)
		}
	}
}

// TestTheEndOfQuietHoursProperties: in every zone the end is the instant that a
// search from minute to minute finds.
func TestTheEndOfQuietHoursProperties(t *testing.T) {
	zones := []string{"UTC", "America/New_York", "America/Santiago", "America/St_Johns", "Europe/Berlin", "Europe/Dublin", "Africa/Casablanca",
		"Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Asia/Kolkata", "Asia/Shanghai"}
	rapid.Check(t, func(t *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		musttest.OK(t, err)
		around := time.Date(rapid.IntRange(2008, 2036).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1, 0, 0, 0, 0, zone)
		if _, jump := around.ZoneBounds(); !jump.IsZero() {
			around = jump
		}
		at := around.Add(time.Duration(rapid.IntRange(-36*60, 36*60).Draw(t, "minutes")) * time.Minute).Add(
			time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "more")))
		q := user.QuietHours{From: rapid.IntRange(0, 24*60-1).Draw(t, "from"), To: rapid.IntRange(0, 24*60-1).Draw(t, "to")}
		end := q.End(at, zone)
		if !end.After(at) || q.Contains(end, zone) {
			t.Fatalf("%v at %v in %v: %v", q, at, zone, end)
		}
		want := at.Add(time.Nanosecond)
		if q.Contains(want, zone) {
			for want = at.Truncate(time.Minute).Add(time.Minute); q.Contains(want, zone); {
				want = want.Add(time.Minute)
			}
		}
		if !end.Equal(want) {
			t.Fatalf("%v at %v in %v: %v, want %v", q, at, zone, end, want)
		}
	})
}

func TestZones(t *testing.T) {
	for _, good := range []string{"UTC", "Asia/Shanghai", "America/Argentina/Buenos_Aires", "Etc/GMT+5", "EST5EDT"} {
		if !user.ValidZone(good) {
			t.Errorf("%s is refused", good)
		}
	}
	for _, bad := range []string{"", "Local", "localtime", "posixrules", "Factory", "right/Europe/Berlin", "posix/UTC", "./UTC", "Europe//Berlin", "Mars/Base"} {
		if user.ValidZone(bad) {
			t.Errorf("%q is a zone", bad)
		}
	}
}

func TestZoneOfAUser(t *testing.T) {
	for name, want := range map[string]string{"": "UTC", "Local": "UTC", "No/Where": "UTC", "../zones": "UTC", "Asia/Shanghai": "Asia/Shanghai"} {
		for range 2 { // read, and kept
			if got := (user.User{Timezone: name}).Zone().String(); got != want {
				t.Errorf("%q: %s", name, got)
			}
		}
	}
}
