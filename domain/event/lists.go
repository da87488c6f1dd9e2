package event

import (
	"cmp"
	"slices"
	"time"
)

// Names of events that name users one by one. They are written only for shops whose
// servers subscribe to them.
const (
	ReservationsListed = "reservations.listed.v1"
	ExpiredListed      = "expired.listed.v1"
	// IssuedListed has no handler. Its stream shows what shops were told, in case
	// the database loses it.
	IssuedListed = "issued.listed.v1"
)

// ReservationList is the payload of [ReservationsListed]: reservations or
// cancellations of one template.
type ReservationList struct {
	TemplateID int64             `json:"template_id,string"`
	Cancelled  bool              `json:"cancelled,omitempty"`
	Items      []ListedReminders `json:"items"`
}

// ListedReminders are the reminders that one user reserved or cancelled at once. Of
// two items of one user and template the later item has the greater sequence.
type ListedReminders struct {
	UserID   int64     `json:"user_id,string"`
	Bits     int64     `json:"bits,string"`
	Sequence int64     `json:"sequence,string"`
	At       time.Time `json:"at"`
}

// ExpiredList is the payload of [ExpiredListed]: coupons of one template.
type ExpiredList struct {
	TemplateID int64          `json:"template_id,string"`
	At         time.Time      `json:"at"`
	Items      []ListedCoupon `json:"items"`
}

// ListedCoupon is one coupon and the line of its log that says why it is listed.
type ListedCoupon struct {
	CouponID    int64 `json:"coupon_id,string"`
	UserID      int64 `json:"user_id,string"`
	OperationID int64 `json:"operation_id,string"`
}

// IssuedList is the payload of [IssuedListed]: coupons of one template.
type IssuedList struct {
	TemplateID int64         `json:"template_id,string"`
	Items      []OwnedCoupon `json:"items"`
}

// OwnedCoupon is one coupon and its owner.
type OwnedCoupon struct {
	CouponID int64 `json:"coupon_id,string"`
	UserID   int64 `json:"user_id,string"`
}

// SumReservationLists merges the given lists into as few lists as possible, each
// with at most most items: the templates in ascending order, reservations before
// cancellations.
func SumReservationLists(list []ReservationList, most int) (sums []ReservationList) {
	type key struct {
		template  int64
		cancelled bool
	}
	items := map[key][]ListedReminders{}
	var keys []key
	for _, l := range list {
		k := key{l.TemplateID, l.Cancelled}
		if _, known := items[k]; !known {
			keys = append(keys, k)
		}
		items[k] = append(items[k], l.Items...)
	}
	slices.SortFunc(keys, func(a, b key) int {
		rank := map[bool]int{true: 1}
		return cmp.Or(cmp.Compare(a.template, b.template), cmp.Compare(rank[a.cancelled], rank[b.cancelled]))
	})
	for _, k := range keys {
		for part := range slices.Chunk(items[k], most) {
			sums = append(sums, ReservationList{k.template, k.cancelled, part})
		}
	}
	return sums
}
