package event

import "time"

// Names of events of draws.
const (
	DrawSealed = "draw.sealed.v1"
	DrawDrawn  = "draw.drawn.v1"
	// EntriesListed is announced only while a shop's server wants to know each entry.
	EntriesListed = "entries.listed.v1"
)

// Draw is the payload of [DrawSealed] and [DrawDrawn]. Signed is the signed seal or the signed result. Round is
// the round that decides; 0 = the source has no rounds. Won counts the winners. A draw that is made again without
// a struck ticket is announced again, with a greater Sequence.
type Draw struct {
	TemplateID int64     `json:"template_id,string"`
	Signed     string    `json:"signed"`
	Round      int64     `json:"round"`
	Won        int64     `json:"won"`
	Sequence   int64     `json:"sequence,string"`
	At         time.Time `json:"at"`
}

// EntryList is the payload of [EntriesListed]: entries of a draw that won and have their coupons, or that did not
// win.
type EntryList struct {
	TemplateID int64         `json:"template_id,string"`
	Won        bool          `json:"won"`
	Items      []ListedEntry `json:"items"`
	Sequence   int64         `json:"sequence,string"`
	At         time.Time     `json:"at"`
}

// ListedEntry is an entry. CouponID is 0 for one that did not win.
type ListedEntry struct {
	UserID   int64  `json:"user_id,string"`
	Ticket   string `json:"ticket"`
	CouponID int64  `json:"coupon_id,string,omitempty"`
}
