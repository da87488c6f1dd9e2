package template

import "time"

// Slots is how many reminder slots precede an opening.
const Slots = 12

// SlotMinutes is the distance between two slots in minutes, SlotStep as a duration.
const (
	SlotMinutes = 5
	SlotStep    = SlotMinutes * time.Minute
)

// Slot is a place before the opening: slot k is k·[SlotMinutes] ahead, 1…[Slots].
type Slot int

// SlotOfMinutes returns the slot at minutes before the opening. It returns false unless minutes
// is one of 5, 10, …, 60.
func SlotOfMinutes(minutes int) (Slot, bool) {
	if minutes%SlotMinutes != 0 || minutes < SlotMinutes || minutes > Slots*SlotMinutes {
		return 0, false
	}
	return Slot(minutes / SlotMinutes), true
}

// Minutes returns how many minutes before the opening s lies.
func (s Slot) Minutes() int { return int(s) * SlotMinutes }

// DueAt returns the instant at which s's reminders are due.
func (s Slot) DueAt(opensAt time.Time) time.Time { return opensAt.Add(-time.Duration(s) * SlotStep) }

// AllSlots returns 1…[Slots].
func AllSlots() []Slot {
	all := make([]Slot, Slots)
	for i := range all {
		all[i] = Slot(i + 1)
	}
	return all
}
