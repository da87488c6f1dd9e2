package forecast_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/forecast"
	"dropbell/domain/user"
)

// quotaOf is the quota of a Firebase project, of the environment if id is 0.
func quotaOf(id, shop int64, project string, perSecond float64) forecast.PushQuota {
	return forecast.PushQuota{Account: provider.Account{ID: id, Shop: shop, App: provider.App{Platform: user.Android, Name: project}}, PerSecond: perSecond}
}

// pushes is a forecaster of pushes at 25,000 a second without quotas.
func pushes(store *rates, jobs []forecast.Job, quotas ...forecast.PushQuota) func(t *testing.T) forecast.ChannelForecast {
	for i := range jobs {
		jobs[i].Channel = delivery.WebPush
	}
	store.jobs, store.measured[delivery.WebPush] = jobs, 25_000
	f := &forecast.Forecaster{Store: store, Now: func() time.Time { return noon }, Quotas: func(context.Context) ([]forecast.PushQuota, error) { return quotas, nil }}
	return func(t *testing.T) forecast.ChannelForecast {
		t.Helper()
		all, err := f.Forecast(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return all[delivery.WebPush]
	}
}

// TestTheQuotaOfAndroidPhones: 1,200,000 reminders that all go to Android phones take two minutes
// at 600,000 a minute, whatever the channel's rate is.
func TestTheQuotaOfAndroidPhones(t *testing.T) {
	store := &rates{}
	outlook := pushes(store, []forecast.Job{job(0, 5*time.Minute, 1_200_000)}, quotaOf(0, 0, "shop", 10_000))
	store.android = map[string]float64{"": 0.75, "shop": 0.25, "unknown": 1}
	if p := outlook(t); p.Rate != (forecast.Rate{PerSecond: 10_000, Source: forecast.Quota}) || p.Jobs[0].FinishAt.Sub(p.Jobs[0].StartAt) != 2*time.Minute {
		t.Errorf("all on Android: %+v", p)
	}
	store.android = map[string]float64{"": 0.5}
	if p := outlook(t); p.Rate != (forecast.Rate{PerSecond: 20_000, Source: forecast.Quota}) {
		t.Errorf("half on Android: %+v", p.Rate)
	}
	store.android = map[string]float64{"": 0.1}
	if p := outlook(t); p.Rate.Source != forecast.Measured {
		t.Errorf("few on Android: %+v", p.Rate)
	}
	store.androidErr = errors.New("broken")
	f := &forecast.Forecaster{Store: store, Now: func() time.Time { return noon }, Quotas: func(context.Context) ([]forecast.PushQuota, error) {
		return []forecast.PushQuota{quotaOf(0, 0, "shop", 1)}, nil
	}}
	if _, err := f.Forecast(t.Context(), time.Hour); !errors.Is(err, store.androidErr) {
		t.Errorf("%v", err)
	}
	f.Quotas = func(context.Context) ([]forecast.PushQuota, error) { return nil, context.Canceled }
	if _, err := f.Forecast(t.Context(), time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestTheQuotaOfEachProject: the project whose quota is used up first bounds the channel. Its
// load is the messages to phones that name it, and messages to phones without an app if the
// message is of a shop whose phones count as the project's.
func TestTheQuotaOfEachProject(t *testing.T) {
	market, own := quotaOf(1, 0, "market", 10_000), quotaOf(2, 7, "own", 1000)
	shares := map[string]float64{"": 0.4, "market": 0.2, "own": 0.1}
	for name, c := range map[string]struct {
		shops  []int64 // of one job each, of the same size
		quotas []forecast.PushQuota
		want   float64
	}{
		"no provider of the shop":           {[]int64{1}, []forecast.PushQuota{own}, 25_000},
		"phones without an app":             {[]int64{1}, []forecast.PushQuota{market, own}, 10_000 / 0.6},
		"the shop's own quota":              {[]int64{7}, []forecast.PushQuota{market, own}, 1000 / 0.5},
		"half of the messages":              {[]int64{7, 1}, []forecast.PushQuota{market, own}, 1000 / 0.25},
		"two accounts of one project":       {[]int64{1}, []forecast.PushQuota{market, quotaOf(3, 0, "market", 3000)}, 3000 / 0.6},
		"the environment's, of no app":      {[]int64{7}, []forecast.PushQuota{quotaOf(0, 0, "env", 4000), own}, min(4000/0.4, 1000/0.1)},
		"a project of none of the messages": {[]int64{7}, []forecast.PushQuota{own, quotaOf(4, 8, "market", 1)}, 1000 / 0.5},
	} {
		var jobs []forecast.Job
		for _, shop := range c.shops {
			j := job(0, 5*time.Minute, 1000)
			j.Shop = shop
			jobs = append(jobs, j)
		}
		if got := pushes(&rates{android: shares}, jobs, c.quotas...)(t).Rate.PerSecond; math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %f, want %f", name, got, c.want)
		}
	}
}
