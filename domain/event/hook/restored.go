package hook

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// ReasonRestored is the reason of events that correct earlier events which the database
// has lost: it was restored, or a standby took over that lacked the newest
// transactions.
const ReasonRestored = "restored"

// stepRestore is the step of coupons' events with that reason.
const stepRestore = "restore"

// A Reserver is one user of one drop.
type Reserver struct{ TemplateID, UserID int64 }

// Lost holds the contents of events that the database no longer has and that shops may
// have received. Of several events about one subject the latest counts.
type Lost struct {
	drops        map[int64]lostDrop
	reservations map[Reserver]lostReminders
	coupons      map[int64]event.Coupon
}

// lostDrop is the latest lost event about a drop, and whether all of them were moves.
type lostDrop struct {
	event.Template
	moved bool
}

// lostReminders are the reminders that lost events made and cancelled, each with the
// number of the latest event about it.
type lostReminders struct{ made, cancelled map[int]int64 }

// AddDrop returns the function that adds a lost event of the topic.
func AddDrop(topic string) func(l *Lost, e event.Template) {
	return func(l *Lost, e event.Template) {
		if l.drops == nil {
			l.drops = map[int64]lostDrop{}
		}
		d, known := l.drops[e.TemplateID]
		d.moved = topic == event.TemplateMoved && (d.moved || !known)
		if e.Sequence >= d.Sequence {
			d.Template = e
		}
		l.drops[e.TemplateID] = d
	}
}

// AddReservations adds a lost event.
func (l *Lost) AddReservations(e event.ReservationList) {
	if l.reservations == nil {
		l.reservations = map[Reserver]lostReminders{}
	}
	for _, item := range e.Items {
		k := Reserver{e.TemplateID, item.UserID}
		r, known := l.reservations[k]
		if !known {
			r = lostReminders{map[int]int64{}, map[int]int64{}}
			l.reservations[k] = r
		}
		side := r.made
		if e.Cancelled {
			side = r.cancelled
		}
		for bit := range reminder.Bits {
			if item.Bits>>bit&1 == 1 {
				side[bit] = max(side[bit], item.Sequence)
			}
		}
	}
}

// AddCoupon adds a lost event.
func (l *Lost) AddCoupon(e event.Coupon) {
	if l.coupons == nil {
		l.coupons = map[int64]event.Coupon{}
	}
	if known, ok := l.coupons[e.CouponID]; !ok || known.OperationID < e.OperationID {
		l.coupons[e.CouponID] = e
	}
}

// AddChanges adds a lost event.
func (l *Lost) AddChanges(e event.CouponChanges) {
	for _, c := range e.Changes {
		l.AddCoupon(c)
	}
}

// AddIssued adds a lost event.
func (l *Lost) AddIssued(e event.IssuedList) {
	for _, c := range e.Items {
		l.AddCoupon(event.Coupon{CouponID: c.CouponID, TemplateID: e.TemplateID, UserID: c.UserID, To: string(coupon.Unused)})
	}
}

// Drops returns the drops that the lost events were about.
func (l *Lost) Drops() []int64 { return slices.Sorted(maps.Keys(l.drops)) }

// Reservers returns whose reservations the lost events were about.
func (l *Lost) Reservers() []Reserver {
	list := make([]Reserver, 0, len(l.reservations))
	for k := range l.reservations {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b Reserver) int {
		return cmp.Or(cmp.Compare(a.TemplateID, b.TemplateID), cmp.Compare(a.UserID, b.UserID))
	})
	return list
}

// Coupons returns the coupons that the lost events were about.
func (l *Lost) Coupons() []int64 { return slices.Sorted(maps.Keys(l.coupons)) }

