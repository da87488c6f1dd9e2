package template

import "time"

// Slots is how many reminder slots precede an opening.
const Slots = 12

// SlotStep is the distance between two slots.
const SlotStep = 5 * time.Minute

// Slot is a place before the opening: slot k is k·5 minutes ahead, 1…12.
type Slot int

// SlotOfMinutes returns the slot that lies minutes before the opening, or
// false unless minutes is one of 5, 10, …, 60.
func SlotOfMinutes(minutes int) (Slot, bool) {
	if minutes%5 != 0 || minutes < 5 || minutes > 60 {
		return 0, false
	}
	return Slot(minutes / 5), true
}

// Minutes returns how many minutes before the opening s lies.
func (s Slot) Minutes() int { return int(s) * 5 }

// DueAt returns the instant at which s's reminders are due.
func (s Slot) DueAt(opensAt time.Time) time.Time { return opensAt.Add(-time.Duration(s) * SlotStep) }

// AllSlots returns 1…12.
func AllSlots() []Slot {
	all := make([]Slot, Slots)
	for i := range all {
		all[i] = Slot(i + 1)
	}
	return all
}
