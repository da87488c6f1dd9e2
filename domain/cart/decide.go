package cart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/user"
)

// lock decides the lock of the order. A repeated lock is answered as the first; a lock with a higher
// revision replaces the cart and the coupons of an order that is locked.
func (w Wish) lock(by string, s Stored, lasting time.Duration) Decision {
	if o := s.Order; o != nil {
		switch {
		case o.Shop != w.Cart.Shop && w.Cart.Shop != 0 && o.State != Released:
			return refusedFor(coupon.ErrNotUsable.Because("the order id is in use by another shop; begin order ids with the shop's number"))
		case o.State == Released:
			return refusedFor(coupon.ErrNotUsable.Because("the order was released; use a new order id"))
		case w.Revision < o.Revision:
			return refusedFor(ErrChanged.Because("the order has the newer revision %d; load the cart again", o.Revision))
		case w.Revision == o.Revision:
			return w.again(s)
		case o.State != Locked:
			return refusedFor(ErrChanged.Because("the order was confirmed; use a new order id for a new cart"))
		}
	}
	c, list, d := w.combined(s)
	if d.Err != nil {
		return d
	}
	return w.moves(by, s, c, list, lasting)
}

func refusedFor(err error) Decision { return Decision{Err: err} }

// again answers a lock with the revision that is stored.
func (w Wish) again(s Stored) Decision {
	o := *s.Order
	lines := func(a, b Line) bool { return a == b }
	if o.Currency != w.Cart.Currency || !slices.EqualFunc(o.Lines, w.Cart.Lines, lines) || !slices.Equal(slices.Sorted(slices.Values(Combination{Uses: o.Uses}.Coupons())), w.Coupons) {
		return refusedFor(ErrChanged.Because("the order was locked with another cart or other coupons; send a higher revision"))
	}
	for _, id := range w.Coupons {
		if h := s.Coupons[id]; !h.Coupon.Holds(o.ID) {
			return refusedFor(coupon.ErrNotUsable.Because("the order's lock of coupon %d has ended; use a new order id", id))
		}
	}
	return Decision{Order: o}
}

// combined returns what the coupons take off, or the refusal.
func (w Wish) combined(s Stored) (Combination, []Held, Decision) {
	list := make([]Held, len(w.Coupons))
	terms := make([]Terms, len(w.Coupons))
	for i, id := range w.Coupons {
		h, ok := s.Coupons[id]
		if !ok || h.Coupon.UserID != w.UserID {
			return Combination{}, nil, refusedFor(coupon.ErrNotFound.Because("the user has no coupon %d; ask POST /coupons/qualify for the user's coupons", id))
		}
		list[i], terms[i] = h, h.terms()
	}
	c, no := Combine(w.Cart, terms)
	switch {
	case no != nil:
		return c, nil, refusedFor(ErrRefused.Because("%s", no.text(w.Cart.Currency)))
	case w.Expect != nil && *w.Expect != c.Discount:
		return c, nil, refusedFor(ErrChanged.Because("the discount is %s %s now; show it to the customer and lock the order with this discount",
			c.Discount.Decimal(w.Cart.Currency), w.Cart.Currency))
	}
	return c, list, Decision{}
}

// text says why a combination was refused, and what to do.
func (r Refusal) text(currency string) string {
	why := map[Reason]string{
		OtherCurrency: "coupon %d is in another currency; leave it out", OtherShop: "coupon %d belongs to another shop; leave it out",
		NotInCart:     "coupon %d is for a product that the order does not have; leave it out",
		NothingOff:    "coupon %d takes nothing off beside the other coupons; leave it out",
		TooMany:       fmt.Sprintf("an order uses at most %d coupons; leave coupon %%d out", MaxCoupons),
		TooManyOfDrop: "the order has too many coupons of one drop; leave coupon %d out",
	}[r.Reason]
	switch r.Reason {
	case StandsAlone:
		return fmt.Sprintf("coupon %d does not go together with coupon %d; leave one of them out", r.Coupon, r.Other)
	case BelowThreshold:
		return fmt.Sprintf("coupon %d needs %s %s more of what is not discounted yet; add to the order or leave it out", r.Coupon, r.Missing.Decimal(currency), currency)
	}
	return fmt.Sprintf(strings.TrimSpace(why), r.Coupon)
}

