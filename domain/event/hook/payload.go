package hook

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// An Event is one message to endpoints before it is numbered and stored. It belongs
// to the shop of its template; without a template to the shop of its campaign;
// otherwise to Shop.
type Event struct {
	Type       Type
	Subject    string // "drop/1"
	TemplateID int64
	CampaignID int64
	Shop       int64
	// Sequence orders events of one subject; 0 = the store draws it.
	Sequence int64
	At       time.Time
	// Items is how many items Data has; 1 unless the type is batched.
	Items int
	Data  any // one of the structs below
}

// Payload returns the body that is sent:
// {"type","timestamp","sequence","subject","data"}.
func (e Event) Payload() ([]byte, error) {
	return json.Marshal(struct {
		Type      Type      `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Sequence  int64     `json:"sequence"`
		Subject   string    `json:"subject"`
		Data      any       `json:"data"`
	}{e.Type, e.At.UTC(), e.Sequence, e.Subject, e.Data})
}

// Drop returns the subject of a template's events.
func Drop(templateID int64) string { return "drop/" + strconv.FormatInt(templateID, 10) }

// DropData is the data of drop.published, drop.moved, drop.opened, drop.closed and
// drop.cancelled. Version is the version of the template after the change, 0 for
// drop.opened. Reason is "" or [ReasonRestored].
type DropData struct {
	TemplateID int64     `json:"template_id,string"`
	Version    int64     `json:"version,omitempty"`
	OpensAt    time.Time `json:"opens_at"`
	Reason     string    `json:"reason,omitempty"`
}

// SoldOutData is the data of drop.sold_out: every coupon is issued.
type SoldOutData struct {
	TemplateID int64 `json:"template_id,string"`
	Issued     int64 `json:"issued"`
}

// EarnedAfter is how long after the end of a drop drop.earned is sent.
const EarnedAfter = 24 * time.Hour

// EarnedData is the data of drop.earned: the orders that used coupons of the drop until
// [EarnedAfter] its end. Amounts are minor units of Currency. Orders, Ordered (before discounts),
// Discount and Revenue have refunds netted; Refunds is the number of refunded orders, and
// Refunded what customers got back.
type EarnedData struct {
	TemplateID int64     `json:"template_id,string"`
	EndedAt    time.Time `json:"ended_at"`
	Currency   string    `json:"currency"`
	Orders     int64     `json:"orders"`
	Ordered    int64     `json:"ordered"`
	Discount   int64     `json:"discount"`
	Revenue    int64     `json:"revenue"`
	Refunds    int64     `json:"refunds"`
	Refunded   int64     `json:"refunded"`
	// SMS is what text messages about the drop cost until then, by currency.
	SMS []SMSCost `json:"sms"`
}

// SMSCost is what text messages cost by the price list of their time. Currency is empty for
// parts that were sent without a price list; Micros are millionths of a unit of Currency.
type SMSCost struct {
	Currency string `json:"currency"`
	Parts    int64  `json:"parts"`
	Micros   int64  `json:"cost_micros"`
}

// ReservationsData is the data of reservation.made and reservation.cancelled. Reason is
// "" or [ReasonRestored].
type ReservationsData struct {
	TemplateID int64             `json:"template_id,string"`
	Reason     string            `json:"reason,omitempty"`
	Items      []ReservationItem `json:"items"`
}

// ReservationItem holds the reminders that one user reserved or cancelled at once.
// Of two items of one user and drop the later item has the greater sequence.
type ReservationItem struct {
	UserID    int64           `json:"user_id,string"`
	Reminders json.RawMessage `json:"reminders"` // [{"channel","minutes"}]
	Sequence  int64           `json:"sequence"`
	At        time.Time       `json:"at"`
}

// IssuedData is the data of coupon.issued.
type IssuedData struct {
	TemplateID int64        `json:"template_id,string"`
	Items      []IssuedItem `json:"items"`
}

// IssuedItem is one coupon. It is the first event of the subject "coupon/ID",
// with the sequence 0.
type IssuedItem struct {
	CouponID  int64     `json:"coupon_id,string"`
	UserID    int64     `json:"user_id,string"`
	Origin    string    `json:"origin"`
	IssuedAt  time.Time `json:"issued_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// CouponData is the data of coupon.locked, used, released, refunded, revoked, suspended and restored.
// State is the coupon's state afterwards: a coupon that is released after its
// end has expired. Reason is "" or [ReasonRestored].
type CouponData struct {
	CouponID   int64  `json:"coupon_id,string"`
	TemplateID int64  `json:"template_id,string"`
	UserID     int64  `json:"user_id,string"`
	OrderID    string `json:"order_id,omitempty"`
	Step       string `json:"step"`
	State      string `json:"state"`
	Discount   int64  `json:"discount"` // minor units of the template's currency
	// OrderAmount is the order's amount before discounts, of coupon.locked, used and refunded.
	OrderAmount int64      `json:"order_amount,omitempty"`
	LockedUntil *time.Time `json:"locked_until,omitempty"`
	Reason      string     `json:"reason,omitempty"`
}

// ExpiredData is the data of coupon.expired.
type ExpiredData struct {
	TemplateID int64         `json:"template_id,string"`
	Items      []ExpiredItem `json:"items"`
}

// ExpiredItem is one coupon that expired unused; the sequence is the sequence of
// the subject "coupon/ID".
type ExpiredItem struct {
	CouponID int64 `json:"coupon_id,string"`
	UserID   int64 `json:"user_id,string"`
	Sequence int64 `json:"sequence"`
}

// CampaignData is the data of campaign.finished: its recipients by outcome.
type CampaignData struct {
	CampaignID int64     `json:"campaign_id,string"`
	TemplateID int64     `json:"template_id,string,omitempty"`
	FinishedAt time.Time `json:"finished_at"`
	Recipients int64     `json:"recipients"`
	Sent       int64     `json:"sent"`
	Skipped    int64     `json:"skipped"`
	Expired    int64     `json:"expired"`
	Dead       int64     `json:"dead"`
}

// BudgetData is the data of budget.reached. Scope is drop, shop or campaign, and Subject its id or
// the shop's number. Used is the greatest discount of the issued coupons, in minor units as
// Amount. Level is near (from 80 % on) or used_up.
type BudgetData struct {
	Scope    string `json:"scope"`
	Subject  int64  `json:"subject,string"`
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
	Used     int64  `json:"used"`
	Level    string `json:"level"`
}

// SealedData is the data of draw.sealed. Seal is the signed seal; Round decides, 0 = the source has no rounds.
type SealedData struct {
	TemplateID int64  `json:"template_id,string"`
	Round      int64  `json:"round"`
	Seal       string `json:"seal"`
}

// DrawnData is the data of draw.drawn. Result is the signed result, and Won how many tickets won.
type DrawnData struct {
	TemplateID int64  `json:"template_id,string"`
	Round      int64  `json:"round"`
	Won        int64  `json:"won"`
	Result     string `json:"result"`
}

// EntriesData is the data of entry.won and entry.lost.
type EntriesData struct {
	TemplateID int64       `json:"template_id,string"`
	Items      []EntryItem `json:"items"`
}

// EntryItem is an entry. CouponID is the coupon of a winner.
type EntryItem struct {
	UserID   int64  `json:"user_id,string"`
	Ticket   string `json:"ticket"`
	CouponID int64  `json:"coupon_id,string,omitempty"`
}

// WaitersData is the data of waitlist.filled and waitlist.lapsed.
type WaitersData struct {
	TemplateID int64        `json:"template_id,string"`
	Items      []WaiterItem `json:"items"`
}

// WaiterItem is a user of a waitlist. CouponID is the coupon of a user who got one. Out is set for a user who
// gets no further offer.
type WaiterItem struct {
	UserID   int64 `json:"user_id,string"`
	CouponID int64 `json:"coupon_id,string,omitempty"`
	Out      bool  `json:"out,omitempty"`
}

// DeadData is the data of delivery.dead: recipients whom a batch of messages did
// not reach after all attempts. Kind is the kind of the messages, such as reminder.
type DeadData struct {
	BatchID    int64      `json:"batch_id,string"`
	Kind       string     `json:"kind"`
	Channel    string     `json:"channel"`
	TemplateID int64      `json:"template_id,string,omitempty"`
	CampaignID int64      `json:"campaign_id,string,omitempty"`
	Items      []DeadItem `json:"items"`
}

// DeadItem is one recipient; reason is a word such as attempts or permanent.
type DeadItem struct {
	UserID   int64     `json:"user_id,string"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	At       time.Time `json:"at"`
}

// TestData is the data of endpoint.test.
type TestData struct {
	EndpointID int64  `json:"endpoint_id,string"`
	Message    string `json:"message"`
}

// NewTest returns the event that tries an endpoint out.
func NewTest(e Endpoint, at time.Time) Event {
	return Event{Type: TestEvent, Subject: fmt.Sprintf("endpoint/%d", e.ID), Shop: e.Shop, At: at, Items: 1,
		Data: TestData{e.ID, "This is a test. Nothing has happened."}}
}
