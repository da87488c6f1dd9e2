package watermill

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	goredis "github.com/redis/go-redis/v9"
)

const (
	// lookAgain is the time, randomly up to doubled, after which a reader without events looks
	// by itself. Normally a [streamWatch] notices new entries earlier, within seconds.
	lookAgain     = 30 * time.Second
	claimInterval = 5 * time.Second
	firstPause    = 50 * time.Millisecond
	longestPause  = 5 * time.Second
	// A subscription that lasted this long starts with the first pause again.
	soundAfter     = 10 * time.Second
	attemptTimeout = 10 * time.Second
)

// A HandlerFunc handles one event. An error of kind Invalid, NotFound or Conflict gives the
// event up at once; an error of kind Unavailable gives it up after [BusConfig.Patience]. After
// any other error, a panic included, the event is tried again a few times. The context ends with
// the attempt's time-out.
type HandlerFunc func(ctx context.Context, e Event) error

// An Option changes how a handler is served.
type Option func(*options)

type options struct {
	parallel int
	timeout  time.Duration
	ahead    bool
}

// Parallel lets n events be handled at a time in this process; the default is 1. With n above 1,
// events are handled out of order even within the process.
func Parallel(n int) Option { return func(o *options) { o.parallel = max(1, n) } }

// Timeout bounds one attempt; the default is 10 s.
func Timeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// Ahead is for handlers that ignore nearly all events. While each event takes less than two
// milliseconds, 32 events are read at a time and acknowledged together. Up to 31 events may wait
// behind a slower event. After a crash these events are delivered again.
func Ahead() Option { return func(o *options) { o.ahead = true } }

// Handle gives every event of topic to h once over all processes: handlers of one name share a
// consumer group, which begins with the oldest event kept. Handle panics when name already
// handles topic or [BusConfig.DeadMessage] is not set. It must not be called after [Bus.Run].
func (b *Bus) Handle(name, topic string, h HandlerFunc, opts ...Option) {
	if b.config.DeadMessage == nil {
		panic("watermill: handler " + name + " without a place for dead messages")
	}
	o := options{parallel: 1, timeout: attemptTimeout}
	for _, opt := range opts {
		opt(&o)
	}
	for i := range o.parallel {
		s := b.subscription(name, topic)
		s.group = name
		s.consumer = b.config.Consumer + "-" + strconv.Itoa(i)
		s.claimAfter = b.longestRound(o.timeout)
		s.readsAhead = o.ahead
		s.serve = s.salvaging(s.retrying(h, o.timeout))
		b.add(s, i == 0)
	}
}

// Listen gives every event of topic that is published from now on to h in this process; every
// process that listens gets every event. Listen is for caches and live views: an event whose
// handling fails is logged and not repeated, and events published while the process is not
// running are missed. Listen panics when name already listens to topic. It must not be called
// after [Bus.Run].
func (b *Bus) Listen(name, topic string, h HandlerFunc) {
	s := b.subscription(name, topic)
	s.serve = s.listening(h)
	b.add(s, true)
}

// longestRound is how long all attempts of one delivery may take. Taking an event away from its
// consumer earlier would have two consumers handle it at a time.
func (b *Bus) longestRound(timeout time.Duration) time.Duration {
	return time.Duration(b.config.Attempts) * (timeout + b.config.MaxRetryInterval*3/2)
}

func (b *Bus) subscription(name, topic string) *subscription {
	s := &subscription{bus: b, handler: name, topic: topic,
		logger: b.config.Logger.With("handler", name, "topic", topic)}
	s.acks.send = s.acknowledge
	return s
}

func (b *Bus) add(s *subscription, first bool) {
	for _, other := range b.subscriptions {
		if first && other.handler == s.handler && other.topic == s.topic {
			panic("watermill: " + s.handler + " handles " + s.topic + " twice")
		}
	}
	b.subscriptions = append(b.subscriptions, s)
	if first && s.group != "" {
		b.pending.groups = append(b.pending.groups, consumerGroup{s.topic, s.group})
	}
	b.missing.Add(1)
}

