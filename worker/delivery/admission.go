package delivery

import (
	"context"
	"sync"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
)

// settingsLife is how old the cached channel settings may be. An operator's pause takes effect
// within this time.
const settingsLife = 500 * time.Millisecond

// pausedFor is how long a paused channel's batches are put off at a time.
const pausedFor = 3 * time.Second

// Admission combines the limits of a channel: the operator's pause, the rate shared by all
// workers, the provider's circuit breaker, and the pause that the provider requested. If Redis
// does not answer, deliveries continue at this worker's part of the rates and without a circuit
// breaker.
type Admission struct {
	channels deliverydb.Channels
	pacer    *redis.Pacer
	campaign CampaignLimits
	circuits Circuits
	routes   map[delivery.Channel]*provider.Router

	mu       sync.Mutex
	settings [delivery.Channels]delivery.Setting
	readAt   time.Time
}

// CampaignLimits decide when messages of campaigns may go out.
type CampaignLimits interface {
	// Admit returns a wait of zero if the load may be sent, and then taken, which gives back the
	// load's share of the campaign's budget. Call taken if another limit refuses the load.
	Admit(ctx context.Context, l delivery.Load, channelRate int) (wait time.Duration, reason string, taken func())
	// Unused returns the load's share to its campaign's budget.
	Unused(ctx context.Context, l delivery.Load)
}

// Circuits are the circuit breakers of all providers; 0 is the environment's.
type Circuits interface {
	Of(id int64) *redis.CachedBreaker
	ReportOf(ctx context.Context, c delivery.Channel, call delivery.Call)
}

// NewAdmission returns the limits of all channels. routes are the routers of the channels; the
// providers of a router have circuit breakers of their own.
func NewAdmission(channels deliverydb.Channels, pacer *redis.Pacer, campaigns CampaignLimits, circuits Circuits, routes map[delivery.Channel]*provider.Router) *Admission {
	return &Admission{channels: channels, pacer: pacer, campaign: campaigns, circuits: circuits, routes: routes}
}

// Admit returns zero if the load may go out now, otherwise how long it must wait and the reason.
func (a *Admission) Admit(ctx context.Context, l delivery.Load) (time.Duration, string) {
	s := a.setting(ctx, l.Channel)
	if s.Paused {
		return pausedFor, delivery.ReasonChannelPaused
	}
	if l.Kind != delivery.KindCampaign {
		return a.admitChannel(ctx, l, s)
	}
	wait, reason, giveBack := a.campaign.Admit(ctx, l, s.RatePerSecond)
	if wait > 0 {
		return wait, reason
	}
	if wait, reason = a.admitChannel(ctx, l, s); wait > 0 {
		giveBack()
	}
	return wait, reason
}

// admitChannel consults the provider's circuit breaker and the rate that all workers share. A
// channel with configured providers has a circuit breaker for each provider; the router consults
// these.
func (a *Admission) admitChannel(ctx context.Context, l delivery.Load, s delivery.Setting) (time.Duration, string) {
	c := l.Channel
	if c == delivery.App && s.RatePerSecond == 0 {
		return 0, "" // no provider that could fail
	}
	routed := a.routed(c)
	if routed {
		if wait := a.routes[c].Admit(l.Shop); wait > 0 {
			return wait, delivery.ReasonProvider
		}
	} else if wait, state, err := a.circuits.Of(0).Admit(ctx, c); err == nil && wait > 0 {
		if state == redis.StateHeld {
			return wait, delivery.ReasonThrottled
		}
		return wait, delivery.ReasonProvider
	}
	if wait := a.pacer.Admit(ctx, c, l.Messages, s.RatePerSecond); wait > 0 {
		if !routed {
			_ = a.circuits.Of(0).Unused(ctx, c)
		}
		return wait, delivery.ReasonThrottled
	}
	return 0, ""
}

// routed reports whether staff have configured providers for the channel.
func (a *Admission) routed(c delivery.Channel) bool {
	return a.routes[c] != nil && a.routes[c].Routed()
}

// Unused returns the permits of a load that was not sent to the rates and to the circuit
// breaker. If Redis does not take the permits back, they are missing until the rate refills.
func (a *Admission) Unused(ctx context.Context, l delivery.Load) {
	if l.Messages > 0 {
		if l.Kind == delivery.KindCampaign {
			a.campaign.Unused(ctx, l)
		}
		a.pacer.Return(ctx, l.Channel, l.Messages, a.setting(ctx, l.Channel).RatePerSecond)
	}
	if l.Channel != delivery.App && !a.routed(l.Channel) {
		_ = a.circuits.Of(0).Unused(ctx, l.Channel)
	}
}

// Report feeds the circuit breaker.
func (a *Admission) Report(ctx context.Context, c delivery.Channel, call delivery.Call) {
	if c == delivery.App || call.Judged {
		return
	}
	a.circuits.ReportOf(ctx, c, call)
}

// setting returns the channel's settings, at most [settingsLife] old. While they cannot be read,
// the last known settings stay in force.
func (a *Admission) setting(ctx context.Context, c delivery.Channel) delivery.Setting {
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
