package program

import (
	"context"
	"log/slog"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/provider"
)

// settingsLife is how old the channel settings in use may be: an operator's
// pause takes effect within it.
const settingsLife = 500 * time.Millisecond

// pausedFor is how long a paused channel's batches are put off at a time.
const pausedFor = 3 * time.Second

// admission combines the limits of a channel: the operator's pause, the rate
// shared by all workers, the provider's circuit breaker, and the pause that the
// provider requested. If Redis does not answer, deliveries continue at this worker's part
// of the rates and without breaker.
type admission struct {
	channels deliverydb.Channels
	pacer    *redis.Pacer
	campaign *campaignGate
	breaker  *redis.CachedBreaker
	circuits *breakers
	routes   map[delivery.Channel]*provider.Router // may be nil
	log      *slog.Logger

	mu       sync.Mutex
	settings [delivery.Channels]delivery.Setting
	readAt   time.Time
}

func newAdmission(stores app.Stores, client goredis.UniversalClient, pacer *redis.Pacer, alone *redis.Alone, log *slog.Logger) *admission {
	circuits := newBreakers(client, alone, log)
	return &admission{channels: stores.Channels, pacer: pacer, campaign: newCampaignGate(stores.Campaigns, pacer),
		breaker: circuits.of(0), circuits: circuits, log: log}
}

// Admit returns zero if the load may go out now, else how long to wait and why.
func (a *admission) Admit(ctx context.Context, l delivery.Load) (time.Duration, string) {
	s := a.setting(ctx, l.Channel)
	if s.Paused {
		return pausedFor, delivery.ReasonChannelPaused
	}
	if l.Kind != delivery.KindCampaign {
		return a.admitChannel(ctx, l, s)
	}
	wait, reason, giveBack := a.campaign.admit(ctx, l, s.RatePerSecond)
	if wait > 0 {
		return wait, reason
	}
	if wait, reason = a.admitChannel(ctx, l, s); wait > 0 {
		giveBack()
	}
	return wait, reason
}

// admitChannel consults the provider's circuit breaker and the rate that all
// workers share. Several providers have circuit breakers of their own, which the
// router consults.
func (a *admission) admitChannel(ctx context.Context, l delivery.Load, s delivery.Setting) (time.Duration, string) {
	c := l.Channel
	if c == delivery.App && s.RatePerSecond == 0 {
		return 0, "" // no provider that could fail
	}
	routed := a.routed(c)
	if routed {
		if wait := a.routes[c].Admit(l.Shop); wait > 0 {
			return wait, delivery.ReasonProvider
		}
	} else if wait, state, err := a.breaker.Admit(ctx, c); err == nil && wait > 0 {
		if state == redis.StateHeld {
			return wait, delivery.ReasonThrottled
		}
		return wait, delivery.ReasonProvider
	}
	if wait := a.pacer.Admit(ctx, c, l.Messages, s.RatePerSecond); wait > 0 {
		if !routed {
			_ = a.breaker.Unused(ctx, c)
		}
		return wait, delivery.ReasonThrottled
	}
	return 0, ""
}

// routed reports whether staff have configured providers for the channel.
func (a *admission) routed(c delivery.Channel) bool {
	return a.routes[c] != nil && a.routes[c].Routed()
}

// Unused gives the rates and the circuit back what the load took of them. Permits that
// Redis does not take back are missing for a moment.
func (a *admission) Unused(ctx context.Context, l delivery.Load) {
	if l.Messages > 0 {
		if l.Kind == delivery.KindCampaign {
			a.campaign.unused(ctx, l)
		}
		a.pacer.Return(ctx, l.Channel, l.Messages, a.setting(ctx, l.Channel).RatePerSecond)
	}
	if l.Channel != delivery.App && !a.routed(l.Channel) {
		_ = a.breaker.Unused(ctx, l.Channel)
	}
}

// Report feeds the circuit breaker.
func (a *admission) Report(ctx context.Context, c delivery.Channel, call delivery.Call) {
	if c == delivery.App || call.Judged {
		return
	}
	breaker := a.breaker
	if call.Via != 0 {
		breaker = a.circuits.of(call.Via)
	}
	reportTo(ctx, breaker, a.log, c, call)
}

// setting returns the channel's settings, at most [settingsLife] old; when
// they cannot be read the last known ones stay in force.
func (a *admission) setting(ctx context.Context, c delivery.Channel) delivery.Setting {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.readAt) > settingsLife {
		if fresh, err := a.channels.Settings(ctx); err == nil {
			a.settings = fresh
		}
		a.readAt = time.Now()
	}
	return a.settings[c]
}
