package hook_test

import (
	"testing"
	"time"

	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/template"
)

// TestDropsAreCorrected: a shop is told of the present state of each drop that a lost event
// was about, whatever the lost events said.
func TestDropsAreCorrected(t *testing.T) {
	opens, before := at.Add(2*time.Hour), at.Add(time.Hour)
	lost := func(sequence int64) event.Template {
		return event.Template{TemplateID: 1, ShopNumber: 10, Version: sequence, OpensAt: opens, Sequence: sequence}
	}
	for name, c := range map[string]struct {
		lost  map[int64]string // topics by sequence
		state template.State   // "" = there is no such drop
		want  hook.Type
	}{
		"published, and is gone":              {map[int64]string{4: event.TemplatePublished}, "", hook.DropCancelled},
		"published and moved, and is gone":    {map[int64]string{4: event.TemplatePublished, 5: event.TemplateMoved}, "", hook.DropCancelled},
		"published, and is a draft":           {map[int64]string{4: event.TemplatePublished}, template.Draft, hook.DropCancelled},
		"moved, and is published":             {map[int64]string{4: event.TemplateMoved}, template.Published, hook.DropMoved},
		"moved twice, and is paused":          {map[int64]string{4: event.TemplateMoved, 5: event.TemplateMoved}, template.Paused, hook.DropMoved},
		"moved, closed, and is published":     {map[int64]string{4: event.TemplateMoved, 5: event.TemplateClosed}, template.Published, hook.DropPublished},
		"closed, and is published":            {map[int64]string{4: event.TemplateClosed}, template.Published, hook.DropPublished},
		"cancelled, and is paused":            {map[int64]string{4: event.TemplateCancelled}, template.Paused, hook.DropPublished},
		"published again, and is closed":      {map[int64]string{4: event.TemplatePublished}, template.Closed, hook.DropClosed},
		"published again, moved, and is over": {map[int64]string{4: event.TemplatePublished, 5: event.TemplateMoved}, template.Closed, hook.DropClosed},
		"closed, and is cancelled":            {map[int64]string{4: event.TemplateClosed}, template.Cancelled, hook.DropCancelled},
	} {
		var l hook.Lost
		for sequence, topic := range c.lost {
			hook.AddDrop(topic)(&l, lost(sequence))
		}
		stored, want := map[int64]template.Template{}, hook.DropData{TemplateID: 1, Version: 3 + int64(len(c.lost)), OpensAt: opens, Reason: hook.ReasonRestored}
		if c.state != "" {
			is := template.Template{ID: 1, Stored: c.state, Version: 3}
			is.OpensAt = before
			stored[1] = is
			want.Version, want.OpensAt = 3, before
		}
		got := l.CorrectDrops(stored, at, func() int64 { return 101 })
		if len(got) != 1 || got[0].Type != c.want || got[0].Data != want || got[0].Sequence != 101 || got[0].Subject != "drop/1" || got[0].Shop != 10 {
			t.Errorf("%s: %+v, want %s %+v", name, got, c.want, want)
		}
	}
}

// TestShopsOfDropsThatAreGone: the shop of a drop that the database lost is told about the
// reminders and coupons of the drop, too.
func TestShopsOfDropsThatAreGone(t *testing.T) {
	var lost hook.Lost
	hook.AddDrop(event.TemplatePublished)(&lost, event.Template{TemplateID: 1, ShopNumber: 10, Sequence: 1})
	lost.AddReservations(event.ReservationList{TemplateID: 1, Items: []event.ListedReminders{{UserID: 7, Bits: 1, Sequence: 2}}})
	lost.AddIssued(event.IssuedList{TemplateID: 1, Items: []event.OwnedCoupon{{CouponID: 5, UserID: 7}}})
	next := func() int64 { return 101 }
	got := append(lost.CorrectReservations(nil, at, next), lost.CorrectCoupons(nil, at, next)...)
	if len(got) != 2 || got[0].Type != hook.ReservationCancelled || got[1].Type != hook.CouponRevoked {
		t.Fatalf("%+v", got)
	}
	for _, e := range got {
		if e.Shop != 10 {
			t.Errorf("%s is of shop %d", e.Type, e.Shop)
		}
	}
}

