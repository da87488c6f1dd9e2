package app

import (
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/reminder"
)

// sharesLife is how old the shares of mail domains may be: a page that shows a forecast asks
// every few seconds.
const sharesLife = 10 * time.Minute

// Forecaster returns what forecasts reminders, with the limits of the environment.
func (a *App) Forecaster() *reminder.Forecaster {
	store := dropsdb.NewForecasts(a.DB)
	return &reminder.Forecaster{Store: store, Now: Clock, AndroidPerSecond: a.Config.AndroidPerSecond(),
		Mails: reminder.Mails{PerSecond: a.Config.Mail.DomainRates, WarmUp: a.Config.Mail.WarmUp, Sent: deliverydb.NewWarmUps(a.DB).Sent, Shares: reminder.KeptShares(sharesLife, Clock, store.MailShares)}}
}
