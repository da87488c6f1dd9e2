package staff

import (
	"time"

	"dropbell/domain/fault"
)

// DraftsKept is how long a deleted draft can be restored.
const DraftsKept = 30 * 24 * time.Hour

// ErrTooLate refuses to undo a change: the message says why.
var ErrTooLate = fault.New(fault.Conflict, "too_late_to_undo", "this can no longer be undone; make the change by hand")

// An Undone is the result of undoing a change.
type Undone int

const (
	// Undid says that the change was undone.
	Undid Undone = iota + 1
	// UndidBefore: the change was undone before. The form was sent twice.
	UndidBefore
)

// A DeletedDraft is a draft of a drop or campaign that was deleted and can be
// restored for [DraftsKept] from then on.
type DeletedDraft struct {
	ID   int64
	Shop int64 // 0 = belongs to no shop
	Name string
	At   time.Time
	By   string // as in the audit log
}

// Until is when the draft can no longer be restored.
func (d DeletedDraft) Until() time.Time { return d.At.Add(DraftsKept) }
