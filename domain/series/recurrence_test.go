package series_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/series"
)

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestOpening: a time that clocks skip is as much later, a time that they show twice is the first of the two.
func TestOpening(t *testing.T) {
	for _, c := range []struct {
		zone, day, clock, want string
	}{
		{"Europe/Berlin", "2027-03-28", "02:30", "2027-03-28T01:30:00Z"}, // 03:30 in summer time
		{"Europe/Berlin", "2027-03-28", "01:59:59", "2027-03-28T00:59:59Z"},
		{"Europe/Berlin", "2027-03-28", "03:00", "2027-03-28T01:00:00Z"},
		{"Europe/Berlin", "2027-10-31", "02:30", "2027-10-31T00:30:00Z"}, // the first of two
		{"Europe/Berlin", "2027-10-31", "03:00", "2027-10-31T02:00:00Z"},
		{"Europe/Berlin", "2027-10-31", "20:00", "2027-10-31T19:00:00Z"},
		{"America/New_York", "2027-03-14", "02:00", "2027-03-14T07:00:00Z"},
		{"America/New_York", "2027-11-07", "01:00", "2027-11-07T05:00:00Z"},
		{"Australia/Lord_Howe", "2027-10-03", "02:15", "2027-10-02T15:45:00Z"}, // clocks skip half an hour
		{"America/Santiago", "2027-09-05", "00:00", "2027-09-05T04:00:00Z"},    // clocks skip midnight
		{"Asia/Shanghai", "2027-03-28", "20:00", "2027-03-28T12:00:00Z"},
	} {
		clock, ok := series.ParseClock(c.clock)
		if got := series.Opening(series.Day(c.day), clock, zoneOf(t, c.zone)).UTC().Format(time.RFC3339); !ok || got != c.want {
			t.Errorf("%s %s in %s: %s, want %s", c.day, c.clock, c.zone, got, c.want)
		}
	}
}

// A model of a recurrence: whether a day belongs to it is decided for each day by itself, and the instant at
// which it opens is found by going through the minutes of the day and looking at the clock.
type model struct {
	every    string
	interval int
	weekdays []time.Weekday
	monthDay int
	count    int
	until    time.Time
	starts   time.Time
	gone     map[string]bool // skipped days and holidays
}

func (m model) days(until time.Time) (days []string) {
	counted := 0
	for d := m.starts; !d.After(until); d = d.AddDate(0, 0, 1) {
		if !m.until.IsZero() && d.After(m.until) || !m.on(d) {
			continue
		}
		if counted++; m.count > 0 && counted > m.count {
			break
		}
		if name := d.Format(time.DateOnly); !m.gone[name] {
			days = append(days, name)
		}
	}
	return days
}

func (m model) on(d time.Time) bool {
	monday := func(t time.Time) time.Time { return t.AddDate(0, 0, -(int(t.Weekday())+6)%7) }
	between := int(d.Sub(m.starts).Hours()) / 24
	switch m.every {
	case "DAILY":
		return between%m.interval == 0
	case "WEEKLY":
		weeks := int(monday(d).Sub(monday(m.starts)).Hours()) / 24 / 7
		return weeks%m.interval == 0 && slices.Contains(m.weekdays, d.Weekday())
	}
	months := (d.Year()-m.starts.Year())*12 + int(d.Month()) - int(m.starts.Month())
	last := d.AddDate(0, 0, 1).Day() == 1
	return months%m.interval == 0 && (d.Day() == m.monthDay || m.monthDay == -1 && last)
}

// opens goes through the minutes from three hours before on.
func opens(day string, clock int, zone *time.Location) time.Time {
	at, _ := time.Parse(time.DateOnly, day)
	_, noon := at.Add(12 * time.Hour).In(zone).Zone()
	at = at.Add(time.Duration(clock)*time.Minute - time.Duration(noon)*time.Second)
	var before time.Time
	for m := -3 * 60; m < 3*60; m++ {
		now := at.Add(time.Duration(m) * time.Minute).In(zone)
		shown := now.Format("2006-01-02 15:04")
		wanted := fmt.Sprintf("%s %02d:%02d", day, clock/60, clock%60)
		if shown == wanted {
			return now
		}
		if shown > wanted && !before.IsZero() { // clocks skip it
			wall, _ := time.Parse("2006-01-02 15:04", wanted)
			_, offset := before.Zone()
			return wall.Add(-time.Duration(offset) * time.Second)
		}
		before = now
	}
	return time.Time{}
}

