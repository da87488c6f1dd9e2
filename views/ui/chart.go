package ui

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// HeatLevels is the number of shades of a heat map, not counting the shade for 0.
const HeatLevels = 7

// heat returns the shade of n; most has the darkest shade. Shades follow the square root, so that
// small numbers next to a huge number still differ.
func heat(n, most int64) string {
	if n <= 0 || most <= 0 {
		return "heat-0"
	}
	level := int(math.Ceil(math.Sqrt(float64(n)/float64(most)) * HeatLevels))
	return fmt.Sprintf("heat-%d", min(level, HeatLevels))
}

// Heat is the class of a cell that holds n where the fullest holds most.
func Heat(n, most int64) string { return heat(n, most) }

// Peak is the highest number booked in any cell.
func Peak(rows []reminder.Row) int64 {
	var most int64
	for _, r := range rows {
		for _, c := range r.Cells {
			most = max(most, c.Booked, c.Reserved)
		}
	}
	return most
}

// SlotKey identifies a slot of a drop: "12", and its further rounds "12-1" and so on. A slot for some
// doors has their bits too: "12d3".
func SlotKey(s reminder.Slot) string {
	key := strconv.Itoa(int(s.Slot))
	if s.Doors != template.AllDoors {
		key += fmt.Sprintf("d%d", s.Doors)
	}
	if s.Round > 0 {
		key += fmt.Sprintf("-%d", s.Round)
	}
	return key
}

// SlotRound says that the slot is a further round of the slot above it, and its number if there are
// several further rounds; "" for a first round.
func SlotRound(ctx context.Context, s reminder.Slot) string {
	switch s.Round {
	case 0:
		return ""
	case 1:
		return T(ctx, "slot.again")
	}
	return T(ctx, "slot.again_nth", s.Round)
}

// SlotDoors names the doors that a slot is for by their places; "" = all customers.
func SlotDoors(ctx context.Context, s reminder.Slot) string {
	if places := doorPlaces(s); places != "" {
		return T(ctx, "slot.doors", places)
	}
	return ""
}

// doorByDoor returns the slots of the door that opens first before the others.
func doorByDoor(rows []reminder.Row) []reminder.Row {
	return slices.SortedStableFunc(slices.Values(rows), func(a, b reminder.Row) int { return cmp.Or(a.OpensAt.Compare(b.OpensAt), a.DueAt.Compare(b.DueAt)) })
}

// DoorsOpen names the doors that a slot is for with their opening.
func DoorsOpen(ctx context.Context, s reminder.Slot, zone *time.Location) string {
	return T(ctx, "slot.doors_open", doorPlaces(s), From(ctx).Locale.Clock(s.OpensAt, zone))
}

func doorPlaces(s reminder.Slot) string {
	var places []string
	for place := 1; place <= template.MaxDoors; place++ {
		if s.Doors != template.AllDoors && s.Doors.Has(place) {
			places = append(places, strconv.Itoa(place))
		}
	}
	return strings.Join(places, ", ")
}

// A part is one colour of a bar, in thousandths of its length.
type part struct {
	class    string
	from, to float64
	n        int64
}

// parts divides a bar. A part above zero is at least visible.
func parts(c delivery.Counts, t feedback.Tally) []part {
	total := float64(max(1, c.Reserved))
	list := []part{}
	at := 0.0
	for _, p := range []struct {
		class string
		n     int64
	}{{"delivered", t.Delivered}, {"sent", t.Unconfirmed(c.Sent)}, {"bounced", t.Bounced}, {"inflight", c.InFlight}, {"heldout", c.HeldOut}, {"skipped", c.Skipped - c.HeldOut}, {"expired", c.Expired}, {"dead", c.Dead}} {
		if p.n <= 0 {
			continue
		}
		width := max(8, 1000*float64(p.n)/total)
		list = append(list, part{p.class, at, at + width, p.n})
		at += width
	}
	if at > 1000 { // the least widths made it too long
		for i := range list {
			list[i].from, list[i].to = list[i].from/at*1000, list[i].to/at*1000
		}
	}
	return list
}

func num(f float64) string { return fmt.Sprintf("%.1f", f) }

// UnsentWords are the outcomes of the recipients to whom nothing is sent yet, with their numbers.
func UnsentWords(ctx context.Context, c delivery.Counts) (words []string) {
	for _, p := range []struct {
		key string
		n   int64
	}{{"bar.in_flight", c.InFlight}, {"bar.held_out", c.HeldOut}, {"bar.skipped", c.Skipped - c.HeldOut}, {"bar.expired", c.Expired}, {"bar.dead", c.Dead}} {
		if p.n > 0 {
			words = append(words, T(ctx, p.key, p.n))
		}
	}
	return words
}

// barText describes the bar in words.
func barText(ctx context.Context, c delivery.Counts, t feedback.Tally) string {
	l := From(ctx).Locale
	words := append([]string{l.T("bar.sent", c.Sent, l.Percent(c.Sent, c.Reserved))}, UnsentWords(ctx, c)...)
	if text := ReportedText(ctx, t, c.Sent); text != "" {
		words = append(words, text)
	}
	return strings.Join(words, l.T("ui.list_join"))
}

// The growth chart's inner size, in units of its view box.
const (
	chartWidth  = 600.0
	chartHeight = 160.0
)

func most(points []reminder.Growth) int64 {
	var n int64
	for _, p := range points {
		n = max(n, p.Booked)
	}
	return n
}

// sampled returns at most n of the points, always with the last point, for the table next to the
// curve.
func sampled(points []reminder.Growth, n int) []reminder.Growth {
	if len(points) <= n {
		return points
	}
	out := make([]reminder.Growth, 0, n)
	for i := range n {
		out = append(out, points[(i+1)*len(points)/n-1])
	}
	return out
}

// StandingTone is the colour of the outcome of a slot.
func StandingTone(s reminder.Standing) Tone {
	switch s {
	case reminder.Overdue:
		return Bad
	case reminder.FellAway, reminder.Unreached, reminder.Incomplete:
		return Warn
	case reminder.Reminded:
		return Good
	case reminder.Standing(reminder.Firing), reminder.Standing(reminder.Sending):
		return Info
	}
	return Neutral
}

// StandingText describes the outcome of a slot.
func StandingText(ctx context.Context, s reminder.Standing) string {
	return T(ctx, "slot."+string(s))
}