// CorrectDrops returns the events that tell shops the present state of drops. stored has the
// drops that exist; next draws numbers greater than all that were drawn. A drop that is gone,
// or is a draft again, is reported to shops as cancelled.
func (l *Lost) CorrectDrops(stored map[int64]template.Template, at time.Time, next func() int64) (list []Event) {
	types := map[template.State]Type{template.Published: DropPublished, template.Paused: DropPublished, template.Closed: DropClosed}
	for _, id := range l.Drops() {
		told := l.drops[id]
		data := DropData{TemplateID: id, Version: told.Version, OpensAt: told.OpensAt, Reason: ReasonRestored}
		is, there := stored[id]
		if there {
			data.Version, data.OpensAt = is.Version, is.OpensAt.UTC()
		}
		t := cmp.Or(types[is.Stored], DropCancelled)
		if t == DropPublished && told.moved {
			t = DropMoved
		}
		list = append(list, Event{Type: t, Subject: Drop(id), TemplateID: id, Shop: told.ShopNumber, Sequence: next(), At: at, Items: 1, Data: data})
	}
	return list
}

// CorrectReservations returns the events that tell shops the present state of reservations.
// stored has the reminders of every Reserver with reminders; next draws numbers greater
// than all that were drawn.
func (l *Lost) CorrectReservations(stored map[Reserver]int64, at time.Time, next func() int64) (list []Event) {
	var wrong []event.ReservationList
	for _, k := range l.Reservers() {
		r := l.reservations[k]
		var made, cancelled int64
		for bit := range reminder.Bits {
			told, has := r.made[bit] > r.cancelled[bit], stored[k]>>bit&1 == 1
			switch about := r.made[bit] > 0 || r.cancelled[bit] > 0; {
			case about && told && !has:
				cancelled |= 1 << bit
			case about && !told && has:
				made |= 1 << bit
			}
		}
		for _, c := range []struct {
			bits      int64
			cancelled bool
		}{{made, false}, {cancelled, true}} {
			if c.bits != 0 {
				wrong = append(wrong, event.ReservationList{TemplateID: k.TemplateID, Cancelled: c.cancelled,
					Items: []event.ListedReminders{{UserID: k.UserID, Bits: c.bits, Sequence: next(), At: at}}})
			}
		}
	}
	for _, e := range event.SumReservationLists(wrong, MaxItems) {
		for _, x := range OfReservations(e) {
			data := x.Data.(ReservationsData)
			data.Reason = ReasonRestored
			x.Data, x.Shop = data, l.drops[x.TemplateID].ShopNumber
			list = append(list, x)
		}
	}
	return list
}

// CorrectCoupons returns the events that tell shops the present state of coupons. stored
// has the coupons that exist; next draws numbers greater than all that were drawn. A coupon
// that is gone is reported as revoked.
func (l *Lost) CorrectCoupons(stored map[int64]coupon.Coupon, at time.Time, next func() int64) (list []Event) {
	types := map[coupon.State]Type{coupon.Unused: CouponReleased, coupon.Locked: CouponLocked, coupon.Used: CouponUsed, coupon.Expired: CouponReleased,
		coupon.Refunded: CouponRefunded, coupon.Revoked: CouponRevoked, coupon.Suspended: CouponSuspended}
	for _, id := range l.Coupons() {
		told := l.coupons[id]
		is, there := stored[id]
		if !there {
			is = coupon.Coupon{ID: id, TemplateID: told.TemplateID, UserID: user.ID(told.UserID), State: coupon.Revoked}
		}
		if there && told.To == string(is.State) && (is.OrderID == "" || is.OrderID == told.OrderID) {
			continue
		}
		data := CouponData{CouponID: id, TemplateID: is.TemplateID, UserID: int64(is.UserID), OrderID: is.OrderID, Step: stepRestore, State: string(is.State),
			Discount: int64(is.Discount), LockedUntil: is.LockedUntil, Reason: ReasonRestored}
		list = append(list, Event{Type: types[is.State], Subject: couponSubject(id), TemplateID: is.TemplateID, Shop: l.drops[is.TemplateID].ShopNumber,
			Sequence: next(), At: at, Items: 1, Data: data})
	}
	return list
}
