package coupon

import (
	"time"

	"dropbell/domain/money"
	"dropbell/domain/user"
)

// A Share is what the coupon takes off an order with several coupons. The cart computes it, since it
// depends on the other coupons.
type Share struct {
	Eligible, Off money.Amount
}

// LockTogether returns the request to lock the coupon of the owner for an order with several coupons. If the order
// holds the coupon already, its discount is replaced and its lock lasts anew. The request is to be decided by
// [Request.Decide] and stored together with the order's other requests.
func LockTogether(id int64, by string, o Order, share Share, lasting time.Duration) Request {
	return Request{CouponID: id, OrderID: o.ID, Step: StepLock, By: by, owner: o.UserID, rule: func(c Case) (Move, *refusal) {
		if c.Coupon.heldBy(o.ID) && c.Coupon.State == Locked {
			return c.revised(o, share, lasting), nil
		}
		if _, ok := c.did(StepLock); ok {
			return Move{}, refuse(RefusedEnded, "this order's lock of the coupon has ended; use a new order id to lock it again")
		}
		m, r := c.available(lasting)
		if r != nil {
			return Move{}, r
		}
		return c.held(m, o, share.Eligible, share.Off), nil
	}}
}

// revised replaces what the coupon takes off the order that holds it.
func (c Case) revised(o Order, share Share, lasting time.Duration) Move {
	m := Move{From: c.Coupon, To: c.Coupon, LockFor: lasting}
	m.To.Discount = share.Off
	op := c.op(StepLock, o.ID, m.To)
	op.OrderAmount, op.Eligible, op.Discount = o.Amount, share.Eligible, share.Off
	m.Revises = &op
	return m
}

// Together returns a later step of a coupon of the owner (0 = of any) for an order with several coupons, to be decided
// and stored as with [LockTogether]. The step is [StepConfirm], [StepRelease] or [StepRefund].
func Together(step Step, id int64, by, order string, owner user.ID) Request {
	return Request{CouponID: id, OrderID: order, Step: step, By: by, owner: owner, rule: func(c Case) (Move, *refusal) {
		switch step {
		case StepConfirm:
			return c.confirm(order)
		case StepRelease:
			return c.release(order)
		}
		return c.refund(order)
	}}
}

// RefundToStock is [Together] for a refund whose coupon goes back to the stock: it is revoked. A coupon whose time
// has passed meanwhile is expired instead.
func RefundToStock(id int64, by, order string, owner user.ID) Request {
	return Request{CouponID: id, OrderID: order, Step: StepRefund, By: by, owner: owner, rule: func(c Case) (Move, *refusal) {
		m, r := c.refund(order)
		if r != nil || len(m.Ops) == 0 || m.To.State != Unused {
			return m, r
		}
		c.Coupon = m.To
		back, err := c.revoke(true)
		if err != nil {
			return Move{}, &refusal{RefusedRevoked, err}
		}
		m.To, m.Ops, m.ToStock = back.To, append(m.Ops, back.Ops...), true
		return m, nil
	}}
}

// Holds reports whether the order holds or has used the coupon.
func (c Coupon) Holds(order string) bool { return c.heldBy(order) }
