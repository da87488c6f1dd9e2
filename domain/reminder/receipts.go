package reminder

import (
	"context"
	"io"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// ErrNoSlot is returned when there is no such slot.
var ErrNoSlot = fault.New(fault.NotFound, "slot_not_found", "there is no such slot, or its drop is archived: its recipients were removed after their retention, and the figures are on the drop's page")

// ReceiptStore reads the data of receipts.
type ReceiptStore interface {
	// ReceiptHead returns [ErrNoSlot] if there is none.
	ReceiptHead(ctx context.Context, slotID int64) (ReceiptHead, error)
	// Receipt writes the slot's receipt, see [ReceiptWriter], as of one instant. It holds at most
	// one batch in memory. It returns [ErrNoSlot] before anything is written.
	Receipt(ctx context.Context, slotID int64, w io.Writer) error
}

// Receipts holds the use cases around the receipt of a slot, the list of all its recipients with
// their outcomes.
type Receipts struct{ Store ReceiptStore }

// Head returns the head of the receipt, or [ErrNoSlot], or [staff.ErrForbidden].
func (s *Receipts) Head(ctx context.Context, by staff.Actor, slotID int64) (ReceiptHead, error) {
	h, err := s.Store.ReceiptHead(ctx, slotID)
	if err != nil {
		return h, err
	}
	return h, by.May(staff.View, h.ShopNumber)
}

// Write writes the receipt to w. The errors of Head are returned before the first byte is
// written. A receipt without its last line, the digest, is incomplete.
func (s *Receipts) Write(ctx context.Context, by staff.Actor, slotID int64, w io.Writer) error {
	if _, err := s.Head(ctx, by, slotID); err != nil {
		return err
	}
	return s.Store.Receipt(ctx, slotID, w)
}
