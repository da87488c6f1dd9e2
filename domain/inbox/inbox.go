// Package inbox is the list of a user's messages in the app, and their live push to connected
// clients. Nothing is stored per message: a page is derived from the batches that reached the
// user.
package inbox

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Message is one in-app message of a user.
type Message struct {
	ID         string // see [MessageID]
	TemplateID int64
	ShopNumber int64
	Kind       delivery.Kind
	Slot       template.Slot
	OpensAt    time.Time
	DueAt      time.Time
	At         time.Time
	Name       string // of the template
	ClaimURL   string
	// Title and Text are the content of the message in the reader's language.
	Title, Text string
	// ExpiresAt is the end of validity of a notice's coupon; zero for other messages.
	ExpiresAt time.Time
	Read      bool
}

// MessageID returns the id of an in-app message: stable, unique for the user, and a decimal
// number like every id. owner is the slot, announcement, campaign or run of notices of the
// message. The ids of all kinds except reminders have 19 digits, of which the first is the kind.
// A test of a campaign may be sent again, so its id contains the second at which it was due.
func MessageID(k delivery.Kind, owner int64, due time.Time) string {
	const kind, second = 1_000_000_000_000_000_000, 10_000_000_000
	n := owner
	switch k {
	case delivery.KindCorrection, delivery.KindCancelled:
		n += 1 * kind
	case delivery.KindCampaign:
		n += 2 * kind
	case delivery.KindNotice:
		n += 3 * kind
	case delivery.KindWaitlist, delivery.KindOffer: // both are announcements
		n += 5 * kind
	case delivery.KindWon:
		n += 6 * kind
	case delivery.KindLost:
		n += 7 * kind
	case delivery.KindTest:
		n = 4*kind + owner%(kind/second)*second + due.Unix()%second
	}
	return strconv.FormatInt(n, 10)
}

// Holds reports whether messages of the kind appear in the inbox.
func Holds(k delivery.Kind) bool { return slices.Contains(delivery.Kinds(), k) }

// A Page is some of a user's messages, newest first.
type Page struct {
	UserID      user.ID
	Items       []Message
	Unread      int // of the whole inbox, up to [MaxUnread]
	ReadThrough time.Time
}

// MaxUnread is the greatest number of unread messages that is counted, so that an inbox that was
// never read costs no more than other inboxes.
const MaxUnread = 100

// An Arrival is the messages of one finished in-app batch for connected clients.
type Arrival struct {
	// Users are the connected users whom the batch reached.
	Users []user.ID
	// Message returns the message of the batch for one of the Users.
	Message func(user.ID) Message
}

// ArrivalOf returns an arrival that shows each user a message of their own.
func ArrivalOf(messages map[user.ID]Message) Arrival {
	return Arrival{Users: slices.Collect(maps.Keys(messages)), Message: func(id user.ID) Message { return messages[id] }}
}

// Store derives messages from the batches that were delivered.
type Store interface {
	// Page returns the newest in-app messages recorded before the instant (zero = now). If
	// messages with the same instant as the last one follow, the page contains them too and is
	// longer than limit.
	Page(ctx context.Context, by user.ID, before time.Time, limit int) (Page, error)
	// MarkRead records that all messages up to through were read. It returns the instant up to
	// which the user has read, which never moves back.
	MarkRead(ctx context.Context, by user.ID, through time.Time) (time.Time, error)
	// Recent returns, in up to limit spans, the users who may have got messages at or after
	// since. It returns false if there are more spans.
	Recent(ctx context.Context, since time.Time, limit int) ([]Span, bool, error)
	// Arrival returns the messages of a finished in-app batch of the kind for the users that
	// connected selects. It returns false if the batch reached none of them.
	Arrival(ctx context.Context, k delivery.Kind, batchID int64, connected Connected) (Arrival, bool, error)
}

// Users is a set of users.
type Users interface {
	Len() int
	Contains(user.ID) bool
	All() iter.Seq[user.ID]
}

// Connected returns the users between from and to who are connected and are in reached.
type Connected func(from, to user.ID, reached Users) []user.ID

// Clients are the apps that are connected to this process.
type Clients interface {
	// Between reports whether a user between from and to is connected.
	Between(from, to user.ID) bool
	// Connected is a [Connected].
	Connected(from, to user.ID, reached Users) []user.ID
	// Notify sends the users their message, if they are still connected.
	Notify(users []user.ID, message func(user.ID) Message)
}

// Finished is a batch that is done. All its recipients lie between From and To.
type Finished struct {
	BatchID  int64
	Channel  delivery.Channel
	Kind     delivery.Kind
	From, To user.ID
}

// Service holds the use cases around the inbox.
type Service struct {
	Store   Store
	resumes resumes
}

// Page returns a page of the user's messages; see [Store].
func (s *Service) Page(ctx context.Context, by user.ID, before time.Time, limit int) (Page, error) {
	return s.Store.Page(ctx, by, before, limit)
}

// MarkRead records that the user has read everything up to through; see [Store].
func (s *Service) MarkRead(ctx context.Context, by user.ID, through time.Time) (time.Time, error) {
	return s.Store.MarkRead(ctx, by, through)
}

// Push sends the messages of a finished batch to connected clients. It reads nothing for a batch
// of a channel other than the app, of a kind that the inbox does not contain, or without
// connected users in its range.
func (s *Service) Push(ctx context.Context, f Finished, to Clients) error {
	if f.Channel != delivery.App || !Holds(f.Kind) || !to.Between(f.From, f.To) {
		return nil
	}
	a, ok, err := s.Store.Arrival(ctx, f.Kind, f.BatchID, to.Connected)
	if err != nil || !ok {
		return err
	}
	to.Notify(a.Users, a.Message)
	return nil
}
