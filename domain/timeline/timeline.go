// Package timeline lists everything that happened to one user, newest first, whatever the
// subject: reservations, messages, coupons, orders and choices.
package timeline

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// A Kind is what happened.
type Kind string

// The kinds.
const (
	Reserved   Kind = "reserved"
	Withdrawn  Kind = "withdrawn" // all reminders of a drop
	Message    Kind = "message"   // a reminder or another message came due
	Opened     Kind = "opened"    // the link of a message
	Claimed    Kind = "claimed"
	ByCode     Kind = "code"
	Given      Kind = "given" // by staff
	ByCampaign Kind = "campaign"
	ByDraw     Kind = "draw" // won
	Locked     Kind = "locked"
	Used       Kind = "used"
	Released   Kind = "released"
	TimedOut   Kind = "timed_out" // a lock
	Refunded   Kind = "refunded"
	// PartRefunded is a refund of lines after which every coupon of the order stays used.
	PartRefunded Kind = "part_refunded"
	Expired      Kind = "expired"
	Revoked      Kind = "revoked"
	Suspended    Kind = "suspended"
	Restored     Kind = "restored"
	Ordered      Kind = "ordered" // an order without a coupon
	OptedOut     Kind = "opted_out"
	OptedIn      Kind = "opted_in"
	EmailChange  Kind = "email_changed"
	PhoneChange  Kind = "phone_changed"
)

// Kinds returns every kind but [Message], whose name is that of the message.
func Kinds() []Kind {
	return []Kind{Reserved, Withdrawn, Opened, Claimed, ByCode, Given, ByCampaign, ByDraw, Locked, Used, Released, TimedOut, Refunded, PartRefunded, Expired, Revoked, Suspended, Restored, Ordered,
		OptedOut, OptedIn, EmailChange, PhoneChange}
}

// A Group selects kinds.
type Group string

// The groups; "" = all.
const (
	Reservations Group = "reservations"
	Messages     Group = "messages"
	Openings     Group = "openings"
	Coupons      Group = "coupons"
	Orders       Group = "orders"
	Choices      Group = "choices"
)

// Groups returns every group.
func Groups() []Group { return []Group{Reservations, Messages, Openings, Coupons, Orders, Choices} }

// A Line is one thing that happened. Fields that do not belong to its kind are zero.
type Line struct {
	Cursor
	Kind       Kind
	TemplateID int64
	Drop       string
	CampaignID int64
	Campaign   string
	CouponID   int64
	OrderID    string
	// Amount is the order's amount before discounts, Discount what a coupon took off, Refunded
	// what of the amount was paid back, in minor units of Currency.
	Amount, Discount, Refunded money.Amount
	Currency                   string
	// Channels are channels as bits: of the message, or of the choice.
	Channels uint8
	// Message, Slot, BatchID, Outcome and Reason are of a message.
	Message delivery.Kind
	Slot    int
	BatchID int64
	Outcome delivery.Outcome
	Reason  string
	By      string // who took the step, as in the audit log
}

// A Cursor is the place of a line: newest first, then by rank and number, which make the order
// of lines of one instant definite. The zero cursor is before the newest line.
type Cursor struct {
	At time.Time
	// Rank is the source of the line, ID its number there.
	Rank int
	ID   int64
}

// IsZero reports whether c is before the newest line.
func (c Cursor) IsZero() bool { return c.At.IsZero() }

// compare is negative if c comes before d in the list.
func (c Cursor) compare(d Cursor) int {
	return cmp.Or(d.At.Compare(c.At), cmp.Compare(d.Rank, c.Rank), cmp.Compare(d.ID, c.ID))
}

// String writes c for an address; "" for the zero cursor.
func (c Cursor) String() string {
	if c.IsZero() {
		return ""
	}
	return strconv.FormatInt(c.At.UnixMicro(), 10) + "." + strconv.Itoa(c.Rank) + "." + strconv.FormatInt(c.ID, 10)
}

