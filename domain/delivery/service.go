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
	// LeaseNext leases the most urgent ready batch of the channel, nearest
	// deadline first, or returns [ErrNoWork].
	LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error)
	// LeaseSome leases the most urgent ready batches of the channel: one, and as many as
	// most while batches are small enough. It returns [ErrNoWork] if there is none. Leases
	// that come with another error are held all the same.
	LeaseSome(ctx context.Context, c Channel, lasting time.Duration, most int) ([]Lease, error)
	// Recipients returns those of the users, given in ascending order, who
	// are known, in the same order and perhaps with others between them:
	// language, zone, what reaching them over the channel takes, and, if
	// named, what they are called.
	Recipients(ctx context.Context, c Channel, ids []user.ID, named bool) ([]user.User, error)
	// Refusals returns those of the users, recipients of a batch of the channel, who do not
	// want the channel or whose address is suppressed by now. It may sort ids.
	Refusals(ctx context.Context, c Channel, ids []user.ID) (Refusals, error)
	// Consents returns those of the users who have consented to the one message of b, a
	// reminder. It returns [ErrConsentsTaken] while another batch may be using them.
	Consents(ctx context.Context, b *Batch, ids []user.ID) (map[user.ID]bool, error)
}

// Queue wakes workers.
type Queue interface {
	Enqueue(ctx context.Context, tasks ...task.Task) error
}

// Admission decides whether a channel may be used now: paused by an operator,
// provider failing, rate used up. It costs no attempts.
type Admission interface {
	// Admit returns zero if the load may be handed over now, else how long
	// to wait and why.
	Admit(ctx context.Context, l Load) (wait time.Duration, reason string)
	// Unused gives back what was admitted and is not handed over after all.
	Unused(ctx context.Context, l Load)
	// Report reports the result of a call of the channel's provider.
	Report(ctx context.Context, c Channel, call Call)
}

// A Call is how a call of a channel's provider went.
type Call struct {
	// OK is false for a failure of the provider's own.
	OK     bool
	Detail string // of a failure
	// Throttled: the provider requests a pause of the whole channel. It uses up
	// no attempts and is no failure.
	Throttled bool
	// After is how long, if Throttled; zero if the provider named no time.
	After time.Duration
	// Via is the provider's id, see [Result].
	Via int64
	// Judged says that the circuit breaker of the provider knows of the call already.
	Judged bool
}

// A Load is what a batch is about to hand over to its channel's provider.
type Load struct {
	Channel  Channel
	Messages int
	// Kind and Owner say on whose behalf, Priority how urgent it is: lower
	// goes first.
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
	// Before is called right before messages are sent to the users; it may first
	// do what the message depends on. After an error none of them is sent to yet.
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
	// LeaseFor is how long a silent worker keeps its batch.
	LeaseFor time.Duration
	Random   func() float64 // in [0, 1)
	Now      func() time.Time
	// Uptime is a clock that nothing sets, and that continues while this process is halted or
	// its machine is suspended; nil = Now.
	Uptime func() time.Duration
	// Texts has the texts of messages; nil = the built-in ones.
	Texts message.Source
	// OptOutURL, if set, returns where the user can turn off the channel
	// without signing in; "" = nowhere. It is asked for messages that can show
	// an address, and never for tests.
	OptOutURL func(id user.ID, c Channel) string
	// LinkURL, if set, returns the tracked address that replaces a campaign's
	// link in the message of one user; tests show the target itself.
	LinkURL func(campaign int64, id user.ID, variant int) string
	// DropLinkURL, if set, returns the tracked address that replaces the claim
	// address in a reminder or a correction to one user; see [Channel.Tracks].
	DropLinkURL func(s *Subject, c Channel, id user.ID) string
	// Reference, if set, returns the text by which providers name the message of a
	// batch to a user in their reports; see package feedback.
	Reference func(batch int64, id user.ID) string
	// VerifiedOnly skips users whose phone number is not verified in the channel sms.
	VerifiedOnly bool
	// Named reports whether a provider of the channel fills in texts of its own that
	// greet by name; nil = none does.
	Named func(c Channel) bool
	// Crashed, if set, is called after a panic while a message was made or sent;
	// once per lease of a batch for the same panic.
	Crashed func(c Channel, crash Crash)
	// Observe, if set, is called after every checkpoint that recorded sent
	// messages; late is negative for campaigns, which have no lateness.
	Observe func(c Channel, sent int, late time.Duration)

	narrow chunkLimit
}