// TestDaysAgainstAModel: the days and instants of a year equal those of the model, for rules of plain controls with
// skipped days, holidays and changes of daylight saving.
func TestDaysAgainstAModel(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Shanghai", "Africa/Casablanca", "UTC"}
	rapid.Check(t, func(t *rapid.T) {
		starts := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(-40, 300).Draw(t, "starts"))
		p := series.Plain{Every: rapid.SampledFrom([]string{"DAILY", "WEEKLY", "MONTHLY"}).Draw(t, "every"), Interval: rapid.IntRange(1, 4).Draw(t, "interval")}
		m := model{every: p.Every, interval: p.Interval, starts: starts, gone: map[string]bool{}}
		switch p.Every {
		case "WEEKLY":
			p.Weekdays = rapid.SliceOfNDistinct(rapid.SampledFrom(series.Weekdays()), 0, 7, rapid.ID).Draw(t, "weekdays")
			for _, w := range p.Weekdays {
				m.weekdays = append(m.weekdays, series.WeekdayOf(w))
			}
			if len(p.Weekdays) == 0 {
				m.weekdays = []time.Weekday{starts.Weekday()}
			}
		case "MONTHLY":
			p.MonthDay = rapid.SampledFrom([]int{0, 1, 15, 28, 29, 30, 31, -1}).Draw(t, "month day")
			if m.monthDay = p.MonthDay; p.MonthDay == 0 {
				m.monthDay = starts.Day()
			}
		}
		switch rapid.IntRange(0, 2).Draw(t, "end") {
		case 1:
			p.Count = rapid.IntRange(1, 200).Draw(t, "count")
			m.count = p.Count
		case 2:
			m.until = starts.AddDate(0, 0, rapid.IntRange(0, 400).Draw(t, "until"))
			p.Until = series.DayOf(m.until)
		}
		r := series.Recurrence{Rule: p.Rule(), Starts: series.DayOf(starts)}
		var holidays []series.Day
		for i := range rapid.IntRange(0, 12).Draw(t, "days without a drop") {
			d := series.DayOf(starts).Add(rapid.IntRange(0, 365).Draw(t, "day"))
			if m.gone[string(d)] = true; i%2 == 0 {
				holidays = append(holidays, d)
			} else {
				r.Skips = append(r.Skips, d)
			}
		}
		end := starts.AddDate(1, 0, 0)
		want := m.days(end)
		var got []string
		for _, d := range r.Days(r.Starts, holidays, 1000) {
			if string(d) <= end.Format(time.DateOnly) {
				got = append(got, string(d))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s from %s: %v, want %v", r.Rule, r.Starts, got, want)
		}
		if again, plain := r.Plain(); !plain || (series.Recurrence{Rule: again.Rule(), Starts: r.Starts}).Normal() != r.Normal() {
			t.Fatalf("%s is %+v as plain controls", r.Rule, again)
		}
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		clock := rapid.IntRange(0, 24*60-1).Draw(t, "clock")
		s := series.Series{Spec: series.Spec{Recurrence: r, Clock: series.Clock(clock * 60), SkipsHolidays: true}, Holidays: holidays, ShopTimezone: zone.String()}
		for i, d := range want {
			_, before := series.Opening(series.Day(d).Add(-1), 0, zone).Zone()
			if _, after := series.Opening(series.Day(d).Add(2), 0, zone).Zone(); before == after && i%30 != 0 {
				continue // an ordinary day
			}
			if at := opens(d, clock, zone); !at.Equal(s.OpensOn(series.Day(d))) {
				t.Fatalf("%s %s in %s opens at %s, want %s", d, s.Clock, zone, s.OpensOn(series.Day(d)), at)
			}
		}
		if len(want) == 0 {
			return
		}
		// Upcoming begins after any instant.
		i := rapid.IntRange(0, len(want)-1).Draw(t, "opened")
		upcoming := s.Upcoming(opens(want[i], clock, zone), series.Ahead)
		for j, d := range upcoming {
			if i+1+j < len(want) && string(d) != want[i+1+j] {
				t.Fatalf("after %s: %v, want %v", want[i], upcoming, want[i+1:])
			}
		}
		if first := s.Upcoming(opens(want[i], clock, zone).Add(-time.Second), 1); len(first) != 1 || string(first[0]) != want[i] {
			t.Fatalf("a second before %s: %v", want[i], first)
		}
	})
}

// TestRules: rules that name times of day, never have a day, or are no rules are refused.
func TestRules(t *testing.T) {
	for rule, want := range map[string]bool{
		"FREQ=DAILY": true, "FREQ=WEEKLY;BYDAY=MO,FR": true, "FREQ=MONTHLY;BYDAY=-1FR": true, "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29": true,
		"FREQ=DAILY;UNTIL=20270131": true, "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1": true,
		"": false, "FREQ=HOURLY": false, "FREQ=DAILY;BYHOUR=20": false, "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30": false, "every day": false,
		"DTSTART:20270101T000000Z\nRRULE:FREQ=DAILY": false, "FREQ=DAILY;DTSTART=20270101T000000Z": false, "FREQ=DAILY;INTERVAL=4000": false,
		"FREQ=DAILY;COUNT=1000000": false, "FREQ=MONTHLY;BYMONTHDAY=32": false, "FREQ=DAILY;UNTIL=20261231": false,
		"FREQ=DAILY;COUNT=0": false, "FREQ=DAILY;INTERVAL=0": false, "FREQ=DAILY;FREQ=WEEKLY": false, "RRULE:FREQ=DAILY;COUNT=2": true, "FREQ=DAILY;COUNT=2;UNTIL=20280101": false, "FREQ=DAILY;" + strings.Repeat("BYDAY=MO;", 99): false,
	} {
		r := series.Recurrence{Rule: rule, Starts: "2027-01-01"}
		if got := len(r.Days("2027-01-01", nil, 1)) > 0; got != want {
			t.Errorf("%q: %t, want %t", rule, got, want)
		}
		if n := r.Normal(); want && (series.Recurrence{Rule: n, Starts: r.Starts}).Normal() != n {
			t.Errorf("%q is not in normal form: %q", n, (series.Recurrence{Rule: n, Starts: r.Starts}).Normal())
		}
	}
	for _, rule := range []string{"FREQ=MONTHLY;BYDAY=-1FR", "FREQ=MONTHLY;BYMONTHDAY=-2"} {
		if _, plain := (series.Recurrence{Rule: rule, Starts: "2027-01-01"}).Plain(); plain {
			t.Errorf("%s can be typed with plain controls", rule)
		}
	}
	if days, wrong := series.ParseDays("2027-01-02, 2027-01-01\n2027-01-02 2027-13-01"); wrong != "2027-13-01" || !slices.Equal(days, []series.Day{"2027-01-01", "2027-01-02"}) {
		t.Errorf("%v %q", days, wrong)
	}
}
