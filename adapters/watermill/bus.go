// Package watermill transports events between processes over Redis Streams, with the library of
// the same name. Delivery is at least once and unordered; handlers are idempotent. An event that
// still fails after all attempts is passed to the caller for storage, and is acknowledged only
// after that.
package watermill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/fault"
	"dropbell/killpoint"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	goredis "github.com/redis/go-redis/v9"
)

// ErrUnavailable is returned when Redis does not answer.
var ErrUnavailable = fault.New(fault.Unavailable, "overloaded", "the event bus is not reachable; try again in a moment")

// publishChunk is how many events one pipeline contains at most, which bounds its memory.
const publishChunk = 1000

// An Event is one message of the bus.
type Event struct {
	// ID is the same for all deliveries of one event.
	ID    string
	Topic string
	// Payload is the JSON of one of the structs in domain/event.
	Payload []byte
	// Metadata travels along, for trace context; it may be nil.
	Metadata map[string]string
}

// A DeadMessage is an event that one handler will not get again.
type DeadMessage struct {
	Event
	// Handler is the name under which the handler was registered.
	Handler string
	// Reason is the last error. It may be long (a panic contains its stack).
	Reason string
}

// BusConfig configures [NewBus]. A zero field means the default that the field's comment names.
type BusConfig struct {
	// RedisURL may name several addresses separated by commas: a cluster.
	RedisURL string
	Logger   *slog.Logger
	// Consumer is the name of this process, unique among all processes and never reused.
	Consumer string
	// DeadMessage stores an event that cannot be handled. While DeadMessage fails, the event is
	// tried again from the first attempt, so no event is lost. DeadMessage must be idempotent by
	// (ID, Handler). It is required for [Bus.Handle].
	DeadMessage func(ctx context.Context, dead DeadMessage) error
	Metrics     Metrics
	// Trace, if set, surrounds every attempt: it may change the handler's
	// context, and done is called with the attempt's error.
	Trace func(ctx context.Context, name string, metadata map[string]string) (_ context.Context, done func(error))
	// Attempts is the number of attempts per delivery; default 5. The pause between attempts is
	// RetryInterval (default 200 ms), doubling up to MaxRetryInterval (default 2 s).
	Attempts                        int
	RetryInterval, MaxRetryInterval time.Duration
	// NackPause is the time between two rounds of attempts when DeadMessage fails as well, or
	// when a service that the handler needs is unavailable; default 1 s.
	NackPause time.Duration
	// Patience is how long an event is tried while its handler returns an error of kind
	// Unavailable each time; default 1 h.
	Patience time.Duration
	// DrainTimeout is how long Run waits at its end for handlers: 10 s.
	DrainTimeout time.Duration
}

// Metrics are hooks; each may be nil and must return at once.
type Metrics struct {
	// Handled is called after every attempt.
	Handled func(handler, topic string, took time.Duration, err error)
	// Dead is called for every event that was given up.
	Dead func(handler, topic string)
	// Resubscribed is called whenever a lost subscription is restored.
	Resubscribed func(handler, topic string)
}

// A Bus publishes events and runs handlers. Publishing works without [Bus.Run]. Handlers must be
// registered before [Bus.Run].
type Bus struct {
	config        BusConfig
	client        goredis.UniversalClient
	watch         *streamWatch // has a client of its own
	pending       *pendings
	subscriptions []*subscription
	started       atomic.Bool
	missing       atomic.Int64
	running       chan struct{}
}

// NewBus returns a bus that has not connected yet.
func NewBus(config BusConfig) (*Bus, error) {
	if config.Logger == nil || config.Consumer == "" {
		return nil, errors.New("event bus: logger and consumer name are required")
	}
	client, err := redisclient.New(config.RedisURL, 0)
	if err != nil {
		return nil, err
	}
	blocking, err := redisclient.New(config.RedisURL, 0)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &Bus{config: config.withDefaults(), client: client, watch: newStreamWatch(blocking),
		pending: &pendings{client: client, within: pendingWithin, every: claimInterval}, running: make(chan struct{})}, nil
}

func (c BusConfig) withDefaults() BusConfig {
	c.Attempts = or(c.Attempts, 5)
	c.RetryInterval = or(c.RetryInterval, 200*time.Millisecond)
	c.MaxRetryInterval = or(c.MaxRetryInterval, 2*time.Second)
	c.NackPause = or(c.NackPause, time.Second)
	c.Patience = or(c.Patience, time.Hour)
	c.DrainTimeout = or(c.DrainTimeout, 10*time.Second)
	return c
}

func or[T int | time.Duration](value, fallback T) T {
	if value <= 0 {
		return fallback
	}
	return value
}

// Close frees the connections; call it after Run has returned.
func (b *Bus) Close() error { return errors.Join(b.client.Close(), b.watch.client.Close()) }

// Publish appends events to their streams, up to a thousand per round trip. On error some of the
// events may have been published; publishing all of them again is safe because handlers are
// idempotent. Publish returns [ErrUnavailable] when Redis does not answer.
func (b *Bus) Publish(ctx context.Context, events []Event) error {
	for len(events) > 0 {
		n := min(len(events), publishChunk)
		if err := b.publish(ctx, events[:n]); err != nil {
			return fmt.Errorf("publish events: %w: %w", ErrUnavailable, err)
		}
		events = events[n:]
	}
	return nil
}

func (b *Bus) publish(ctx context.Context, events []Event) error {
	add := func(p goredis.Pipeliner) error {
		for _, e := range events {
			m := message.NewMessage(e.ID, e.Payload)
			m.Metadata = e.Metadata
			values, err := redisstream.DefaultMarshallerUnmarshaller{}.Marshal(e.Topic, m)
			if err != nil {
				return err
			}
			p.XAdd(ctx, &goredis.XAddArgs{Stream: e.Topic, Values: values})
		}
		return nil
	}
	return killpoint.Around("events.publish", func() error {
		_, err := b.client.Pipelined(ctx, add)
		return err
	})
}

// Run serves all handlers until ctx ends. It then lets running handlers finish and acknowledges
// their events. After every failure of Redis, an emptied Redis included, Run subscribes again.
// Run returns nil, and not before ctx ends.
func (b *Bus) Run(ctx context.Context) error {
	if b.started.Swap(true) {
		return errors.New("event bus: Run was called twice")
	}
	if len(b.subscriptions) == 0 {
		close(b.running)
	}
	var all sync.WaitGroup
	b.watch.start(ctx, b.subscribed())
	if len(b.pending.groups) > 0 {
		all.Go(func() { b.pending.watch(ctx) })
	}
	for _, s := range b.subscriptions {
		all.Go(func() { s.supervise(ctx) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// subscribed returns the topics of all subscriptions, each once.
func (b *Bus) subscribed() (topics []string) {
	for _, s := range b.subscriptions {
		topics = append(topics, s.topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// Running is closed once every handler has been subscribed for the first time.
func (b *Bus) Running() <-chan struct{} { return b.running }

// subscribedOnce counts down to [Bus.Running].
func (b *Bus) subscribedOnce() {
	if b.missing.Add(-1) == 0 {
		close(b.running)
	}
}

// Health returns an error that names the handlers without a subscription at this moment; nil
// means that all handlers have a subscription.
func (b *Bus) Health() error {
	var errs []error
	for _, s := range b.subscriptions {
		if !s.connected.Load() {
			errs = append(errs, fmt.Errorf("handler %s is not subscribed to %s", s.handler, s.topic))
		}
	}
	return errors.Join(errs...)
}