// ParseCursor reads what [Cursor.String] wrote; any other text is the zero cursor.
func ParseCursor(s string) Cursor {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return Cursor{}
	}
	at, bad1 := strconv.ParseInt(parts[0], 10, 64)
	rank, bad2 := strconv.Atoi(parts[1])
	id, bad3 := strconv.ParseInt(parts[2], 10, 64)
	if bad1 != nil || bad2 != nil || bad3 != nil || at < 0 || at > 4e15 || rank < 0 || rank > 99 {
		return Cursor{}
	}
	return Cursor{time.UnixMicro(at).UTC(), rank, id}
}

// A Query selects lines of one user.
type Query struct {
	UserID user.ID
	Group  Group
	After  Cursor
	Limit  int
	Shops  []int64 // lines about a drop, campaign or order of other shops are left out; empty = none
}

// A Page is one page of lines. Next is the cursor of the following page, zero if there is none. A
// page may be short although there are more lines.
type Page struct {
	Lines []Line
	Next  Cursor
}

// Store reads all lines but messages.
type Store interface {
	// Timeline returns up to q.Limit lines after q.After, in their order.
	Timeline(ctx context.Context, q Query) ([]Line, error)
}

// Batches reads the batches that a user is in.
type Batches interface {
	Batches(ctx context.Context, by staff.Actor, q delivery.BatchQuery) (delivery.BatchPage, error)
}

// Service holds the use case of staff.
type Service struct {
	Store     Store
	Batches   Batches
	Customers Customers
	Purse     Purse
}

// rankMessage is the rank of messages; ranks of the store are greater.
const rankMessage = 0

// Page returns one page of the user's timeline, as far as the actor may see it. Both sources are
// read from the cursor on and merged; where one of them has read less far, the page ends there.
func (s *Service) Page(ctx context.Context, by staff.Actor, q Query) (Page, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Page{}, err
	}
	q.Shops = by.Shops
	limit := q.Limit
	q.Limit++
	var p Page
	if q.Group != Messages {
		var err error
		if p.Lines, err = s.Store.Timeline(ctx, q); err != nil {
			return Page{}, err
		}
	}
	frontier := Cursor{}
	if q.Group == "" || q.Group == Messages {
		list, end, err := s.messages(ctx, by, q)
		if err != nil {
			return Page{}, err
		}
		p.Lines, frontier = append(p.Lines, list...), end
	}
	slices.SortFunc(p.Lines, func(a, b Line) int { return a.compare(b.Cursor) })
	if !frontier.IsZero() {
		n, _ := slices.BinarySearchFunc(p.Lines, frontier, func(l Line, c Cursor) int { return l.compare(c) })
		for n < len(p.Lines) && p.Lines[n].Cursor == frontier {
			n++
		}
		p.Lines, p.Next = p.Lines[:n], frontier
	}
	if len(p.Lines) > limit {
		p.Lines = p.Lines[:limit]
		p.Next = p.Lines[limit-1].Cursor
	}
	return p, nil
}

// messages returns the lines of messages after the cursor. If there are more than it has read, end
// is the place up to which it has read.
func (s *Service) messages(ctx context.Context, by staff.Actor, q Query) (list []Line, end Cursor, err error) {
	bq := delivery.BatchQuery{UserID: q.UserID, Limit: q.Limit}
	if !q.After.IsZero() {
		bq.After = delivery.BatchCursor{DueAt: q.After.At, ID: q.After.ID}
		if q.After.Rank != rankMessage { // after the batches of this instant: none was listed yet
			bq.After.ID = 1<<63 - 1
		}
	}
	page, err := s.Batches.Batches(ctx, by, bq)
	if err != nil {
		return nil, Cursor{}, err
	}
	for _, b := range page.List {
		l := Line{Cursor: Cursor{b.DueAt, rankMessage, b.ID}, Kind: Message, TemplateID: b.TemplateID, Drop: b.TemplateName, Channels: b.Channel.Bit(),
			Message: b.Kind, Slot: b.Slot, BatchID: b.ID, Outcome: b.Outcome, Reason: b.Reason}
		if b.Kind == delivery.KindCampaign {
			l.CampaignID, l.Campaign = b.OwnerID, b.CampaignName
		}
		list = append(list, l)
	}
	if page.More {
		end = Cursor{page.Next.DueAt, rankMessage, page.Next.ID}
	}
	return list, end, nil
}
