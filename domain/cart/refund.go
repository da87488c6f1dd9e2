package cart

import (
	"math/bits"
	"slices"
	"strconv"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/template"
)

// A ReturnedLine is the quantity of a line that comes back.
type ReturnedLine struct {
	ID       string
	Quantity int64
}

// A Return asks for the refund of a confirmed order.
type Return struct {
	// ID names the refund within the order, so that it can be repeated. Empty for a return of all that is left.
	ID string
	// Lines are the lines that come back; none = all that is left of the order.
	Lines []ReturnedLine
	// To says who gets a coupon whose last line comes back. Empty and the holder mean what the coupon's drop says.
	To template.RefundTo
}

// wholeID names the refund of all that is left.
const wholeID = "all"

func (r Return) id() string {
	if r.ID == "" {
		return wholeID
	}
	return r.ID
}

func (r Return) check() error {
	e := &fault.Fields{}
	if r.ID != "" && coupon.CheckOrderID(r.ID) != nil {
		e.Add("refund_id", "rule.order_id", "must be 1 to %d bytes without spaces and control characters", coupon.MaxOrderID)
	}
	if r.ID == "" && len(r.Lines) > 0 {
		e.Add("refund_id", "rule.required", "is required with lines, so that a repeated refund is known")
	}
	if len(r.Lines) > MaxLines {
		e.Add("lines", "rule.too_many", "must have at most %d entries", MaxLines)
	}
	for i, l := range r.Lines {
		if l.Quantity < 1 || l.Quantity > MaxQuantity {
			e.Add("lines["+strconv.Itoa(i)+"].quantity", "rule.quantity", "must be between %d and %d", 1, MaxQuantity)
		}
		if slices.ContainsFunc(r.Lines[:i], func(o ReturnedLine) bool { return o.ID == l.ID }) {
			e.Add("lines["+strconv.Itoa(i)+"].id", "rule.line_twice", "must differ from the ids of the other lines")
		}
	}
	return e.Err()
}

// A Refund is a refund as it is stored.
type Refund struct {
	ID string
	// PayBack is what to pay back, net of the lines' discounts and of Clawback.
	PayBack money.Amount
	// Clawback is the part of the discount of the lines that stay which the customer loses, because a
	// coupon's threshold is no longer met. It was taken off PayBack.
	Clawback money.Amount
	Lines    []ReturnedLine
	// Coupons came back with this refund.
	Coupons []int64
	// Orders is 1 if this refund returned the last lines of the order, otherwise 0.
	Orders int
	// Amount is what the returned lines cost before discounts.
	Amount money.Amount
	// Uses are the discounts that the refund takes back, by coupon. Amount less all of them is PayBack.
	Uses []UseRefund
}

// A UseRefund is the part of a refund that belongs to one coupon.
type UseRefund struct {
	Coupon, TemplateID int64
	Discount           money.Amount
}

// sameLines reports whether the stored refund is of these lines, of which none means all that was left.
func (f Refund) sameLines(lines []ReturnedLine) bool {
	return len(lines) == 0 && f.Orders > 0 || slices.Equal(f.Lines, lines)
}

// refund decides the return. A repeated return is answered as the first.
func (r Return) refund(by string, s Stored) Decision {
	o := s.Order
	switch {
	case o == nil:
		return refusedFor(ErrNoOrder)
	case s.Refund != nil && !s.Refund.sameLines(r.Lines):
		return refusedFor(coupon.ErrOtherRequest.Because("the refund %s returned other lines; use a new refund_id for a new return", s.Refund.ID))
	case s.Refund != nil:
		return Decision{Order: *o, Refund: s.Refund}
	case o.State == Refunded:
		return refusedFor(coupon.ErrNotUsable.Because("all lines of the order have been returned; there is nothing left to refund"))
	case o.State != Confirmed:
		return refusedFor(coupon.ErrNotUsable.Because("the order was not confirmed; release it instead"))
	}
	after, lines, err := r.returned(*o)
	if err != nil {
		return refusedFor(err)
	}
	uses := o.effective(s.Coupons)
	requests := map[int64]coupon.Request{}
	for _, u := range uses {
		if r.To != template.RefundToNobody && !u.all(*o, o.Returned) && u.all(*o, after) {
			requests[u.Coupon] = coupon.Together(coupon.StepRefund, u.Coupon, by, o.ID, 0)
			if r.To == template.RefundToStock {
				requests[u.Coupon] = coupon.RefundToStock(u.Coupon, by, o.ID, 0)
			}
		}
	}
	d := decideAll(requests, s)
	if d.Err != nil {
		return d
	}
	back := []int64{} // in order; a coupon that was refunded by itself does not move
	for _, m := range d.Moves {
		back = append(back, m.From.ID)
	}
	due := o.due(uses, after) - o.PaidBack
	f := &Refund{ID: r.id(), PayBack: max(0, due), Lines: lines, Coupons: back}
	f.Clawback = max(0, o.net(after)-o.net(o.Returned)-f.PayBack)
	f.net(*o, uses, after)
	d.Order, d.Save, d.Refund = *o, true, f
	d.Order.Returned, d.Order.PaidBack = after, o.PaidBack+f.PayBack
	if f.Orders > 0 {
		d.Order.State = Refunded
	}
	return d
}

