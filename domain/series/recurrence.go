// Package series repeats drops. A series creates a drop for each day of a recurrence (an RRULE of
// RFC 5545), some days ahead, from the settings of a saved drop. Users reserve the reminders of all
// drops of a series at once: a standing reservation.
package series

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"dropbell/domain/fault"
)

// A Day is a date in the time zone of the shop: "2027-01-31". Days are ordered as texts.
type Day string

// dayLayout is the layout of a [Day].
const dayLayout = time.DateOnly

// DayOf returns the date that t has in its zone.
func DayOf(t time.Time) Day { return Day(t.Format(dayLayout)) }

// Valid reports whether d is a date.
func (d Day) Valid() bool {
	_, err := time.Parse(dayLayout, string(d))
	return err == nil
}

// start returns midnight of the day in UTC; the zero time if the day is invalid.
func (d Day) start() time.Time {
	t, _ := time.Parse(dayLayout, string(d))
	return t
}

// Add returns the day n days later.
func (d Day) Add(n int) Day { return DayOf(d.start().AddDate(0, 0, n)) }

// ParseDays reads dates that are separated by spaces, commas or lines. It returns them in order, each once,
// and the first text that is no date.
func ParseDays(text string) (days []Day, wrong string) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;\t\r\n，、", r) }) {
		if d := Day(part); d.Valid() {
			days = append(days, d)
		} else if wrong == "" {
			wrong = part
		}
	}
	slices.Sort(days)
	return slices.Compact(days), wrong
}

// A Clock is a time of day on the clocks of the shop, in seconds since midnight.
type Clock int

// ClockOf returns the time of day that t has in its zone.
func ClockOf(t time.Time) Clock { return Clock(t.Hour()*3600 + t.Minute()*60 + t.Second()) }

// ParseClock reads "20:00" or "20:00:30".
func ParseClock(text string) (Clock, bool) {
	for _, layout := range []string{"15:04", "15:04:05"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return ClockOf(t), true
		}
	}
	return 0, false
}

// String returns "20:00", with seconds only if there are any.
func (c Clock) String() string {
	text := fmt.Sprintf("%02d:%02d", c/3600, c/60%60)
	if c%60 != 0 {
		text += fmt.Sprintf(":%02d", c%60)
	}
	return text
}

// Opening returns the instant at which clocks in the zone show c on the day. A time that clocks skip, when
// daylight saving begins, is read with the offset before the change, which is as much later as the clocks
// skip: 02:30 becomes 03:30. A time that clocks show twice, when daylight saving ends, is the first of the
// two. RFC 5545 (section 3.3.5) reads such times in the same way.
func Opening(d Day, c Clock, zone *time.Location) time.Time {
	wall := d.start().Add(time.Duration(c) * time.Second)
	at := func(near time.Time) time.Time {
		_, offset := near.In(zone).Zone()
		return wall.Add(-time.Duration(offset) * time.Second)
	}
	first, second := at(wall.Add(-24*time.Hour)), at(wall.Add(24*time.Hour))
	shows := func(t time.Time) bool { return DayOf(t.In(zone)) == DayOf(wall) && ClockOf(t.In(zone)) == c }
	if !shows(first) && shows(second) {
		return second
	}
	return first
}

// A Recurrence are the days of a series.
type Recurrence struct {
	// Rule is the RRULE without its name: "FREQ=WEEKLY;BYDAY=MO,FR". Its parts may not name a time of day,
	// so that a day has one drop at most.
	Rule string
	// Starts is the day from which the rule counts its intervals and its COUNT, the DTSTART of RFC 5545. It
	// is a day of the series only if the rule allows it.
	Starts Day
	// Skips are days without a drop. Like EXDATE, a skipped day counts for a COUNT.
	Skips []Day
}

// Limits of a recurrence.
const (
	MaxRule     = 300
	MaxSkips    = 400
	MaxInterval = 366
	MaxCount    = 2000
	// horizonYears is how far ahead days are looked for.
	horizonYears = 5
)

