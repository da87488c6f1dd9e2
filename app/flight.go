package app

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/flight"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
)

// A Flight is what flight checks need besides the stores.
type Flight struct {
	Doors      *door.Service
	Forecaster *forecast.Forecaster
	Texts      message.Source
	Channels   func(context.Context) (delivery.ChannelSet, error)
	Links      flight.Caller
	Now        func() time.Time
}

// NewFlight returns the flight checks of drops on the stores.
func NewFlight(stores Stores, f Flight) *flight.Service {
	return &flight.Service{Store: stores.Flights, Templates: stores.Templates, Doors: f.Doors, Forecaster: f.Forecaster, Capacities: stores.Forecasts, Texts: f.Texts, Budgets: stores.Budgets,
		Channels: f.Channels, Links: f.Links, Processes: func(ctx context.Context) (int, error) { return stores.Processes.Running(ctx, "web") }, Now: f.Now}
}

// Provided returns the channels that have an enabled provider for all shops.
func (a *App) Provided(ctx context.Context) (set delivery.ChannelSet, err error) {
	list, err := a.Stores.Providers.All(ctx)
	for _, one := range list {
		if one.Enabled && one.Shop == 0 {
			set |= delivery.ChannelSetOf(one.Channel)
		}
	}
	return set, err
}
