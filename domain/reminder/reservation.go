package reminder

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Faults of reserving and cancelling.
var (
	ErrAlreadyReserved = fault.New(fault.Conflict, "already_reserved", "already reserved; leave out the reminders that errors names")
	ErrAlreadyDue      = fault.New(fault.Conflict, "already_due", "already due; choose reminders that are further from the opening")
	ErrNotReserved     = fault.New(fault.NotFound, "not_reserved", "not reserved; leave out the reminders that errors names")
)

// A Reservation is every reminder one user has for one template.
type Reservation struct {
	TemplateID int64
	UserID     user.ID
	Slots      Bitmap
	// Consents are the consents to the messages of push reminders that are not used up.
	Consents  Consents
	CreatedAt time.Time
	UpdatedAt time.Time
}

// A Refusal is a fault and the requested reminders that cause it. It unwraps to the fault.
type Refusal struct {
	Fault     *fault.Fault
	Offending []Reminder
	// Also, if set, has the reminders that cause another fault.
	Also *Refusal
}

func (r *Refusal) Error() string {
	names := make([]string, len(r.Offending))
	for i, o := range r.Offending {
		names[i] = fmt.Sprintf("%s %d minutes", o.Channel, o.Slot.Minutes())
	}
	text := r.Cause() + ": " + strings.Join(names, ", ")
	if r.Also != nil {
		text += "; " + r.Also.Error()
	}
	return text
}

// Cause returns the first clause of the fault's text, without the advice to the caller: the error
// that each of the offending reminders has.
func (r *Refusal) Cause() string {
	what, _, _ := strings.Cut(r.Fault.Text, "; ")
	return what
}

// Unwrap returns the fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// refuse returns a Refusal for the reminders in b, or nil if there are none.
func refuse(f *fault.Fault, b Bitmap) error {
	if b.IsEmpty() {
		return nil
	}
	return &Refusal{Fault: f, Offending: b.Reminders()}
}

// refuseBoth is refuse for two faults; the first is the fault of the Refusal.
func refuseBoth(first *fault.Fault, a Bitmap, second *fault.Fault, b Bitmap) error {
	if a.IsEmpty() || b.IsEmpty() {
		return cmp.Or(refuse(first, a), refuse(second, b))
	}
	return &Refusal{first, a.Reminders(), &Refusal{Fault: second, Offending: b.Reminders()}}
}

// Decision is the state that the store found when it tried to apply a change. It is read in one
// statement, by the database's clock.
type Decision struct {
	// Applied says that the change is committed. After is the row after the change (empty = the
	// row is gone), and Created says whether the row is new.
	Applied bool
	Created bool
	After   Bitmap
	// Before is the row that the statement found; Open are the reminders whose slots were waiting
	// and not due. Both mean something only if Applied is false.
	Before Bitmap
	Open   Bitmap
	// Opened says that the opening itself had passed.
	Opened bool
	// Repeated says that the idempotency key of the change was known: nothing was decided or
	// changed, and the other fields mean nothing.
	Repeated bool
}

// reserveError explains a decision that refused to add asked.
func (v Decision) reserveError(asked Bitmap) error {
	if v.Opened {
		return template.ErrOpened
	}
	if err := refuseBoth(ErrAlreadyDue, asked.Without(v.Open), ErrAlreadyReserved, asked.Intersect(v.Before)); err != nil {
		return err
	}
	// The row changed between the refusal and its reading.
	return refuse(ErrAlreadyReserved, asked)
}

// cancelError explains a decision that refused to remove asked. An empty asked means all
// reminders that can still be cancelled.
func (v Decision) cancelError(asked Bitmap) error {
	if v.Before.IsEmpty() {
		return ErrNotReserved.Because("nothing is reserved for this template; list the reservations to see what is")
	}
	if asked.IsEmpty() {
		return refuse(ErrAlreadyDue, v.Before)
	}
	due := asked.Intersect(v.Before).Without(v.Open)
	if err := refuseBoth(ErrNotReserved, asked.Without(v.Before), ErrAlreadyDue, due); err != nil {
		return err
	}
	// The row changed between the refusal and its reading.
	return refuse(ErrNotReserved, asked)
}

// possibleError explains a decision that found no reminder of asked to remove.
func (v Decision) possibleError(asked Bitmap) error {
	if err := refuse(ErrAlreadyDue, v.Before.Intersect(asked)); err != nil {
		return err
	}
	return ErrNotReserved.Because("nothing of this is reserved for this template; read the reservation to see what is")
}
