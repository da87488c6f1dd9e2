package delivery

import (
	"context"
	"time"
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
	// Throttled: the provider asks to wait; obey After.
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
	// Apart says of a Transient or Throttled answer that it is about something
	// of this recipient's own, such as one push service among several: the
	// provider works for the others, and the channel goes on.
	Apart bool
}

// A Sender hands messages to one channel's provider. Implementations are safe
// for concurrent use.
type Sender interface {
	Channel() Channel
	// ChunkSize is the most messages that one Send takes: the provider's own
	// batch size. Everything in one chunk is sent again, under the same
	// idempotency keys, if the process dies inside the call.
	ChunkSize() int
	// Send returns exactly one result per message, in order. It never panics
	// and returns early when ctx ends, with Transient for what is not known
	// to be sent.
	Send(ctx context.Context, messages []Message) []Result
}
