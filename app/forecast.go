package app

import (
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
)

// Forecaster returns what forecasts reminders, with the limits of the environment.
func (a *App) Forecaster() *reminder.Forecaster {
	store := dropsdb.NewForecasts(a.DB)
	return &reminder.Forecaster{Store: store, Now: Clock, AndroidPerSecond: a.Config.AndroidPerSecond(),
		Mails: reminder.Mails{PerSecond: a.Config.Mail.DomainRates, WarmUp: a.Config.Mail.WarmUp, Sent: deliverydb.NewWarmUps(a.DB).Sent, Shares: store.MailShares}}
}