// option parses the rule; broken is empty if the rule is accepted, otherwise the key and the text of the rule that it breaks.
func (r Recurrence) option() (o rrule.ROption, broken [2]string) {
	if len(r.Rule) > MaxRule {
		return o, [2]string{"rule.rrule", "is too long"}
	}
	parsed, err := rrule.StrToROption(r.Rule)
	if err != nil || strings.ContainsAny(r.Rule, "\n\r") {
		return o, [2]string{"rule.rrule", "must be an RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,FR"}
	}
	o = *parsed
	twice, zero := partsOf(r.Rule)
	if twice || o.Count > 0 && !o.Until.IsZero() { // RFC 5545, section 3.3.10
		return o, [2]string{"rule.rrule", "must be an RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,FR"}
	}
	if !slices.Contains([]rrule.Frequency{rrule.DAILY, rrule.WEEKLY, rrule.MONTHLY, rrule.YEARLY}, o.Freq) ||
		len(o.Byhour)+len(o.Byminute)+len(o.Bysecond)+len(o.Byeaster) > 0 || !o.Dtstart.IsZero() {
		return o, [2]string{"rule.rrule_days", "must name days only: FREQ is DAILY, WEEKLY, MONTHLY or YEARLY, without BYHOUR, BYMINUTE, BYSECOND and DTSTART"}
	}
	if zero || o.Interval < 0 || o.Interval > MaxInterval || o.Count < 0 || o.Count > MaxCount {
		return o, [2]string{"rule.rrule_limits", fmt.Sprintf("INTERVAL must be between 1 and %d, and COUNT between 1 and %d", MaxInterval, MaxCount)}
	}
	o.Until = o.Until.Truncate(24 * time.Hour)
	o.Dtstart = r.Starts.start()
	if _, err := rrule.NewRRule(o); err != nil {
		return o, [2]string{"rule.rrule", "must be an RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,FR"}
	}
	return o, broken
}

// partsOf reports whether a part of the rule is named twice, of which rrule keeps the last, and whether INTERVAL or
// COUNT is 0, which rrule takes for a part that is not there.
func partsOf(rule string) (twice, zero bool) {
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.ToUpper(rule), "RRULE:"), ";") {
		name, value, _ := strings.Cut(part, "=")
		twice, seen[name] = twice || seen[name], true
		n, err := strconv.Atoi(value)
		zero = zero || (name == "INTERVAL" || name == "COUNT") && n == 0 && err == nil
	}
	return twice, zero
}

// check adds the broken rules to e.
func (r Recurrence) check(e *fault.Fields) {
	if !r.Starts.Valid() || r.Starts < "2000-01-01" || r.Starts > "2100-01-01" {
		e.Add("starts", "rule.series_day", "must be a date between 2000-01-01 and 2100-01-01, such as 2027-01-31")
		return
	}
	if _, broken := r.option(); broken[0] != "" {
		e.Add("rrule", broken[0], "%s", broken[1])
	} else if len(r.Days(r.Starts, nil, 1)) == 0 {
		e.Add("rrule", "rule.rrule_never", "has no day within five years of its start")
	}
	if len(r.Skips) > MaxSkips {
		e.Add("skips", "rule.series_skips", "must be at most %d days", MaxSkips)
	}
	for _, d := range r.Skips {
		if !d.Valid() {
			e.Add("skips", "rule.series_day", "must be dates, such as 2027-01-31")
			return
		}
	}
}

// Normal returns the rule with its parts in one order, so that equal rules are equal texts. It returns the
// rule unchanged if it is not accepted.
func (r Recurrence) Normal() string {
	o, broken := r.option()
	if broken[0] != "" {
		return r.Rule
	}
	return strings.ReplaceAll(o.RRuleString(), "T000000Z", "")
}

// Days returns up to n days of the recurrence, from the given day on and without the skipped days and the
// days of without, in order. It looks five years ahead. It returns none for a rule that is not accepted.
func (r Recurrence) Days(from Day, without []Day, n int) (days []Day) {
	o, broken := r.option()
	if broken[0] != "" || n <= 0 {
		return nil
	}
	from = max(from, r.Starts)
	if horizon := from.start().AddDate(horizonYears, 0, 0); o.Until.IsZero() || o.Until.After(horizon) {
		o.Until = horizon
	}
	rule, err := rrule.NewRRule(o)
	if err != nil {
		return nil
	}
	next := rule.Iterator()
	for at, ok := next(); ok && len(days) < n; at, ok = next() {
		d := DayOf(at)
		if d >= from && !slices.Contains(r.Skips, d) && !slices.Contains(without, d) {
			days = append(days, d)
		}
	}
	return days
}
