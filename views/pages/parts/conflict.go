package parts

import (
	"context"
	"sort"
	"strconv"

	"dropbell/views/ui"
)

func (p Conflict) lead(ctx context.Context) string {
	if p.Who == "" {
		return ui.T(ctx, "conflict.lead")
	}
	return ui.T(ctx, "conflict.lead_who", p.Who)
}

// numerals are the fields whose whole numbers are shown with separators, as on the pages of stored
// objects.
var numerals = map[string]bool{"stock": true, "per_user_limit": true, "household_limit": true, "rate_per_second": true, "approval_above": true, "per_day": true, "per_week": true}

// compared is a field's value as it is compared: with separators where it is a number.
func compared(ctx context.Context, name, value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && numerals[name] {
		return ui.Num(ctx, n)
	}
	return OrDash(value)
}

// lines are the fields in which both versions differ.
func (p Conflict) lines() []changeLine {
	var list []changeLine
	for name, mine := range p.Mine.Typed() {
		if theirs := p.Theirs[name]; theirs != mine {
			list = append(list, changeLine{name: name, before: theirs, after: mine})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].name < list[j].name })
	return list
}

// hidden sends the typed values again, now based on the current version.
func (p Conflict) hidden() [][2]string {
	list := [][2]string{{"version", ID(p.Version)}}
	for name, value := range p.Mine.Typed() {
		list = append(list, [2]string{name, value})
	}
	sort.Slice(list[1:], func(i, j int) bool { return list[i+1][0] < list[j+1][0] })
	return list
}
