package coupon

import (
	"context"
	"errors"
)

// ReasonUnused is the reason of a coupon that was revoked since it was not used in time.
const ReasonUnused = "the coupon was not used in time"

// ReturnStore returns coupons to the stock: unused coupons of drops with use_within_hours, and coupons whose
// orders were refunded.
type ReturnStore interface {
	// DueReturns returns templates after the given one, in order, with coupons that are due to return.
	DueReturns(ctx context.Context, after int64, limit int) ([]int64, error)
	// ReturnDue returns up to limit due coupons of the template in one transaction, and drops those that
	// are not to return: they were used, or the drop gives no more coupons. A coupon that an order holds,
	// or that is under review, stays for later. decide is called for each coupon. more reports whether
	// further coupons may be due.
	ReturnDue(ctx context.Context, templateID int64, limit int, decide func(DueReturn) Return) (n int, more bool, err error)
}

// A DueReturn is a coupon that is due to return to the stock.
type DueReturn struct {
	Case
	// Refunded is set if its order was refunded.
	Refunded bool
	// Confirmed is set if an order has used it.
	Confirmed bool
	// Over is set if the drop gives no more coupons.
	Over bool
}

// Return says what becomes of a due coupon.
type Return struct {
	// Move revokes the coupon; it has no operations if the coupon was revoked before.
	Move Move
	// ToStock returns it to the stock.
	ToStock bool
	// Later keeps it due.
	Later bool
}

// Decide returns what becomes of the coupon.
func (d DueReturn) Decide() Return {
	c := d.Coupon
	switch {
	case d.Refunded:
		return Return{ToStock: c.State == Revoked && !c.Returned}
	case d.Over || d.Confirmed:
		return Return{}
	case c.State == Locked || c.State == Suspended:
		return Return{Later: true}
	}
	m, err := d.revoke(true)
	if err != nil || len(m.Ops) == 0 {
		return Return{}
	}
	return Return{Move: m.Because("system", ReasonUnused), ToStock: true}
}

// A Returner returns coupons to the stock. Any number of processes may run one, and it may stop and begin anew at
// any point.
type Returner struct{ Store ReturnStore }

const (
	returnsAtOnce = 200 // the template's claims wait for the transaction
	returnsPage   = 100
	returnsTurn   = 20 // transactions of a template before the next template's turn
)

// Sweep returns all coupons that are due. After a failure it goes on with the next template.
func (r *Returner) Sweep(ctx context.Context) error {
	var errs []error
	for after := int64(0); ctx.Err() == nil; {
		ids, err := r.Store.DueReturns(ctx, after, returnsPage)
		if err != nil || len(ids) == 0 {
			return errors.Join(append(errs, err)...)
		}
		for _, id := range ids {
			for range returnsTurn {
				_, more, err := r.Store.ReturnDue(ctx, id, returnsAtOnce, DueReturn.Decide)
				errs = append(errs, err)
				if !more || err != nil || ctx.Err() != nil {
					break
				}
			}
		}
		after = ids[len(ids)-1]
	}
	return errors.Join(append(errs, ctx.Err())...)
}
