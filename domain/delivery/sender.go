package delivery

import (
	"context"
	"time"

	"dropbell/domain/user"
)

// Status classes a provider's answer for one message.
type Status uint8

// The classes. The zero value is Transient, so that a forgotten answer is
// retried rather than lost.
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
	// Detail is the provider's answer for operators, at most about 200 bytes,
	// free of addresses and secrets.
	Detail string
	// Apart marks a Transient or Throttled answer that is about this recipient
	// only, such as one push service among several: the provider works for the
	// others, and the channel continues.
	Apart bool
	// Growing makes the pause of a Throttled answer half as long again as the one before, if
	// that had the same reason: otherwise a message that is refused each time would be tried
	// as often for days.
	Growing bool
	// Whole says of a Permanent answer that it was given to the call as a whole,
	// so that it may be about any one of the call's messages: the caller divides
	// the call until that message stands alone.
	Whole bool
	// Provider says of a Permanent answer that it is about the provider and not
	// about the recipient, such as an endpoint that is gone: the provider has failed.
	Provider bool
	// Reason, of a Permanent or Throttled answer, is a reason of its own instead of
	// [ReasonRefused] or [ReasonThrottled]; one of the reasons of [Exception].
	Reason string
	// Skip says of a Permanent answer that the message is skipped for the Reason:
	// it was not handed over, and there is nothing to replay.
	Skip bool
	// Unsent says that the provider has certainly not taken the message: it was not
	// reached, or answered with an error of its own rules. Without it an answer other
	// than Delivered may be about a message that was taken.
	Unsent bool
	// Held says of an answer other than Delivered that the sender kept the message back
	// itself and asked no provider, which says nothing about the provider.
	Held bool
	// ConsentUsed says that the recipient's consent to this message is used up: the
	// message was accepted by a service that demands one, or such a service has said
	// that there is none. It may accompany any Status.
	ConsentUsed bool
	// Crash is the panic that stands behind a Permanent answer; nil = none.
	Crash *Crash
	// Via is the id of the configured provider that answered, see package provider;
	// 0 = the provider of the environment, or none was asked.
	Via int64
	// Judged says that the sender has reported the call to the circuit breaker of
	// the provider itself: it says nothing about the provider of the channel.
	Judged bool
	// Beside is what the provider of the channel answered about the same message, if the
	// answer is another's, which is Judged, or if it is about another device, which is Held;
	// nil = it was not asked.
	Beside *Result
}

// A Journal records while a call is still going on which of its messages the
// provider has taken. A sender that hands messages over one by one uses it, so that
// a crash repeats one message per connection and not a whole call.
type Journal interface {
	// Accepted begins to record that the message to the user was taken. recorded
	// waits until that is durable; before it has returned nil, no further message
	// may be completed on the same connection, and Send may not return.
	Accepted(id user.ID) (recorded func(context.Context) error)
}

// A RoutedJournal is a [Journal] that can record which provider took a message.
type RoutedJournal interface {
	Journal
	// Through returns the journal of messages that the provider takes.
	Through(provider int64) Journal
}

// Unrecorded is the answer to a message that is not handed over because the one
// before could not be recorded in the [Journal]. It uses up no attempt.
func Unrecorded() Result {
	return Result{Status: Throttled, Apart: true, Unsent: true, After: time.Second, Detail: "not sent: the message before it could not be recorded"}
}

// A Sender hands messages to one channel's provider. Implementations are safe
// for concurrent use.
type Sender interface {
	Channel() Channel
	// ChunkSize is the most messages that one Send takes: the provider's own
	// batch size. Everything in one chunk that is not in the [Journal] is sent
	// again, under the same idempotency keys, if the process dies inside the call.
	ChunkSize() int
	// Send returns exactly one result per message, in order. It returns early
	// when ctx ends, with Transient for what is not known to be sent. If it
	// panics, it does so in the caller's goroutine, and before anything of the
	// call may have been taken: a sender that hands messages over one by one
	// wraps each in [Isolated].
	Send(ctx context.Context, messages []Message) []Result
}

// A RoutedSender divides messages between several providers of its channel.
type RoutedSender interface {
	Sender
	// Serves reports whether there is a provider for messages of the shop; 0 = of
	// no shop.
	Serves(shop int64) bool
	// Divide returns the users in groups, each in the order given, so that a call
	// with users of one group needs one provider as long as no circuit breaker opens.
	// known has the stored data of those who are known.
	Divide(s *Subject, ids []user.ID, known []user.User) [][]user.ID
}

// Attempt is one call of s. A panic is a Permanent answer to the whole call, and
// a wrong number of results a Transient one.
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

// Best returns the most useful of the answers about one person's devices, which is
// the answer about the person: delivered before throttled, throttled before
// transient, permanent last. Without any it is the zero Result.
func Best(answers ...Result) (best Result) {
	rank := [...]int{Delivered: 3, Throttled: 2, Transient: 1, Permanent: 0}
	for i, a := range answers {
		if i == 0 || rank[a.Status] > rank[best.Status] || rank[a.Status] == rank[best.Status] && a.After > best.After {
			best = a
		}
	}
	return best
}
