package drops

import (
	"context"

	"dropbell/views/ui"
)

// pairs are the parts of the filter that select something.
func (p Templates) pairs() [][2]string {
	var list [][2]string
	for _, f := range [][2]string{{"q", p.Search}, {"shop", p.Shop}, {"from", p.From}, {"to", p.To}} {
		if f[1] != "" {
			list = append(list, f)
		}
	}
	for _, s := range p.States {
		list = append(list, [2]string{"state", string(s)})
	}
	return list
}

// allText contains the number of rows if the list has one page; the rows of a list with several
// pages are not counted.
func (p Templates) allText(ctx context.Context) string {
	switch {
	case p.First == "" && p.Next == "":
		return ui.N(ctx, "bulk.all_n", int64(len(p.List)))
	case p.filtered():
		return ui.T(ctx, "bulk.all_filtered")
	}
	return ui.T(ctx, "bulk.all")
}
