package ui

import (
	"time"

	"github.com/a-h/templ"

	"dropbell/views/i18n"
)

// A MonthDay is one day of a [Month].
type MonthDay struct {
	Date time.Time // midnight UTC of the date
	// Inside is the content of the day; nil = nothing.
	Inside templ.Component
	// Add is the address for creating an object on the day, AddLabel its label; empty = nothing can
	// be created.
	Add, AddLabel string
}

// MonthProps describe a month, drawn in whole weeks.
type MonthProps struct {
	Month   time.Time // midnight UTC of its first day
	Today   time.Time // midnight UTC of the date
	Caption string
	Days    []MonthDay // those of [MonthSpan], in order
}

// MonthSpan returns the first day of the week in which month begins, and the first day after the
// week in which month ends. Weeks begin on the first weekday of l.
func MonthSpan(l *i18n.Locale, month time.Time) (from, to time.Time) {
	back := (int(month.Weekday()) - int(l.FirstWeekday()) + 7) % 7
	from = month.AddDate(0, 0, -back)
	end := month.AddDate(0, 1, 0)
	ahead := (int(l.FirstWeekday()) - int(end.Weekday()) + 7) % 7
	return from, end.AddDate(0, 0, ahead)
}

// ParseMonth reads "2026-11"; for any other text it returns the month of today.
func ParseMonth(s string, today time.Time) time.Time {
	t, err := time.Parse("2006-01", s)
	if err != nil || t.Year() < 2000 || t.Year() > 2999 {
		return time.Date(today.Year(), today.Month(), 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}

// weeks divides the days of the month's weeks into weeks.
func (p MonthProps) weeks(l *i18n.Locale) [][]MonthDay {
	from, to := MonthSpan(l, p.Month)
	var list [][]MonthDay
	for _, d := range p.Days {
		if d.Date.Before(from) || !d.Date.Before(to) {
			continue
		}
		if len(list) == 0 || len(list[len(list)-1]) == 7 {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], d)
	}
	return list
}

func (p MonthProps) outside(d MonthDay) bool { return d.Date.Month() != p.Month.Month() }

// MonthNavProps lead from a month to others.
type MonthNavProps struct {
	Month           time.Time
	Prev, Next, Now string
	// Shown is true while Now is the month that is shown.
	Shown bool
}
