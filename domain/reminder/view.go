package reminder

import (
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/figure"
	"dropbell/domain/template"
)

// LateFrom returns the instant from which the slot is late.
func (s Slot) LateFrom() time.Time {
	if s.PlannedAt.After(s.DueAt) {
		return s.PlannedAt
	}
	return s.DueAt
}

// FiredLate returns how long after the earliest possible instant the slot was fired (see
// [figure.Late]); 0 if it has not fired.
func (s Slot) FiredLate() time.Duration {
	if s.FiredAt == nil {
		return 0
	}
	return figure.Late(s.LateFrom(), *s.FiredAt)
}

// overdueAfter is how late a slot may fire before the console shows it as overdue. Timers alone
// may cause a delay of a few seconds.
const overdueAfter = 5 * time.Second

// Overdue reports whether the slot should have fired by now and has not.
func (s Slot) Overdue(now time.Time) bool {
	return s.State == Waiting && now.Sub(s.LateFrom()) > overdueAfter
}

// Upcoming reports whether the slot waits for an instant in the future. After a move of the
// opening, waiting slots may already be due.
func (s Slot) Upcoming(now time.Time) bool { return s.State == Waiting && s.DueAt.After(now) }

// SlotState is where a slot is between waiting and finished.
type SlotState string

// The states of a slot. A slot belongs to one due instant: moving the opening
// makes new slots.
const (
	Waiting   SlotState = "waiting"
	Firing    SlotState = "firing"    // batches are being cut
	Sending   SlotState = "sending"   // all batches are stored
	Finished  SlotState = "finished"  // each recipient has an outcome
	Passed    SlotState = "passed"    // was due before the template was published
	Moved     SlotState = "moved"     // the opening moved before it was due
	SlotEnded SlotState = "cancelled" // the template ended before it was due
)

// A Slot is one due instant of one template.
type Slot struct {
	ID         int64
	TemplateID int64
	Slot       template.Slot
	OpensAt    time.Time
	DueAt      time.Time
	// PlannedAt is later than DueAt if the opening was moved so near that the slot was already
	// due when it was created. Zero = DueAt.
	PlannedAt time.Time
	// Round is positive if the opening was moved away after the slot had fired, and back again.
	// The slot is then for users whom its earlier rounds did not reach.
	Round      int
	State      SlotState
	StopReason string
	FiredAt    *time.Time
	CutAt      *time.Time
	FinishedAt *time.Time
	// Doors are the doors whose users the slot is for; [template.AllDoors] = all users of the drop.
	Doors template.DoorSet
}

// A Cell is one channel of a slot: the number of users who have booked it now and, once the slot
// has fired, the outcomes of its recipients.
type Cell struct {
	Channel delivery.Channel
	Booked  int64
	delivery.Counts
	// Reported counts the messages among Sent on which the provider has reported.
	Reported feedback.Tally
}

// A Row is a slot with its cells in channel order.
type Row struct {
	Slot
	Cells [delivery.Channels]Cell
}

// Item is one reminder of a user, as the API shows it to the user.
type Item struct {
	Reminder
	DueAt time.Time
	// State is "waiting", "due" (being delivered) or a [delivery.Outcome].
	State string
	// Reason explains an outcome other than sent.
	Reason string
}

// View is a reservation as the API shows it to its user. The reminder farthest from the opening
// comes first.
type View struct {
	Reservation
	ShopNumber   int64
	TemplateName string
	OpensAt      time.Time
	Items        []Item
}

// Delivered is one outcome of one user, found by one indexed read.
type Delivered struct {
	// Kind is [delivery.KindReminder] unless an announcement was delivered. For an announcement,
	// SlotID is the announcement's id, Slot is 0, and DueAt and FiredAt are the instant of its
	// creation.
	Kind       delivery.Kind
	SlotID     int64
	TemplateID int64
	Slot       template.Slot
	OpensAt    time.Time
	DueAt      time.Time
	FiredAt    time.Time
	Channel    delivery.Channel
	BatchID    int64
	Outcome    delivery.Outcome
	Reason     string
	Detail     string
	Provider   string // that answered last, by name; empty = the environment's
	Attempts   int
	At         time.Time // when the outcome was recorded; zero while in flight
	TextsUpTo  int64     // the newest version of a text that counts for the message
	// Reported is the provider's later report on the message; the zero Report if there is none.
	Reported feedback.Report
}

// Growth is how many reminders were booked up to an instant.
type Growth struct {
	At     time.Time
	Booked int64
}