// net fills in what the refund takes back of the order's amount and of each coupon's discount.
func (f *Refund) net(o Order, uses []heldUse, after []int64) {
	if o.whole(after) {
		f.Orders = 1
	}
	for i, l := range o.Lines {
		f.Amount += l.part(l.Amount, after[i]) - l.part(l.Amount, o.Returned[i])
	}
	// lost is what the lines that stay lose of their discount; a part that no refund could bear yet is left out.
	lost := o.net(after) - o.net(o.Returned) - f.PayBack
	was, is := o.losses(uses, o.Returned), o.losses(uses, after)
	back := make([]money.Amount, len(uses))
	last := -1
	for n, u := range uses {
		for i, l := range o.Lines {
			back[n] += l.part(u.Shares[i], after[i]) - l.part(u.Shares[i], o.Returned[i])
		}
		back[n] += is[n] - was[n]
		if lost -= is[n] - was[n]; u.Recompute {
			last = n
		}
	}
	if last >= 0 {
		back[last] += lost
	}
	f.Uses = make([]UseRefund, 0, len(uses)) // empty is no null in the stored document
	for n, u := range uses {
		f.Uses = append(f.Uses, UseRefund{u.Coupon, u.Case.Coupon.TemplateID, back[n]})
	}
}

// returned are the quantities that came back after the return, and its lines.
func (r Return) returned(o Order) ([]int64, []ReturnedLine, error) {
	after, lines := slices.Clone(o.Returned), r.Lines
	if len(lines) == 0 {
		for i, l := range o.Lines {
			if left := l.Quantity - after[i]; left > 0 {
				lines = append(lines, ReturnedLine{l.ID, left})
			}
		}
	}
	e := &fault.Fields{}
	for n, l := range lines {
		name := "lines[" + strconv.Itoa(n) + "]."
		i := slices.IndexFunc(o.Lines, func(line Line) bool { return line.ID == l.ID })
		if i < 0 {
			e.Add(name+"id", "rule.unknown_line", "is not a line of the order")
			continue
		}
		if left := o.Lines[i].Quantity - after[i]; l.Quantity > left {
			e.Add(name+"quantity", "rule.quantity_left", "is more than the %d that the order has left of this line", left)
			continue
		}
		after[i] += l.Quantity
	}
	return after, lines, e.Err()
}

// part is the part of an amount of the line that has come back with n of its quantity. It is rounded
// down, so that the last of them brings what is left.
func (l Line) part(a money.Amount, n int64) money.Amount {
	high, low := bits.Mul64(uint64(a), uint64(n))
	part, _ := bits.Div64(high, low, uint64(l.Quantity))
	return money.Amount(part)
}

// whole reports whether all lines have come back.
func (o Order) whole(returned []int64) bool {
	for i, l := range o.Lines {
		if returned[i] < l.Quantity {
			return false
		}
	}
	return true
}

// net is what the returned quantities cost after their share of the discount.
func (o Order) net(returned []int64) (sum money.Amount) {
	for i, l := range o.Lines {
		sum += l.part(l.Amount, returned[i])
		for _, u := range o.Uses {
			sum -= l.part(u.Shares[i], returned[i])
		}
	}
	return sum
}

// A heldUse is a use of an order with its coupon.
type heldUse struct {
	Use
	Held
}

// effective returns the uses in the order of effect. A coupon that was deleted after its retention is left out.
func (o Order) effective(coupons map[int64]Held) (list []heldUse) {
	for _, u := range o.Uses {
		if h, ok := coupons[u.Coupon]; ok {
			list = append(list, heldUse{u, h})
		}
	}
	slices.SortFunc(list, func(a, b heldUse) int { return inEffect(a.terms(), b.terms()) })
	return list
}

// all reports whether all lines that the coupon took something off have come back.
func (u heldUse) all(o Order, returned []int64) bool {
	for i, l := range o.Lines {
		if u.Shares[i] > 0 && returned[i] < l.Quantity {
			return false
		}
	}
	return true
}

// due is what all refunds together should have paid back: the net price of the returned quantities,
// less the discount that the lines that stay have lost.
func (o Order) due(uses []heldUse, returned []int64) money.Amount {
	sum := o.net(returned)
	for _, lost := range o.losses(uses, returned) {
		sum -= lost
	}
	return sum
}

// losses are the discounts of the uses that the lines that stay have lost.
func (o Order) losses(uses []heldUse, returned []int64) []money.Amount {
	list := make([]money.Amount, len(uses))
	left := make([]money.Amount, len(o.Lines)) // of the lines that stay, not discounted yet
	for i, l := range o.Lines {
		left[i] = l.Amount - l.part(l.Amount, returned[i])
	}
	for n, u := range uses {
		var eligible, kept money.Amount
		for i, l := range o.Lines {
			if applies(u.Rule, l) {
				eligible += left[i]
			}
			share := u.Shares[i] - l.part(u.Shares[i], returned[i])
			left[i], kept = left[i]-share, kept+share
		}
		if u.Recompute && u.Rule.Missing(eligible) > 0 {
			list[n] = kept
		}
	}
	return list
}
