package event

import "time"

// WaitersListed is announced only while a shop's server wants to know each user of its waitlists.
const WaitersListed = "waiters.listed.v1"

// WaiterList is the payload of [WaitersListed]: users of a waitlist who got a coupon, or who did not accept an
// offer in time.
type WaiterList struct {
	TemplateID int64          `json:"template_id,string"`
	Filled     bool           `json:"filled"`
	Items      []ListedWaiter `json:"items"`
	Sequence   int64          `json:"sequence,string"`
	At         time.Time      `json:"at"`
}

// ListedWaiter is a user. CouponID is 0 for a user who got no coupon; Out is set for a user who gets no
// further offer.
type ListedWaiter struct {
	UserID   int64 `json:"user_id,string"`
	CouponID int64 `json:"coupon_id,string,omitempty"`
	Out      bool  `json:"out,omitempty"`
}