// A subscription reads one stream for one handler, one event at a time.
type subscription struct {
	bus      *Bus
	handler  string
	topic    string
	group    string // "" = every process gets each event
	consumer string
	serve    message.HandlerFunc
	// claimAfter is how long an event may stay with a silent consumer before another consumer
	// takes it over.
	claimAfter time.Duration
	logger     *slog.Logger

	// readsAhead is set by [Ahead]. ahead and acks are used only if it is set; they outlive a
	// lost connection.
	readsAhead bool
	ahead      ahead
	acks       acks
	// away is the event whose handler found PostgreSQL or Redis away, and since when.
	away struct {
		id    string
		since time.Time
	}
	// quick says that the last event was handled [quickly].
	quick     atomic.Bool
	connected atomic.Bool
	// position is a listener's position in the stream; "" before the first
	// subscription.
	position atomic.Pointer[string]
}

// supervise keeps s subscribed until ctx ends.
func (s *subscription) supervise(ctx context.Context) {
	defer s.acks.close()
	pause, first := firstPause, true
	for ctx.Err() == nil {
		started := time.Now()
		err := s.subscribe(ctx, func() {
			s.connected.Store(true)
			if first {
				s.bus.subscribedOnce()
			} else if hook := s.bus.config.Metrics.Resubscribed; hook != nil {
				hook(s.handler, s.topic)
			}
			first = false
		})
		s.connected.Store(false)
		if ctx.Err() != nil {
			return
		}
		if time.Since(started) > soundAfter {
			pause = firstPause
		}
		s.logger.Log(ctx, levelFor(pause), "event subscription lost; subscribing again", "pause", pause, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, longestPause)
	}
}

// levelFor returns the log level of a failure, so that an outage is one warning per handler and
// not one warning every few seconds.
func levelFor(pause time.Duration) slog.Level {
	if pause == firstPause {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// subscribe serves events until the subscription breaks or ctx ends. It calls ready once it
// reads.
func (s *subscription) subscribe(ctx context.Context, ready func()) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	reads := newReads(s)
	subscriber, err := redisstream.NewSubscriber(s.libraryConfig(reads), logAdapter{s.logger})
	if err != nil {
		return fmt.Errorf("subscriber: %w", err)
	}
	// Handlers outlive ctx until they are drained.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	messages, err := subscriber.Subscribe(work, s.topic)
	if err != nil {
		return fmt.Errorf("subscribe: %w", closing(err, subscriber))
	}
	ready()
	unhook := context.AfterFunc(ctx, func() {
		defer cancel()
		s.drain(work, reads)
	})
	defer unhook()
	s.consume(messages)
	// Frees a reader that was held back for the drain.
	cancel()
	return closing(reads.lastError(), subscriber)
}

func closing(err error, subscriber *redisstream.Subscriber) error {
	if closeErr := subscriber.Close(); err == nil {
		return closeErr
	}
	return err
}

func (s *subscription) consume(messages <-chan *message.Message) {
	for m := range messages {
		started := time.Now()
		_, err := s.serve(m)
		s.quick.Store(err == nil && time.Since(started) < quickly)
		if err != nil {
			s.logger.Warn("event goes back", "event", m.UUID, "error", err)
			m.Nack()
			continue
		}
		m.Ack()
	}
}

func (s *subscription) libraryConfig(client goredis.UniversalClient) redisstream.SubscriberConfig {
	c := redisstream.SubscriberConfig{
		Client:          client,
		Unmarshaller:    unmarshaller{},
		ConsumerGroup:   s.group,
		Consumer:        s.consumer,
		NackResendSleep: s.bus.config.NackPause,
		ClaimInterval:   claimInterval,
		MaxIdleTime:     s.claimAfter,
		OldestId:        "0",
		// An endless first read could not be stopped.
		DisableIndefiniteInitialBlock: true,
		// By default the library would continue after any error, without end and twice a second,
		// even after NOGROUP, which requires a new subscription.
		ShouldStopOnReadErrors: func(error) bool { return true },
	}
	if position := s.position.Load(); position != nil {
		c.FanOutOldestId = *position
	}
	return c
}
