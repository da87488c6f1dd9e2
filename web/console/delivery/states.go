package delivery

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/web/console/shell"
)

// statesLife is how old the channels' states may be that pages show.
const statesLife = 900 * time.Millisecond

// ChannelSettings stores the operators' settings of channels, and reads the health of channels.
type ChannelSettings interface {
	Settings
	Backlogs(ctx context.Context) ([]delivery.Backlog, error)
	// Providers returns how the calls of the channels' providers went lately.
	Providers(ctx context.Context) ([delivery.Channels]delivery.ProviderHealth, error)
}

// Circuits returns the circuit breakers of all channels.
type Circuits func(ctx context.Context) ([delivery.Channels]delivery.Circuit, error)

// NewStates returns the states of all channels; configured are the channels with a sender. If the
// breakers cannot be read because Redis does not answer, only the breakers are missing. complete
// adds further values; it may be nil.
func NewStates(store ChannelSettings, breakers Circuits, configured delivery.Available, complete func(context.Context, *[delivery.Channels]delivery.ChannelStatus) error) *shell.ChannelStates {
	return shell.NewRecent(statesLife, func(ctx context.Context) (all [delivery.Channels]delivery.ChannelStatus, err error) {
		settings, err := store.Settings(ctx)
		if err != nil {
			return all, err
		}
		backlogs, err := store.Backlogs(ctx)
		if err != nil {
			return all, err
		}
		providers, err := store.Providers(ctx)
		if err != nil {
			return all, err
		}
		circuits, unknown := breakers(ctx)
		for i, ch := range delivery.AllChannels() {
			all[i] = delivery.ChannelStatus{Setting: settings[i], Configured: configured.Has(ch), Provider: providers[i],
				CircuitKnown: unknown == nil, Circuit: circuits[i], Backlog: delivery.Backlog{Channel: ch}}
		}
		for _, b := range backlogs {
			all[b.Channel].Backlog = b
		}
		if complete != nil {
			err = complete(ctx, &all)
		}
		return all, err
	})
}
