package program

import (
	"context"
	"log/slog"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
)

// breakers are the circuit breakers of all providers, see [provider.Circuits]. If Redis
// does not answer, calls are made: a late message is worse.
type breakers struct {
	breaker *redis.Breaker
	alone   *redis.Alone
	log     *slog.Logger

	mu     sync.Mutex
	cached map[int64]*redis.CachedBreaker
}

func newBreakers(client goredis.UniversalClient, alone *redis.Alone, log *slog.Logger) *breakers {
	return &breakers{breaker: redis.NewBreaker(client, redis.BreakerConfig{}), alone: alone, log: log, cached: map[int64]*redis.CachedBreaker{}}
}

// of returns the circuit breaker of a provider.
func (c *breakers) of(id int64) *redis.CachedBreaker {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cached[id] == nil {
		c.cached[id] = redis.NewCachedBreaker(c.breaker.Of(id), c.alone)
	}
	return c.cached[id]
}

// Admit is part of [provider.Circuits].
func (c *breakers) Admit(ctx context.Context, channel delivery.Channel, id int64) time.Duration {
	wait, _, err := c.of(id).Admit(ctx, channel)
	if err != nil {
		return 0
	}
	return wait
}

// Unused is part of [provider.Circuits].
func (c *breakers) Unused(ctx context.Context, channel delivery.Channel, id int64) {
	_ = c.of(id).Unused(ctx, channel) // the probe's lease ends by itself
}

// Report is part of [provider.Circuits].
func (c *breakers) Report(ctx context.Context, channel delivery.Channel, id int64, call delivery.Call) {
	call.Via = id
	reportTo(ctx, c.of(id), c.log, channel, call)
}

// reportTo tells a circuit breaker how a call went.
func reportTo(ctx context.Context, breaker *redis.CachedBreaker, log *slog.Logger, c delivery.Channel, call delivery.Call) {
	var err error
	if call.Throttled {
		log.Info("the provider asks to be left alone", "channel", c.String(), "provider", call.Via, "after", call.After.String())
		err = breaker.Throttled(ctx, c, call.After)
	} else {
		err = breaker.Report(ctx, c, call.OK, call.Detail)
	}
	if err != nil {
		log.Debug("circuit breaker did not take a report", "channel", c.String(), "provider", call.Via, "error", err)
	}
}
