package shell

import (
	"strings"
	"time"

	"dropbell/domain/fault"
	pageparts "dropbell/views/pages/parts"
)

// localLayouts are the formats in which browsers send <input type="datetime-local">.
func localLayouts() []string {
	return []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}
}

// The choice between the two instants of a local time that occurs twice.
const (
	// FirstTime is the earlier instant, in summer time.
	FirstTime = "first"
	// secondTime is the later instant.
	secondTime = "second"
)

// Instant reads a local time typed for zone. If the local time occurs twice because clocks are set
// back, fold selects the instant. On failure it returns the key of the broken rule.
func Instant(text, fold string, zone *time.Location) (at time.Time, broken string) {
	wall, ok := parseWall(text)
	if !ok {
		return at, "rule.time_format"
	}
	early, late := meanings(wall, zone)
	switch {
	case len(early) == 0 && len(late) == 0:
		return at, "rule.time_gap"
	case len(late) == 0:
		return early[0], ""
	case fold == FirstTime:
		return early[0], ""
	case fold == secondTime:
		return late[0], ""
	}
	return at, pageparts.KeyTimeTwice
}

func parseWall(text string) (time.Time, bool) {
	for _, layout := range localLayouts() {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// meanings returns the instants at which clocks in zone show wall: none if clocks skip it, two if
// clocks repeat it. Only the zone offsets one day before and one day after wall are possible.
func meanings(wall time.Time, zone *time.Location) (early, late []time.Time) {
	var found []time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(around).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second)
		same := at.In(zone).Format(time.DateTime) == wall.Format(time.DateTime)
		if same && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	if len(found) < 2 {
		return found, nil
	}
	if found[1].Before(found[0]) {
		found[0], found[1] = found[1], found[0]
	}
	return found[:1], found[1:]
}

// TypedTime returns t in the format in which it is typed in zone. fold says which of two equal
// local times t is.
func TypedTime(t time.Time, zone *time.Location) (text, fold string) {
	local := t.In(zone)
	text = local.Format("2006-01-02T15:04")
	if local.Second() != 0 {
		text = local.Format("2006-01-02T15:04:05")
	}
	wall, _ := parseWall(local.Format("2006-01-02T15:04:05"))
	early, late := meanings(wall, zone)
	switch {
	case len(late) == 0:
		return text, ""
	case early[0].Equal(t):
		return text, FirstTime
	}
	return text, secondTime
}

// Day reads a date, such as "2026-11-20", as the beginning of that day in zone. It returns nil for
// an empty or impossible date.
func Day(text string, zone *time.Location) *time.Time {
	t, err := time.ParseInLocation(time.DateOnly, text, zone)
	if err != nil || t.Year() < 1970 || t.Year() > 9000 {
		return nil
	}
	return &t
}

// dayAfter is the end of a day that is still included.
func dayAfter(text string, zone *time.Location) *time.Time {
	t := Day(text, zone)
	if t == nil {
		return nil
	}
	next := t.AddDate(0, 0, 1)
	return &next
}

// TimeMessages returns the English text for a broken rule of a typed time.
func TimeMessages(broken string) string {
	return map[string]string{
		"rule.required_amount": "enter an amount",
		"rule.required_number": "enter a number",
		"rule.required_time":   "enter a date and time",
		"rule.time_format":     "is not a date and time",
		"rule.time_gap":        "does not exist that day: the clocks go forward over it",
		pageparts.KeyTimeTwice: "happens twice that day, because the clocks go back: choose which one",
		"rule.number":          "must be a whole number",
		"rule.number_comma":    "has a comma where none can be",
		"rule.amount_comma":    "has a comma where none can be",
		"rule.shop_exists":     "exists already",
		"rule.date_format":     "is not a date",
		"rule.unknown_shop":    "there is no such shop",
	}[broken]
}

// breaks adds that the named field breaks a rule that only typing can break.
func breaks(e *fault.Fields, name, rule string) { e.Add(name, rule, "%s", TimeMessages(rule)) }