// TestWhatIsCorrected: of the lost events about a reminder or a coupon the latest tells
// what a shop was told, in whatever order they are found. A correction is sent if the
// stored state differs.
func TestWhatIsCorrected(t *testing.T) {
	list := func(cancelled bool, sequence, bits int64) event.ReservationList {
		return event.ReservationList{TemplateID: 1, Cancelled: cancelled, Items: []event.ListedReminders{{UserID: 7, Bits: bits, Sequence: sequence}}}
	}
	for name, c := range map[string]struct {
		lost   []event.ReservationList
		stored int64
		want   map[hook.Type]string // reminders
	}{
		"made, and is there":          {[]event.ReservationList{list(false, 1, 3)}, 3, nil},
		"made, and is not there":      {[]event.ReservationList{list(false, 1, 3)}, 2, map[hook.Type]string{hook.ReservationCancelled: `[{"channel":"app","minutes":5}]`}},
		"cancelled, and is there":     {[]event.ReservationList{list(true, 1, 1)}, 3, map[hook.Type]string{hook.ReservationMade: `[{"channel":"app","minutes":5}]`}},
		"cancelled after it was made": {[]event.ReservationList{list(true, 2, 1), list(false, 1, 1)}, 0, nil},
		"made after it was cancelled": {[]event.ReservationList{list(false, 2, 1), list(true, 1, 1)}, 0, map[hook.Type]string{hook.ReservationCancelled: `[{"channel":"app","minutes":5}]`}},
		"others are not spoken of":    {[]event.ReservationList{list(false, 1, 1)}, 1 | 4, nil},
		"one is too much, one too little": {[]event.ReservationList{list(false, 1, 1), list(true, 2, 2)}, 2, map[hook.Type]string{
			hook.ReservationCancelled: `[{"channel":"app","minutes":5}]`, hook.ReservationMade: `[{"channel":"app","minutes":10}]`}},
	} {
		var lost hook.Lost
		for _, e := range c.lost {
			lost.AddReservations(e)
		}
		number := int64(100)
		got := lost.CorrectReservations(map[hook.Reserver]int64{{TemplateID: 1, UserID: 7}: c.stored}, at, func() int64 { number++; return number })
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", name, got)
		}
		for _, e := range got {
			data := e.Data.(hook.ReservationsData)
			if item := data.Items[0]; string(item.Reminders) != c.want[e.Type] || data.Reason != hook.ReasonRestored || item.Sequence <= 100 {
				t.Errorf("%s: %s %+v", name, e.Type, data)
			}
		}
	}

	told := func(operation int64, to, order string) event.Coupon {
		return event.Coupon{CouponID: 5, TemplateID: 1, UserID: 7, OrderID: order, To: to, OperationID: operation}
	}
	is := func(s coupon.State, order string) map[int64]coupon.Coupon {
		return map[int64]coupon.Coupon{5: {ID: 5, TemplateID: 1, UserID: 7, State: s, OrderID: order}}
	}
	for name, c := range map[string]struct {
		lost   []event.Coupon
		stored map[int64]coupon.Coupon
		want   hook.Type
	}{
		"is as told":                    {[]event.Coupon{told(2, "used", "A"), told(1, "locked", "A")}, is(coupon.Used, "A"), ""},
		"was used":                      {[]event.Coupon{told(1, "locked", "A"), told(2, "used", "A")}, is(coupon.Locked, "A"), hook.CouponLocked},
		"was locked by another order":   {[]event.Coupon{told(1, "locked", "A")}, is(coupon.Locked, "B"), hook.CouponLocked},
		"was refunded":                  {[]event.Coupon{told(1, "unused", "A")}, is(coupon.Used, "A"), hook.CouponUsed},
		"was locked":                    {[]event.Coupon{told(1, "locked", "A")}, is(coupon.Unused, ""), hook.CouponReleased},
		"was locked, and has expired":   {[]event.Coupon{told(1, "locked", "A")}, is(coupon.Expired, ""), hook.CouponReleased},
		"was released, and was revoked": {[]event.Coupon{told(1, "unused", "A")}, is(coupon.Revoked, ""), hook.CouponRevoked},
		"is gone":                       {[]event.Coupon{told(1, "unused", "A")}, nil, hook.CouponRevoked},
	} {
		var lost hook.Lost
		for _, e := range c.lost {
			lost.AddCoupon(e)
		}
		got := lost.CorrectCoupons(c.stored, at, func() int64 { return 101 })
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || got[0].Type != c.want || got[0].Sequence != 101) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	var lost hook.Lost
	lost.AddIssued(event.IssuedList{TemplateID: 1, Items: []event.OwnedCoupon{{CouponID: 5, UserID: 7}}})
	if got := lost.CorrectCoupons(is(coupon.Unused, ""), at, nil); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := lost.CorrectCoupons(nil, at, func() int64 { return 1 }); len(got) != 1 || got[0].Subject != "coupon/5" || got[0].Data.(hook.CouponData).UserID != 7 {
		t.Errorf("%+v", got)
	}
}
