package shell

import (
	"testing"
	"time"

	pageparts "dropbell/views/pages/parts"
)

func TestInstant(t *testing.T) {
	for _, c := range []struct{ zone, text, fold, want, broken string }{
		{"Asia/Shanghai", "2026-11-20T20:00", "", "2026-11-20T12:00:00Z", ""},
		{"Asia/Shanghai", " 2026-11-20T20:00:05 ", "", "2026-11-20T12:00:05Z", ""},
		{"Asia/Shanghai", "2026-11-20 20:00", "", "2026-11-20T12:00:00Z", ""},
		{"Asia/Shanghai", "2026-02-30T20:00", "", "", "rule.time_format"},
		{"Asia/Shanghai", "tomorrow", "", "", "rule.time_format"},
		// Berlin, 29 March 2026: 01:59:59 is followed by 03:00:00.
		{"Europe/Berlin", "2026-03-29T01:59:59", "", "2026-03-29T00:59:59Z", ""},
		{"Europe/Berlin", "2026-03-29T02:00", "", "", "rule.time_gap"},
		{"Europe/Berlin", "2026-03-29T02:59:59", "first", "", "rule.time_gap"},
		{"Europe/Berlin", "2026-03-29T03:00", "", "2026-03-29T01:00:00Z", ""},
		// Berlin, 25 October 2026: 02:59:59 is followed by 02:00:00.
		{"Europe/Berlin", "2026-10-25T01:59:59", "", "2026-10-24T23:59:59Z", ""},
		{"Europe/Berlin", "2026-10-25T02:00", "", "", pageparts.KeyTimeTwice},
		{"Europe/Berlin", "2026-10-25T02:00", "first", "2026-10-25T00:00:00Z", ""},
		{"Europe/Berlin", "2026-10-25T02:00", "second", "2026-10-25T01:00:00Z", ""},
		{"Europe/Berlin", "2026-10-25T02:59:59", "second", "2026-10-25T01:59:59Z", ""},
		{"Europe/Berlin", "2026-10-25T03:00", "first", "2026-10-25T02:00:00Z", ""},
		// A zone whose clocks move by half an hour, and a zone that skipped a whole day.
		{"Australia/Lord_Howe", "2026-10-04T02:15", "", "", "rule.time_gap"},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "first", "2026-04-04T14:45:00Z", ""},
		{"Australia/Lord_Howe", "2026-04-05T01:45", "second", "2026-04-04T15:15:00Z", ""},
		{"Pacific/Apia", "2011-12-30T12:00", "", "", "rule.time_gap"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, broken := Instant(c.text, c.fold, zone)
		got := ""
		if broken == "" {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != c.want || broken != c.broken {
			t.Errorf("%s %q %q: %s %s, want %s %s", c.zone, c.text, c.fold, got, broken, c.want, c.broken)
		}
	}
}

// Every stored time can be typed: the time that the form shows is read as the same.
func TestTypedTimeIsReadAsTheSame(t *testing.T) {
	for _, name := range []string{"UTC", "Asia/Shanghai", "Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for at := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC); at.Year() == 2026; at = at.Add(17*time.Minute + 13*time.Second) {
			text, fold := TypedTime(at, zone)
			back, broken := Instant(text, fold, zone)
			if broken != "" || !back.Equal(at) {
				t.Fatalf("%s %s: typed %q %q, read %s %s", name, at, text, fold, back, broken)
			}
		}
	}
}
