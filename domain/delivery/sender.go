package delivery

import (
	"context"
	"time"

	"dropbell/domain/user"
)

// Status classes a provider's answer for one message.
type Status uint8

// The classes. The zero value is Transient, so that an answer without a status is retried rather
// than lost.
const (
	// Transient: the same call may succeed later (time-out, 5xx, 4xx SMTP).
	Transient Status = iota
	// Delivered: the provider has taken responsibility for the message.
	Delivered
	// Throttled: the provider requests a pause of After.
	Throttled
	// Permanent: this recipient can never be reached this way (bad address).
	Permanent
)

// A Result is the provider's answer for one message.
type Result struct {
	Status Status
	// After is the pause the provider asked for; zero if it named none.
	After time.Duration
	// Detail is the provider's answer for operators, at most about 200 bytes, without addresses
	// and secrets.
	Detail string
	// Apart marks a Transient or Throttled answer that is about this recipient only, for example
	// because one of several push services is slow. The provider works for other recipients, and
	// the channel continues.
	Apart bool
	// Growing makes the pause of a Throttled answer half as long again as the recipient's last
	// pause, if that had the same reason. Without Growing, a message that is refused each time
	// would be tried at the same interval for days.
	Growing bool
	// Whole marks a Permanent answer to the call as a whole, which may be about any of the call's
	// messages. The caller divides the call until the message at fault is alone.
	Whole bool
	// Provider marks a Permanent answer about the provider and not about the recipient, for
	// example that the endpoint is gone. The provider has failed.
	Provider bool
	// Reason, if set, replaces [ReasonRefused] of a Permanent answer or [ReasonThrottled] of a
	// Throttled one. It is one of the reasons of an [Exception].
	Reason string
	// Skip marks a Permanent answer after which the message is skipped for the Reason: it was not
	// handed over, and there is nothing to replay.
	Skip bool
	// Unsent says that the provider has certainly not taken the message: the provider was not
	// reached, or answered with a documented error. Without Unsent, the provider may have taken
	// the message despite an answer other than Delivered.
	Unsent bool
	// Held marks an answer other than Delivered that the sender gave without calling a provider:
	// it kept the message back. The answer says nothing about the provider.
	Held bool
	// ConsentUsed says that the recipient's consent to this message is used up: a service that
	// demands consent accepted the message, or such a service answered that there is no consent.
	// It may accompany any Status.
	ConsentUsed bool
	// Crash is the panic that caused a Permanent answer; nil = none.
	Crash *Crash
	// Via is the id of the configured provider that answered, see package provider. 0 = the
	// environment's provider, or no provider was called.
	Via int64
	// Judged says that the sender itself has reported the call to the circuit breaker of the
	// provider that answered. The answer says nothing about the provider of the channel.
	Judged bool
	// Beside is the answer of the provider of the channel about the same message, where the
	// Result itself is not: it is another provider's answer (Judged), or about another device
	// (Held). nil = the provider of the channel was not called.
	Beside *Result
}

// A Journal records, while a call is still in flight, which of its messages the provider has
// taken. Senders that hand messages over one by one use it, so that a crash repeats one message
// per connection and not a whole call.
type Journal interface {
	// Accepted begins to record that the message to id was taken. recorded waits until the record
	// is durable. Before recorded has returned nil, the sender may not complete another message
	// on the same connection, and Send may not return.
	Accepted(id user.ID) (recorded func(context.Context) error)
}

// A RoutedJournal is a [Journal] that can record which provider took a message.
type RoutedJournal interface {
	Journal
	// Through returns the journal of messages that the provider takes.
	Through(provider int64) Journal
}

// Unrecorded returns the answer for a message that was not handed over because the message before
// it could not be recorded in the [Journal]. It uses up no attempt.
func Unrecorded() Result {
	return Result{Status: Throttled, Apart: true, Unsent: true, After: time.Second, Detail: "not sent: the message before it could not be recorded"}
}

// A Sender hands messages to one channel's provider. Implementations are safe
// for concurrent use.
type Sender interface {
	Channel() Channel
	// ChunkSize is the most messages that one Send takes: the provider's own batch size. If the
	// process dies inside a call, all messages of the call that are not in the [Journal] are sent
	// again, under the same idempotency keys.
	ChunkSize() int
	// Send returns exactly one result per message, in order. When ctx ends, it returns early,
	// with Transient for messages that are not known to be sent. Send may panic only in the
	// caller's goroutine, and only before the provider may have taken any message of the call: a
	// sender that hands messages over one by one calls [Isolated] for each.
	Send(ctx context.Context, messages []Message) []Result
}

// A RoutedSender divides messages between several providers of its channel.
type RoutedSender interface {
	Sender
	// Serves reports whether there is a provider for messages of the shop; 0 = messages of no
	// shop.
	Serves(shop int64) bool
	// Divide returns the users in groups, each in the order given. A call with users of one group
	// needs one provider, as long as no circuit breaker opens. known has the stored data of
	// users; users without stored data are missing in it.
	Divide(s *Subject, ids []user.ID, known []user.User) [][]user.ID
}

// Attempt makes one call of s. A panic becomes a Permanent answer to the whole call, and a wrong
// number of results becomes a Transient answer for every message.
func Attempt(ctx context.Context, s Sender, messages []Message) (results []Result) {
	defer func() {
		if p := recover(); p != nil {
			answer := crashed(p)
			answer.Whole = true
			results = Repeat(answer, len(messages))
		}
	}()
	results = s.Send(ctx, messages)
	if len(results) != len(messages) {
		results = Repeat(Result{Detail: "the sender did not answer for every message"}, len(messages))
	}
	return results
}

// Best combines the answers about one person's devices into the answer about the person:
// Delivered comes before Throttled, Throttled before Transient, Permanent last. Without answers
// it returns the zero Result.
func Best(answers ...Result) (best Result) {
	rank := [...]int{Delivered: 3, Throttled: 2, Transient: 1, Permanent: 0}
	for i, a := range answers {
		if i == 0 || rank[a.Status] > rank[best.Status] || rank[a.Status] == rank[best.Status] && a.After > best.After {
			best = a
		}
	}
	return best
}
