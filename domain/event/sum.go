package event

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// SumReservations merges list into one event for each minute, since bookings are
// counted by minute, with one entry for each template and set of reminders. Fewer
// events need fewer transactions.
func SumReservations(list []Reservations) (sums []Reservations) {
	type key struct{ template, bits int64 }
	type cells map[key]int64
	type minute struct {
		at             time.Time // the latest of its events
		added, removed cells
	}
	minutes := map[int64]*minute{}
	for _, e := range list {
		m := minutes[e.At.Unix()/60]
		if m == nil {
			m = &minute{added: cells{}, removed: cells{}}
			minutes[e.At.Unix()/60] = m
		}
		if e.At.After(m.at) {
			m.at = e.At
		}
		for _, b := range e.Added {
			m.added[key{b.TemplateID, b.Bits}] += b.Users
		}
		for _, b := range e.Removed {
			m.removed[key{b.TemplateID, b.Bits}] += b.Users
		}
	}
	bookings := func(c cells) (list []Booking) {
		byKey := func(a, b key) int { return cmp.Or(cmp.Compare(a.template, b.template), cmp.Compare(a.bits, b.bits)) }
		for _, k := range slices.SortedFunc(maps.Keys(c), byKey) {
			list = append(list, Booking{TemplateID: k.template, Bits: k.bits, Users: c[k]})
		}
		return list
	}
	for _, at := range slices.Sorted(maps.Keys(minutes)) {
		m := minutes[at]
		sums = append(sums, Reservations{At: m.at, Added: bookings(m.added), Removed: bookings(m.removed)})
	}
	return sums
}
