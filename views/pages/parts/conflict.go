package parts

import (
	"context"
	"sort"

	"dropbell/views/ui"
)

func (p Conflict) lead(ctx context.Context) string {
	if p.Who == "" {
		return ui.T(ctx, "conflict.lead")
	}
	return ui.T(ctx, "conflict.lead_who", p.Who)
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
