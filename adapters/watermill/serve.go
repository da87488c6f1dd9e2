package watermill

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"dropbell/domain/fault"

	"github.com/ThreeDotsLabs/watermill-redisstream/pkg/redisstream"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

const (
	deadTimeout = 10 * time.Second
	maxReason   = 8 << 10
	// foreignKey is the key in a message's metadata of an entry that is not an event. Its value
	// is the reason.
	foreignKey = "dropbell_foreign"
)

// attempt calls h once and measures it.
func (s *subscription) attempt(h HandlerFunc) message.HandlerFunc {
	return func(m *message.Message) (_ []*message.Message, err error) {
		started, hook := time.Now(), s.bus.config.Metrics.Handled
		ctx, done := s.trace(m)
		err = errors.New("panic")
		defer func() {
			done(err)
			if hook != nil {
				hook(s.handler, s.topic, time.Since(started), err)
			}
		}()
		err = h(ctx, s.event(m))
		return nil, err
	}
}

func (s *subscription) trace(m *message.Message) (context.Context, func(error)) {
	if s.bus.config.Trace == nil {
		return m.Context(), func(error) {}
	}
	return s.bus.config.Trace(m.Context(), s.handler+" "+s.topic, m.Metadata)
}

func (s *subscription) event(m *message.Message) Event {
	return Event{ID: m.UUID, Topic: s.topic, Payload: m.Payload, Metadata: m.Metadata}
}

// retrying makes one round of attempts. Each attempt has its own time-out, so the retry must
// replace the context that the attempt before used up.
func (s *subscription) retrying(h HandlerFunc, timeout time.Duration) message.HandlerFunc {
	c := s.bus.config
	retry := middleware.Retry{
		MaxRetries:      c.Attempts - 1,
		InitialInterval: c.RetryInterval,
		MaxInterval:     c.MaxRetryInterval,
		// With ShouldRetry set the library multiplies the interval twice per attempt: 1.4 twice
		// is about 2.
		Multiplier:          1.4,
		RandomizationFactor: 0.3,
		ResetContextOnRetry: true,
		ShouldRetry:         func(p middleware.RetryParams) bool { return !givesUp(p.Err) },
		Logger:              logAdapter{s.logger},
	}
	return retry.Middleware(middleware.Timeout(timeout)(middleware.Recoverer(s.attempt(h))))
}

// salvaging stores an event that next could not handle as a dead message. If salvaging returns
// an error, storing failed as well, and the event must be delivered again.
func (s *subscription) salvaging(next message.HandlerFunc) message.HandlerFunc {
	return middleware.Recoverer(func(m *message.Message) ([]*message.Message, error) {
		// The attempts leave a context behind that has ended.
		ctx := m.Context()
		var err error
		if why, foreign := m.Metadata[foreignKey]; foreign {
			err = errors.New(why)
		} else {
			_, err = next(m)
		}
		if err == nil {
			return nil, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if s.waits(m.UUID, err) {
			return nil, err
		}
		return nil, s.deadLetter(ctx, m, err)
	})
}

// waits reports whether the event is to be delivered again because a service that its handler
// needs (PostgreSQL or Redis) is unavailable, which is not the event's fault. An event that
// finds the service unavailable for as long as [BusConfig.Patience] is given up; that needs a
// database that stores the dead message.
func (s *subscription) waits(id string, err error) bool {
	if fault.KindOf(err) != fault.Unavailable {
		return false
	}
	if s.away.id != id {
		s.away.id, s.away.since = id, time.Now()
	}
	return time.Since(s.away.since) < s.bus.config.Patience
}

func (s *subscription) deadLetter(ctx context.Context, m *message.Message, reason error) error {
	ctx, cancel := context.WithTimeout(ctx, deadTimeout)
	defer cancel()
	dead := DeadMessage{Event: s.event(m), Handler: s.handler, Reason: clean(reason.Error())}
	dead.ID = clean(dead.ID)
	if err := s.bus.config.DeadMessage(ctx, dead); err != nil {
		return fmt.Errorf("keep dead message: %w", err)
	}
	s.logger.ErrorContext(ctx, "event given up and kept as dead message", "event", dead.ID, "error", reason)
	if hook := s.bus.config.Metrics.Dead; hook != nil {
		hook(s.handler, s.topic)
	}
	return nil
}

// clean makes text fit for a database column.
func clean(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text, "\x00", ""), "")
}

// listening never fails: an event is given to a listener once.
func (s *subscription) listening(h HandlerFunc) message.HandlerFunc {
	once := middleware.Timeout(attemptTimeout)(middleware.Recoverer(s.attempt(h)))
	return func(m *message.Message) ([]*message.Message, error) {
		if _, foreign := m.Metadata[foreignKey]; foreign {
			return nil, nil
		}
		if _, err := once(m); err != nil {
			s.logger.Warn("listener failed", "event", m.UUID, "error", err)
		}
		return nil, nil
	}
}

func givesUp(err error) bool {
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound, fault.Conflict:
		return true
	default:
		return false
	}
}

// unmarshaller parses entries as the library does, but passes an entry that it cannot parse on
// as a marked message. The library would end the subscription at such an entry, and again at
// every later start.
type unmarshaller struct{}

// Unmarshal implements the library's interface and never fails.
func (unmarshaller) Unmarshal(values map[string]any) (*message.Message, error) {
	m, err := redisstream.DefaultMarshallerUnmarshaller{}.Unmarshal(values)
	if err == nil {
		return m, nil
	}
	payload, jsonErr := json.Marshal(values)
	if jsonErr != nil {
		payload = nil
	}
	// Always the same id for the same entry, so that keeping it is idempotent.
	sum := sha256.Sum256(payload)
	m = message.NewMessage("foreign-"+hex.EncodeToString(sum[:16]), payload)
	m.Metadata.Set(foreignKey, "not an event: "+err.Error())
	return m, nil
}
