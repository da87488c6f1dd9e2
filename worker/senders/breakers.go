package senders

import (
	"context"
	"log/slog"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
)

// Breakers are the circuit breakers of all providers; see [provider.Circuits]. If Redis does not
// answer, calls are made all the same: a late message is worse.
type Breakers struct {
	breaker *redis.Breaker
	alone   *redis.Alone
	log     *slog.Logger

	mu     sync.Mutex
	cached map[int64]*redis.CachedBreaker
}

// NewBreakers returns the circuit breakers that are kept in Redis. alone replaces them while
// Redis does not answer.
func NewBreakers(client goredis.UniversalClient, alone *redis.Alone, log *slog.Logger) *Breakers {
	return &Breakers{breaker: redis.NewBreaker(client, redis.BreakerConfig{}), alone: alone, log: log, cached: map[int64]*redis.CachedBreaker{}}
}

// Of returns the circuit breaker of a provider.
func (c *Breakers) Of(id int64) *redis.CachedBreaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached[id] == nil {
		c.cached[id] = redis.NewCachedBreaker(c.breaker.Of(id), c.alone)
	}
	return c.cached[id]
}

// Admit is part of [provider.Circuits].
func (c *Breakers) Admit(ctx context.Context, channel delivery.Channel, id int64) time.Duration {
	wait, _, err := c.Of(id).Admit(ctx, channel)
	if err != nil {
		return 0
	}
	return wait
}

// Unused is part of [provider.Circuits].
func (c *Breakers) Unused(ctx context.Context, channel delivery.Channel, id int64) {
	_ = c.Of(id).Unused(ctx, channel) // the probe's lease ends by itself
}

// Report is part of [provider.Circuits].
func (c *Breakers) Report(ctx context.Context, channel delivery.Channel, id int64, call delivery.Call) {
	call.Via = id
	c.ReportOf(ctx, channel, call)
}

// ReportOf tells the circuit breaker of the call's provider how the call went.
func (c *Breakers) ReportOf(ctx context.Context, channel delivery.Channel, call delivery.Call) {
	var err error
	breaker := c.Of(call.Via)
	if call.Throttled {
		c.log.Info("the provider asks to be left alone", "channel", channel.String(), "provider", call.Via, "after", call.After.String())
		err = breaker.Throttled(ctx, channel, call.After)
	} else {
		err = breaker.Report(ctx, channel, call.OK, call.Detail)
	}
	if err != nil {
		c.log.Debug("circuit breaker did not take a report", "channel", channel.String(), "provider", call.Via, "error", err)
	}
}
