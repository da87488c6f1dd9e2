package program

import (
	"context"

	"dropbell/app"
	"dropbell/domain/delivery"
	consoledelivery "dropbell/web/console/delivery"
)

// circuits returns the circuit breakers of the channels, see [app.App.Circuits].
func (p *program) circuits() consoledelivery.Circuits {
	return func(ctx context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		states, err := p.Circuits(ctx, app.Configured(p.Config))
		for _, s := range states {
			all[s.Channel] = delivery.Circuit{State: s.State, Failures: s.Failures, Until: s.Until, Detail: s.Detail}
			if s.HeldUntil.After(app.Clock()) {
				all[s.Channel].HeldUntil = s.HeldUntil
			}
		}
		return all, err
	}
}
