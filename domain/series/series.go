package series

import (
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Limits of series.
const (
	MaxName   = 60
	MaxSeries = 100 // of a shop that have not ended
	// Ahead is how many drops of a series that have not opened exist at any time.
	Ahead = 4
)

// State is the state of a series.
type State string

// The states. A paused series creates and changes no drops until it is resumed; an ended one never again.
// The drops that exist stay as they are.
const (
	Active State = "active"
	Paused State = "paused"
	Ended  State = "ended"
)

// Faults of this room.
var (
	ErrNotFound   = fault.New(fault.NotFound, "series_not_found", "there is no such series; check its id")
	ErrTooMany    = fault.New(fault.Conflict, "too_many_series", "the shop has too many series; end one first")
	ErrTransition = fault.New(fault.Conflict, "series_state", "the state of the series does not allow this; load the page again")
	ErrOver       = fault.New(fault.Conflict, "series_ended", "this series has ended; reserve its drops one by one")
	// ErrLeft is the note about a published drop on a day that the series no longer has.
	ErrLeft = fault.New(fault.Conflict, "series_day_gone", "the series has no drop on this day any more, and this one is published; cancel it if it is not wanted")
)

// A Spec is the part of a series that staff decide.
type Spec struct {
	Name       string
	ShopNumber int64
	Recurrence
	// Clock is when the drops open, on the clocks of the shop; see [Opening].
	Clock Clock
	// SkipsHolidays says that the holidays of the shop have no drop.
	SkipsHolidays bool
	// Publishes says that drops are published as soon as they are created; otherwise they are drafts.
	Publishes bool
	// Drop are the settings of the drops. Closing and expiry are as far from the opening as here.
	Drop template.Spec
}

// A Series is a spec with a life.
type Series struct {
	ID int64
	Spec
	ShopName, ShopTimezone string
	// Holidays are the holidays of the shop.
	Holidays  []Day
	State     State
	Version   int64
	CreatedAt time.Time
}

// Zone returns the time zone of the shop, UTC if it is unknown.
func (s Series) Zone() *time.Location { return template.Template{ShopTimezone: s.ShopTimezone}.Zone() }

// without are the days that have no drop although the recurrence has them.
func (s Series) without() []Day {
	if s.SkipsHolidays {
		return s.Holidays
	}
	return nil
}

// Upcoming returns up to n days whose drops open after now.
func (s Series) Upcoming(now time.Time, n int) []Day {
	days := s.Days(DayOf(now.In(s.Zone())), s.without(), n+1)
	if len(days) > 0 && !s.OpensOn(days[0]).After(now) {
		days = days[1:]
	}
	return days[:min(n, len(days))]
}

// OpensOn returns when the drop of the day opens.
func (s Series) OpensOn(d Day) time.Time { return Opening(d, s.Clock, s.Zone()) }

// DropOn returns the settings of the drop of the day.
func (s Series) DropOn(d Day) template.Spec {
	t := template.Model{Drop: template.Template{Spec: s.Drop}}.Opening(s.OpensOn(d))
	t.ShopNumber = s.ShopNumber
	return t.Spec.WithNotices(t.NotifyDays, t.NotifyOver)
}

// check returns a [fault.Fields] that names the broken rules. zone is the time zone of the shop.
func (s Spec) check(zone string) error {
	e := &fault.Fields{}
	if n := utf8.RuneCountInString(s.Name); n == 0 {
		e.Add("name", "rule.required", "is required")
	} else if n > MaxName || strings.ContainsAny(s.Name, "\n\r") {
		e.Add("name", "rule.series_name", "must be one line of at most %d characters", MaxName)
	}
	if s.Clock < 0 || s.Clock >= 24*3600 {
		e.Add("clock", "rule.series_clock", "must be a time of day, such as 20:00")
	}
	s.checkDays(e, zone)
	return e.Err()
}

// checkDays checks the days and, if they are accepted, the drop of the first day.
func (s Spec) checkDays(e *fault.Fields, zone string) {
	before := len(e.List)
	s.Recurrence.check(e)
	if len(e.List) > before {
		return
	}
	first := Series{Spec: s, ShopTimezone: zone}.DropOn(s.Days(s.Starts, nil, 1)[0])
	if err := first.Check(); err != nil {
		e.Add("model", "rule.series_drop", "has settings that a new drop may not have (%s)", err)
	}
}

// An OccurrenceState is how far the drop of a day is.
type OccurrenceState string

// The states: the day is planned, its drop is created, the series has published it if it should, or the day
// was taken out of the series again before its drop was published.
const (
	Planned OccurrenceState = "planned"
	Created OccurrenceState = "created"
	Kept    OccurrenceState = "kept"
	Removed OccurrenceState = "removed"
)

// An Occurrence is a day of a series with its drop. A day has one.
type Occurrence struct {
	SeriesID int64
	Day      Day
	// Try counts how often the day was planned: a day that was removed may come back.
	Try        int
	State      OccurrenceState
	TemplateID int64 // 0 = the drop is not created yet
	// Given are the settings that the series gave the drop last. A drop with other settings was changed by
	// staff, and stays as staff made it.
	Given template.Spec
	// Version is the version of the series that was applied last.
	Version int64
	// Why is why the series could not create, change or publish the drop; nil = it could.
	Why *fault.Fault
	// Reminded is how many users got reminders of the drop by a standing reservation; -1 = these are not
	// copied yet.
	Reminded int64
}

// Listed is an occurrence with its drop as it is now.
type Listed struct {
	Occurrence
	Name    string
	OpensAt time.Time
	// Drop is the state of the drop without its clock, see [template.Template.Stored]; "" = it was deleted,
	// or is not created yet.
	Drop template.State
}

// entry is the line of the audit log about a step.
func (s Series) entry(by staff.Actor, action, reason string, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: action, ObjectKind: "series", ObjectID: idText(s.ID), ShopNumber: s.ShopNumber, Reason: reason, Before: before, After: after}
}

// shown are the settings as the audit log keeps them.
func (s Spec) shown() map[string]any {
	return map[string]any{"name": s.Name, "rrule": s.Rule, "starts": s.Starts, "clock": s.Clock.String(), "skips": s.Skips,
		"skip_holidays": s.SkipsHolidays, "publish": s.Publishes, "drop": s.Drop}
}
