package app

import (
	"context"
	"time"

	"dropbell/domain/delivery/provider"
	"dropbell/domain/forecast"
	"dropbell/domain/user"
)

// sharesLife is the largest age of the shares of mail domains. contactsLife is the largest age
// of the part of a drop's bookings with a contact. A page with a forecast asks for both every
// few seconds.
const (
	sharesLife   = 10 * time.Minute
	contactsLife = time.Minute
)

// Forecaster returns the forecaster of reminders, with the limits of the environment.
func (a *App) Forecaster() *forecast.Forecaster {
	store := a.Stores.Forecasts
	contacts := func(ctx context.Context, templates []int64) (map[int64]forecast.Contacts, error) {
		return store.Contacts(ctx, templates, a.Config.SMS.VerifiedOnly)
	}
	return &forecast.Forecaster{Store: store, Past: store, Now: Clock, Quotas: a.pushQuotas, Contacts: forecast.KeptContacts(contactsLife, Clock, contacts),
		Mails: forecast.Mails{PerSecond: a.Config.Mail.DomainRates, WarmUp: a.Config.Mail.WarmUp, Sent: a.Stores.WarmUps.Sent, Shares: forecast.KeptShares(sharesLife, Clock, store.MailShares)}}
}

// Capacities returns what computes how many processes are wanted.
func (a *App) Capacities() *forecast.Capacities {
	return &forecast.Capacities{Store: a.Stores.Forecasts, Campaigns: a.Stores.Campaigns.Ahead, Forecaster: a.Forecaster(), Now: Clock}
}

// pushQuotas returns the quotas of the Firebase projects of the environment and of the enabled
// providers.
func (a *App) pushQuotas(ctx context.Context) (quotas []forecast.PushQuota, err error) {
	if perSecond := a.Config.AndroidPerSecond(); perSecond > 0 {
		quotas = append(quotas, forecast.PushQuota{Account: provider.Account{App: provider.App{Platform: user.Android, Name: a.Config.FCMProject()}}, PerSecond: perSecond})
	}
	list, err := a.Stores.Providers.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range list {
		if perMinute, err := PerMinute(p); err == nil && p.Enabled && p.Kind == provider.FCM {
			quotas = append(quotas, forecast.PushQuota{Account: p.Account(), PerSecond: float64(perMinute) / 60})
		}
	}
	return quotas, nil
}
