package pgtest

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// CutSlot fires slot k in batches of at most size users.
func (w *Fixture) CutSlot(t template.Template, k template.Slot, size int) reminder.Slot {
	w.Helper()
	sl := w.DueNow(t, k)
	w.Cut(sl, size)
	return sl
}

// Cut fires a slot that is due in batches of at most size users.
func (w *Fixture) Cut(sl reminder.Slot, size int) {
	w.Helper()
	cut, err := w.Slots.BeginFiring(w.Context(), sl.ID, time.Minute)
	w.Must(err)
	due, err := w.Slots.ReadDue(w.Context(), cut, delivery.Range{From: 1, To: 1 << 40})
	w.Must(err)
	var found [delivery.Channels]int64
	for c, ids := range due {
		found[c] = int64(len(ids))
		for _, part := range delivery.CutIntoBatches(ids, nil, size) {
			_, err := w.Slots.StoreBatches(w.Context(), cut, []reminder.NewBatch{{Channel: delivery.Channel(c), Users: part}})
			w.Must(err)
		}
	}
	w.Must(w.Slots.EndFiring(w.Context(), cut, found))
}
