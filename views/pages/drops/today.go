package drops

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// ordered returns the open drops and the drops to come. The first one leads the page: an open drop of which nearly all coupons
// are claimed, otherwise the next drop once its reminders are sent, otherwise an open drop with coupons left, otherwise the next
// drop.
func (p Overview) ordered(now time.Time) []Drop {
	all := slices.Concat(p.Open, p.Upcoming)
	last := func(d Drop) bool { return d.nearlyGone(now) }
	if slices.ContainsFunc(p.Open, last) {
		slices.SortStableFunc(all, func(a, b Drop) int { return cmp.Compare(order(last(b)), order(last(a))) })
		return all
	}
	lead := slices.IndexFunc(p.Open, func(d Drop) bool { return d.State(now) == template.Open })
	if len(p.Upcoming) > 0 && (lead < 0 || !now.Before(template.Slot(template.Slots).DueAt(p.Upcoming[0].OpensAt))) {
		lead = len(p.Open)
	}
	if lead > 0 {
		first := all[lead]
		all = slices.Insert(slices.Delete(all, lead, lead+1), 0, first)
	}
	return all
}

// nearlyGone reports whether customers claim the last twentieth of the coupons.
func (d Drop) nearlyGone(now time.Time) bool {
	return d.State(now) == template.Open && !d.OpeningMode.Drawn() && d.StockLeft()*20 < d.Stock
}

func order(first bool) int {
	if first {
		return 1
	}
	return 0
}

// acts divides the activity into the acts of staff and of the program, and the acts of API keys.
func (p Overview) acts() (others, keys []staff.Record) {
	for _, r := range p.Activity {
		if strings.HasPrefix(r.Actor, "key:") {
			keys = append(keys, r)
		} else {
			others = append(others, r)
		}
	}
	return others, keys
}

// stockNow is the number of coupons that matters after the opening, with the key of its label: the
// coupons that can be claimed, or the coupons that a draw has given.
func (d Drop) stockNow() (label string, n int64) {
	if d.OpeningMode.Drawn() {
		return "draw.given", d.Issued
	}
	return "drop.stock_left", d.StockLeft()
}

// The size of the drawing beside a drop.
const (
	sparkHeight = 24
	sparkBar    = 28
	sparkStep   = 34
	sparkWidth  = 2*sparkStep + sparkBar
)

// A stage is one number of the way from booked to claimed. full is the number of a full bar; of is the number that n is
// part of, 0 if it is not shown.
type stage struct {
	label, class, figure string
	n, full, of          int64
}

// most is the greatest number of reminders of a line. The entries of a draw may be many times as many.
func (p Overview) most() (n int64) {
	for _, d := range slices.Concat(p.Open, p.Upcoming) {
		n = max(n, d.Booked(), d.counts().Sent)
	}
	return n
}

func (d Drop) stages(most int64) []stage {
	reached := stage{"stat.sent", "bar-sent", "", d.counts().Sent, max(1, most), 0}
	claimed := "results.measure.claimed"
	if d.OpeningMode.Drawn() {
		reached.label, reached.n, claimed = "draw.entries", d.Entered, "draw.won"
		reached.full = max(reached.full, d.Entered)
	}
	list := []stage{reached, {claimed, "today-claimed", "", d.Issued, max(1, d.Stock, d.Issued), d.Stock}}
	if d.OpeningMode.Drawn() {
		return list
	}
	return slices.Insert(list, 0, stage{"stage.booked", "today-booked", "listed:" + parts.ID(d.ID) + ":booked", d.Booked(), max(1, most), 0})
}

// tall is the height of the bar. A number above 0 is visible.
func (s stage) tall() float64 {
	if s.n == 0 {
		return 0
	}
	return max(1.5, sparkHeight*float64(s.n)/float64(s.full))
}

func (s stage) height() string { return parts.Unit(s.tall()) }
func (s stage) y() string      { return parts.Unit(sparkHeight - s.tall()) }

// A moment is an instant at which a drop's page, or its line, changes its colour for a minute.
type moment struct {
	At   string `json:"at"`
	Text string `json:"text"`
}

// moments are the attributes with the instants to come: the slots with reminders, and the opening.
// A drop that is paused, over or without an opening ahead has none.
func (d Drop) moments(ctx context.Context) templ.Attributes {
	switch d.State(ui.From(ctx).Now) {
	case template.Scheduled, template.Open, template.SoldOut:
	default:
		return nil
	}
	var list []moment
	for _, r := range d.Board.Rows {
		if r.Booked() > 0 || r.Counts().Reserved > 0 {
			list = append(list, moment{ui.Machine(r.DueAt), ui.T(ctx, "moment.reminders", r.Slot.Slot.Minutes())})
		}
	}
	for i, o := range d.Doors {
		if at := d.OpensFor(i + 1); at.Before(d.OpensAt) {
			list = append(list, moment{ui.Machine(at), ui.T(ctx, "moment.door", o.Name)})
		}
	}
	opening := "moment.opening"
	switch {
	case d.OpeningMode.Drawn():
		opening = "moment.draw"
	case d.State(ui.From(ctx).Now) == template.SoldOut:
		opening = "moment.sold_out"
	}
	list = append(list, moment{ui.Machine(d.OpensAt), ui.T(ctx, opening)})
	if d.DrawAt.After(d.OpensAt) {
		list[len(list)-1].Text = ui.T(ctx, "draw.said.due", seconds(d.DrawAt, d.Zone()))
		list = append(list, moment{ui.Machine(d.DrawAt), ui.T(ctx, "moment.drawing")})
	}
	slices.SortStableFunc(list, func(a, b moment) int { return strings.Compare(a.At, b.At) }) // doors take turns
	raw, _ := json.Marshal(list)                                                              // texts
	return templ.Attributes{"data-moments": string(raw), "data-moment-of": d.Name}
}
