package delivery

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// ErrBatchNotFound is returned when there is no such batch, or not for this viewer.
var ErrBatchNotFound = fault.New(fault.NotFound, "batch_not_found", "there is no such batch, or its retention is over; look at the totals of its drop")

// BatchState is where a batch is between ready and done.
type BatchState string

// The states of a batch.
const (
	BatchReady   BatchState = "ready" // waits for a worker, or for the next attempt
	BatchRunning BatchState = "running"
	BatchDone    BatchState = "done"
)

// BatchStates returns every state.
func BatchStates() []BatchState { return []BatchState{BatchReady, BatchRunning, BatchDone} }

// ListedOutcomes are the outcomes by which batches can be looked for.
func ListedOutcomes() []Outcome { return []Outcome{Sent, Skipped, Expired, Dead, Failed, InFlight} }

// Kinds returns every kind of batch.
func Kinds() []Kind {
	return slices.Concat([]Kind{KindReminder}, Announced(), []Kind{KindCampaign, KindNotice, KindTest})
}

// Announced returns the kinds of messages that are announcements of a drop: the owner of their batches is an
// announcement.
func Announced() []Kind {
	return []Kind{KindCorrection, KindCancelled, KindWaitlist, KindOffer, KindWon, KindLost}
}

// A BatchRow is one batch with the outcomes of its recipients so far.
type BatchRow struct {
	ID           int64
	Kind         Kind
	OwnerID      int64
	TemplateID   int64
	TemplateName string
	CampaignName string // of [KindCampaign]
	ShopNumber   int64
	ShopTimezone string
	Slot         int // 1…12 for reminders, else 0
	Channel      Channel
	State        BatchState
	StopReason   string
	From, To     user.ID
	Runs         int
	Counts       Counts
	Waiting      int64 // of those in flight: failed, to be tried again
	DueAt        time.Time
	StartedAt    *time.Time
	FinishedAt   *time.Time
	// Outcome is the outcome of the user whom the query names, with its Reason; empty without a user.
	Outcome Outcome
	Reason  string
	// Reported are the parts of Counts.Sent of which the provider has reported.
	Reported feedback.Tally
	// Providers are the providers configured by staff that took messages. The environment's
	// provider took the other messages of Counts.Sent.
	Providers []ProviderShare
}

// Joins reports whether the batches b and o carry one message over one channel at one time and are in the same state.
func (b BatchRow) Joins(o BatchRow) bool {
	return b.Kind == o.Kind && b.OwnerID == o.OwnerID && b.TemplateID == o.TemplateID && b.Slot == o.Slot && b.Channel == o.Channel && b.State == o.State && b.Outcome == o.Outcome && b.DueAt.Equal(o.DueAt)
}

// A ProviderShare is how many messages of a batch a provider took.
type ProviderShare struct {
	Name string
	Sent int64
}

// A BatchCursor is the last row of the page before; the zero cursor is the start.
type BatchCursor struct {
	DueAt time.Time
	ID    int64
}

// A BatchQuery selects batches, latest due first; zero fields select all.
type BatchQuery struct {
	Kind       Kind
	TemplateID int64
	Slot       int
	Channel    *Channel
	State      BatchState
	Outcome    Outcome
	UserID     user.ID
	From, To   *time.Time // of the due instant
	Shops      []int64    // empty = all
	After      BatchCursor
	Limit      int
}

// A BatchPage is one page of batches. A search for one user reads a bounded number of batches at
// a time: More may be set although the page is not full, or is even empty.
type BatchPage struct {
	List []BatchRow
	More bool
	Next BatchCursor
}

// A Recipient is the outcome of one user in a batch.
type Recipient struct {
	UserID      user.ID
	Outcome     Outcome
	Reason      string
	Detail      string // the provider's last answer
	Provider    string // that answered last, by name; empty = the environment's, or none was asked
	Attempts    int
	At          time.Time // zero while nothing is recorded
	NextRetryAt *time.Time
	// Reported is the status that the provider reported for the message later; empty = no report.
	// Cause is the reason in that report, if it had one.
	Reported feedback.Status
	Cause    string
}

// A RecipientQuery selects recipients of a batch by ascending user id.
type RecipientQuery struct {
	BatchID int64
	Outcome Outcome // empty = all
	Only    user.ID // 0 = all users
	After   user.ID // keyset
	Limit   int     // 0 = all
}

// LedgerStore reads batches.
type LedgerStore interface {
	Batches(ctx context.Context, q BatchQuery) (BatchPage, error)
	// Batch returns [ErrBatchNotFound] if there is none.
	Batch(ctx context.Context, id int64) (BatchRow, error)
	Recipients(ctx context.Context, q RecipientQuery) ([]Recipient, error)
}

// Ledger shows staff the messages that were delivered, and their recipients.
type Ledger struct{ Store LedgerStore }

// Batches lists the batches that the actor may see, latest due first.
func (s *Ledger) Batches(ctx context.Context, by staff.Actor, q BatchQuery) (BatchPage, error) {
	if err := by.May(staff.View, 0); err != nil {
		return BatchPage{}, err
	}
	q.Shops = by.Shops
	return s.Store.Batches(ctx, q)
}

// Batch returns one batch, or [ErrBatchNotFound].
func (s *Ledger) Batch(ctx context.Context, by staff.Actor, id int64) (BatchRow, error) {
	b, err := s.Store.Batch(ctx, id)
	if err != nil {
		return BatchRow{}, err
	}
	// A batch of no shop is for staff who are in charge of all shops.
	if len(by.Shops) > 0 && b.ShopNumber == 0 {
		return BatchRow{}, ErrBatchNotFound
	}
	return b, by.May(staff.View, b.ShopNumber)
}

// Recipients lists recipients of a batch that the actor may see.
func (s *Ledger) Recipients(ctx context.Context, by staff.Actor, q RecipientQuery) ([]Recipient, error) {
	if _, err := s.Batch(ctx, by, q.BatchID); err != nil {
		return nil, err
	}
	return s.Store.Recipients(ctx, q)
}
