package delivery

import (
	"context"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

// Store keeps batches.
type Store interface {
	// LeaseNext leases the most urgent ready batch of the channel, which has the nearest
	// deadline. It returns [ErrNoWork] if no batch is ready.
	LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error)
	// LeaseSome leases the most urgent ready batches of the channel: one, or up to most while the
	// batches are small enough. It returns [ErrNoWork] if no batch is ready. Leases that are
	// returned together with another error are valid.
	LeaseSome(ctx context.Context, c Channel, lasting time.Duration, most int) ([]Lease, error)
	// Recipients returns the stored data of the users in ids, which is ascending. The result is
	// ascending too, leaves out unknown users, and may contain other users. It has language,
	// zone, the contacts for the channel and, if named is set, the name.
	Recipients(ctx context.Context, c Channel, ids []user.ID, named bool) ([]user.User, error)
	// Refusals returns the users among ids who have opted out of the channel or whose address is
	// suppressed by now. ids are recipients of a batch of the channel. Refusals may sort ids.
	Refusals(ctx context.Context, c Channel, ids []user.ID) (Refusals, error)
	// Consents returns the users among ids who have consented to the one message of b, a
	// reminder. It returns [ErrConsentsTaken] while another batch may be using their consents.
	Consents(ctx context.Context, b *Batch, ids []user.ID) (map[user.ID]bool, error)
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Admission decides whether a channel may be used now. It may be paused by an operator, its
// provider may be failing, or its rate may be used up. A refused admission uses up no attempts.
type Admission interface {
	// Admit returns zero if the load may be handed over now, otherwise how long to wait and the
	// reason.
	Admit(ctx context.Context, l Load) (wait time.Duration, reason string)
	// Unused gives back an admission for messages that are not handed over.
	Unused(ctx context.Context, l Load)
	// Report reports the result of a call of the channel's provider.
	Report(ctx context.Context, c Channel, call Call)
}

// A Call is how a call of a channel's provider went.
type Call struct {
	// OK is false for a failure of the provider's own.
	OK     bool
	Detail string // of a failure
	// Throttled says that the provider requests a pause of the whole channel. It uses up no
	// attempts and is no failure.
	Throttled bool
	// After is the length of that pause; zero if the provider named none.
	After time.Duration
	// Via is the provider's id, see [Result].
	Via int64
	// Judged says that the circuit breaker of the provider knows of the call already.
	Judged bool
}

// A Load is a number of messages about to be handed over to a channel's provider.
type Load struct {
	Channel  Channel
	Messages int
	// Kind and Owner are the kind and owner of the batch. Priority is its urgency: lower goes
	// first.
	Kind     Kind
	Owner    int64
	Priority int
	// Shop is the shop's number, 0 = none.
	Shop int64
}

// A Guard decides which recipients of one kind of batch must not be sent to now.
type Guard interface {
	// Screen prepares to judge the recipients of one lease of b.
	Screen(ctx context.Context, b *Batch) (Screen, error)
}

// A Screen judges recipients. It is used by several calls at a time.
type Screen interface {
	// Check says which of the users are not to be sent to now.
	Check(ids []user.ID, now time.Time) []Screening
	// Before is called right before messages are sent to the users. It may first do the action
	// that the message depends on, such as granting a coupon. After an error no message is sent
	// to any of these users yet.
	Before(ctx context.Context, ids []user.ID, now time.Time) ([]Screening, error)
}

// A Screening keeps a recipient from being sent to.
type Screening struct {
	UserID user.ID
	Reason string
	// Until is when to try again; zero means never.
	Until time.Time
}

// Service works batches off.
type Service struct {
	Store     Store
	Queue     Queue
	Admission Admission
	Senders   map[Channel]Sender
	// Parallel is how many provider calls one batch makes at once.
	Parallel map[Channel]int
	Policy   Policy
	// Guards are asked about the recipients of their kind of batch.
	Guards map[Kind]Guard
	// LeaseFor is how long a lease lasts without a renewal.
	LeaseFor time.Duration
	Random   func() float64 // in [0, 1)
	Now      func() time.Time
	// Uptime is a monotonic clock. It is never set, and continues while this process is halted or
	// its machine is suspended. nil = Now.
	Uptime func() time.Duration
	// Texts has the texts of messages; nil = the built-in ones.
	Texts message.Source
	// OptOutURL, if set, returns the address where the user can turn off the channel without
	// signing in; "" = there is none. It is called for messages that can show an address, and
	// never for test messages.
	OptOutURL func(id user.ID, c Channel) string
	// LinkURL, if set, returns the tracked address that replaces an address in a campaign's message
	// to one user: the link, or with target an address that staff wrote into the text. Test messages
	// contain the addresses themselves.
	LinkURL func(campaign int64, id user.ID, variant int, target string) string
	// DropLinkURL, if set, returns the tracked address that replaces the claim
	// address in a reminder or a correction to one user; see [Channel.Tracks].
	DropLinkURL func(s *Subject, c Channel, id user.ID) string
	// DropPage, if set, returns the page of a drop that has no claim address, to which the button of
	// a mail leads; "" = there is none.
	DropPage func(templateID int64) string
	// DrawPage returns the page of a draw, to which messages about its result lead; nil = they lead to the
	// claim address.
	DrawPage func(templateID int64) string
	// Reference, if set, returns the text that identifies the message of a batch to a user in
	// providers' reports; see package feedback.
	Reference func(batch int64, id user.ID) string
	// VerifiedOnly skips users whose phone number is not verified in the channel sms.
	VerifiedOnly bool
	// Named reports whether a provider of the channel uses its own texts, which contain the
	// reader's name; nil = none does.
	Named func(c Channel) bool
	// Crashed, if set, is called after a panic while a message was made or sent. It is called
	// once per lease of a batch for the same panic.
	Crashed func(c Channel, crash Crash)
	// Observe, if set, is called after every checkpoint that recorded sent messages. late is how
	// late they are; it is negative for campaigns, which have no lateness.
	Observe func(c Channel, sent int, late time.Duration)

	narrow chunkLimit
}

// uptime is [Service.Uptime].
func (s *Service) uptime() time.Duration {
	if s.Uptime == nil {
		return time.Duration(s.Now().UnixNano())
	}
	return s.Uptime()
}
