package stories

import (
	"context"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
)

// limited is a forecast of mails that two domains and a warm-up plan limit.
func limited() []forecast.ChannelForecast {
	opens := Now().Add(time.Hour)
	f := forecast.Forecaster{Store: someMails{{TemplateID: 1, Name: "Moon cake night", Slot: 1, Channel: delivery.Email, DueAt: opens.Add(-5 * time.Minute), Deadline: opens, Messages: 96_000}}, Now: Now,
		Mails: forecast.Mails{PerSecond: map[string]int{"qq.com": 50, "gmail.com": 200}, WarmUp: delivery.WarmUp{Start: Now().Add(-96 * time.Hour), First: 20_000, Factor: 1.5},
			Sent: func(context.Context, time.Time) (int64, error) { return 4_000, nil },
			Shares: func(context.Context, []string) (map[string]float64, error) {
				return map[string]float64{"qq.com": 0.5, "gmail.com": 0.1}, nil
			}}}
	list, err := f.Forecast(context.Background(), 24*time.Hour)
	if err != nil {
		panic(err)
	}
	return list
}

// someMails are the jobs of a forecast whose channels have their assumed rates.
type someMails []forecast.Job

func (s someMails) Jobs(context.Context, time.Time) ([]forecast.Job, error) { return s, nil }
func (s someMails) Rates(context.Context) (measured [delivery.Channels]forecast.Throughput, limits [delivery.Channels]float64, err error) {
	return measured, limits, nil
}
func (s someMails) AndroidShares(context.Context) (map[string]float64, error) { return nil, nil }
