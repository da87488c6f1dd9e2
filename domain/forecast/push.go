package forecast

import (
	"context"

	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// A PushQuota is how many messages per second an account at the push service of Android phones
// accepts. For several accounts of one app the smallest quota applies.
type PushQuota struct {
	provider.Account
	PerSecond float64
}

// withinQuotas returns the rate r, lowered if the quota of an app would be exceeded by the share
// of messages to its Android phones.
func (f *Forecaster) withinQuotas(ctx context.Context, jobs []Job, r Rate) (Rate, error) {
	if f.Quotas == nil {
		return r, nil
	}
	quotas, err := f.Quotas(ctx)
	if err != nil || len(quotas) == 0 {
		return r, err
	}
	shares, err := f.Store.AndroidShares(ctx)
	if err != nil {
		return r, err
	}
	loads := loadsOf(quotas, shares, jobs)
	for _, q := range quotas {
		if load := loads[q.App.Name]; load > 0 && q.PerSecond/load < r.PerSecond {
			r = Rate{q.PerSecond / load, Quota}
		}
	}
	return r, nil
}

// loadsOf returns which part of the jobs' messages each app's quota is used for.
func loadsOf(quotas []PushQuota, shares map[string]float64, jobs []Job) map[string]float64 {
	accounts := make([]provider.Account, len(quotas))
	for i, q := range quotas {
		accounts[i] = q.Account
	}
	var all int64
	of := map[int64]int64{} // messages by shop
	for _, j := range jobs {
		all += j.Messages
		of[j.Shop] += j.Messages
	}
	loads := map[string]float64{}
	for shop, messages := range of {
		for app, share := range shares {
			if places := provider.Reach(accounts, shop, user.Device{Platform: user.Android, App: app}); len(places) > 0 {
				loads[accounts[places[0]].App.Name] += share * float64(messages) / float64(max(1, all))
			}
		}
	}
	return loads
}
