package app

import (
	"cmp"
	"context"

	"dropbell/adapters/redis"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
)

// Circuits returns one circuit per channel, in channel order. A channel may have several
// providers, see [provider.Reached]; its circuit is the best circuit among them. A channel's
// circuit is therefore open only when the circuits of all its providers are open. environment
// are the channels that the environment configures.
func (a *App) Circuits(ctx context.Context, environment delivery.ChannelSet) ([]redis.State, error) {
	breaker := redis.NewBreaker(a.Shared, redis.BreakerConfig{})
	states, err := breaker.States(ctx)
	if err != nil {
		return nil, err
	}
	all, err := a.Stores.Providers.All(ctx)
	if err != nil {
		return nil, err
	}
	for i, own := range states {
		for n, id := range provider.Reached(all, own.Channel, environment.Has(own.Channel)) {
			one := own
			if id != 0 {
				if one, err = breaker.Of(id).State(ctx, own.Channel); err != nil {
					return nil, err
				}
			}
			if n == 0 || better(one, states[i]) {
				states[i] = one
			}
		}
	}
	return states, nil
}

// FailingPushProviders returns the enabled providers of push whose circuit is not closed. A
// half-open circuit counts as failing: a provider stays half open after a pause until its next
// message. A failing provider holds up only the devices of its own app, so the channel's circuit
// does not show the failure.
func (a *App) FailingPushProviders(ctx context.Context) (failing []provider.Provider, err error) {
	all, err := a.Stores.Providers.All(ctx)
	if err != nil {
		return nil, err
	}
	breaker := redis.NewBreaker(a.Shared, redis.BreakerConfig{})
	for _, p := range all {
		if !p.Enabled || p.Kind.Shares() {
			continue
		}
		state, err := breaker.Of(p.ID).State(ctx, p.Channel)
		if err != nil {
			return nil, err
		}
		if state.State != redis.StateClosed {
			failing = append(failing, p)
		}
	}
	return failing, nil
}

// better reports whether a lets messages through sooner than b.
func better(a, b redis.State) bool {
	rank := map[string]int{redis.StateClosed: 0, redis.StateHalfOpen: 1, redis.StateOpen: 2}
	return cmp.Or(cmp.Compare(rank[a.State], rank[b.State]), a.HeldUntil.Compare(b.HeldUntil)) < 0
}
