package program

import (
	"context"

	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redis"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/web/console"
)

// wireCockpit adds what the pages of drops and channels stand on.
func (p *program) wireCockpit(d *console.Deps) {
	d.Cockpits = dropsdb.NewCockpits(p.DB)
	d.Control = &delivery.Control{Store: deliverydb.NewChannels(p.DB), Now: app.Clock}
	d.Tests = &delivery.ChannelTests{Store: deliverydb.NewChannelTests(p.DB), Configured: p.channels}
	breaker := redis.NewBreaker(p.Redis, redis.BreakerConfig{})
	d.Circuits = func(ctx context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		states, err := breaker.States(ctx)
		for _, s := range states {
			all[s.Channel] = delivery.Circuit{State: s.State, Failures: s.Failures, Until: s.Until, Detail: s.Detail}
			if s.HeldUntil.After(app.Clock()) {
				all[s.Channel].HeldUntil = s.HeldUntil
			}
		}
		return all, err
	}
}
