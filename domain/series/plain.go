package series

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// Plain is a rule as it is typed with plain controls. Not every rule can be typed so.
type Plain struct {
	// Every is "DAILY", "WEEKLY" or "MONTHLY"; Interval is every how many days, weeks or months, from 1.
	Every    string
	Interval int
	// Weekdays are for WEEKLY: "MO" … "SU". None = the weekday of the first day.
	Weekdays []string
	// MonthDay is for MONTHLY: 1 … 31, -1 = the last day; 0 = the day of the month of the first day.
	MonthDay int
	// Until is the last day, or Count the number of days; none = without end.
	Until Day
	Count int
}

// Weekdays returns the names of the days of the week in rules, from Monday.
func Weekdays() []string { return []string{"MO", "TU", "WE", "TH", "FR", "SA", "SU"} }

// WeekdayOf returns the day of the week that a name of [Weekdays] stands for.
func WeekdayOf(name string) time.Weekday {
	return time.Weekday((slices.Index(Weekdays(), name) + 1) % 7)
}

// Rule returns the rule.
func (p Plain) Rule() string {
	parts := []string{"FREQ=" + p.Every}
	if p.Interval > 1 {
		parts = append(parts, "INTERVAL="+strconv.Itoa(p.Interval))
	}
	if p.Count > 0 {
		parts = append(parts, "COUNT="+strconv.Itoa(p.Count))
	}
	if p.Until != "" {
		parts = append(parts, "UNTIL="+strings.ReplaceAll(string(p.Until), "-", ""))
	}
	if p.Every == "MONTHLY" && p.MonthDay != 0 {
		parts = append(parts, "BYMONTHDAY="+strconv.Itoa(p.MonthDay))
	}
	if p.Every == "WEEKLY" && len(p.Weekdays) > 0 {
		parts = append(parts, "BYDAY="+strings.Join(p.Weekdays, ","))
	}
	return strings.Join(parts, ";")
}

// Plain returns the rule as it is typed with plain controls. ok is false if the rule says more than these.
func (r Recurrence) Plain() (p Plain, ok bool) {
	o, broken := r.option()
	if broken[0] != "" {
		return p, false
	}
	p = Plain{Every: o.Freq.String(), Interval: max(o.Interval, 1), Count: o.Count}
	if !o.Until.IsZero() {
		p.Until = DayOf(o.Until)
	}
	switch o.Freq {
	case rrule.WEEKLY:
		for _, w := range o.Byweekday {
			p.Weekdays = append(p.Weekdays, Weekdays()[w.Day()])
		}
	case rrule.MONTHLY:
		if len(o.Bymonthday) == 1 && o.Bymonthday[0] >= -1 {
			p.MonthDay = o.Bymonthday[0]
		}
	}
	return p, Recurrence{Rule: p.Rule(), Starts: r.Starts}.Normal() == r.Normal()
}