// eligible is the amount of the lines to which the rule applies.
func (c Cart) eligible(r coupon.Rule) (sum money.Amount) {
	for _, l := range c.Lines {
		if applies(r, l) {
			sum += l.Amount
		}
	}
	return sum
}

// moves are the changes of a lock: the coupons of the combination are held, and other coupons of an
// earlier revision are released.
func (w Wish) moves(by string, s Stored, c Combination, list []Held, lasting time.Duration) Decision {
	o := coupon.Order{ID: w.OrderID, Amount: w.Cart.Amount(), Currency: w.Cart.Currency, UserID: w.UserID}
	offs := map[int64]money.Amount{}
	for _, u := range c.Uses {
		offs[u.Coupon] = u.Off
	}
	requests := map[int64]coupon.Request{}
	if s.Order != nil {
		for _, u := range s.Order.Uses {
			requests[u.Coupon] = coupon.Together(coupon.StepRelease, u.Coupon, by, w.OrderID, 0)
		}
	}
	for _, h := range list {
		id := h.Coupon.ID
		requests[id] = coupon.LockTogether(id, by, o, coupon.Share{Eligible: w.Cart.eligible(h.Rule), Off: offs[id]}, lasting)
	}
	d := decideAll(requests, s)
	if d.Err != nil {
		return d
	}
	d.Order = Order{ID: w.OrderID, UserID: w.UserID, Cart: w.Cart, State: Locked, Revision: w.Revision, Discount: c.Discount, Uses: c.Uses, Returned: make([]int64, len(w.Cart.Lines))}
	d.Order.Shop = list[0].ShopNumber
	slices.SortFunc(d.Order.Uses, func(a, b Use) int { return cmp.Compare(a.Coupon, b.Coupon) })
	if s.Order != nil {
		d.Order.Version = s.Order.Version
	}
	d.Save, d.NewUses = true, true
	return d
}

// decideAll decides the requests of all coupons, in ascending order of their ids. The first refusal
// refuses them all.
func decideAll(requests map[int64]coupon.Request, s Stored) (d Decision) {
	for _, id := range slices.Sorted(maps.Keys(requests)) {
		h, ok := s.Coupons[id]
		if !ok {
			return refusedFor(coupon.ErrNotFound.Because("there is no coupon %d any more; use a new order id without it", id))
		}
		one := requests[id].Decide(h.Case)
		if one.Err != nil {
			return Decision{Refused: one.Refused, Err: named(id, one.Err)}
		}
		if len(one.Move.Ops) > 0 || one.Move.Revises != nil {
			d.Moves = append(d.Moves, one.Move)
		}
	}
	return d
}

// named returns the refusal of one coupon with its id in the text.
func named(id int64, err error) error {
	if f, ok := err.(*fault.Fault); ok {
		return f.Because("coupon %d: %s", id, f.Text)
	}
	return err
}

// confirm uses the coupons of the order.
func confirm(by string, s Stored, revision int64) Decision {
	o := s.Order
	switch {
	case o == nil:
		return refusedFor(ErrNoOrder)
	case o.State == Released:
		return refusedFor(coupon.ErrNotUsable.Because("the order was released; use a new order id"))
	case revision != 0 && revision != o.Revision:
		return refusedFor(ErrChanged.Because("the order has the revision %d; load the cart again", o.Revision))
	case o.State == Confirmed || o.State == Refunded:
		return Decision{Order: *o}
	}
	return all(coupon.StepConfirm, by, s, Confirmed)
}

// all takes the step for all coupons of the order, which then has the state.
func all(step coupon.Step, by string, s Stored, state State) Decision {
	requests := map[int64]coupon.Request{}
	for _, u := range s.Order.Uses {
		requests[u.Coupon] = coupon.Together(step, u.Coupon, by, s.Order.ID, 0)
	}
	d := decideAll(requests, s)
	if d.Err == nil {
		d.Order, d.Save = *s.Order, true
		d.Order.State = state
	}
	return d
}

// release gives the coupons of the order back.
func release(by, order string, owner user.ID, s Stored) Decision {
	o := s.Order
	switch {
	case o == nil:
		return Decision{Order: Order{ID: order, UserID: owner, State: Released}, Save: true}
	case o.State == Released:
		return Decision{Order: *o}
	case o.State != Locked:
		return refusedFor(coupon.ErrNotUsable.Because("the order was confirmed; refund it instead"))
	}
	return all(coupon.StepRelease, by, s, Released)
}
