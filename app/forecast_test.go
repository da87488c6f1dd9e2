package app

import (
	"slices"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/forecast"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// TestQuotasOfProjects: a forecast knows the messages per minute of the environment's project
// and of every enabled FCM provider.
func TestQuotasOfProjects(t *testing.T) {
	w := pgtest.New(t)
	store := NewStores(w.DB).Providers
	for _, p := range []provider.Provider{
		{Kind: provider.FCM, Spec: provider.Spec{Enabled: true, Settings: map[string]string{"project": "first-project"}}},
		{Kind: provider.FCM, Spec: provider.Spec{Enabled: true, Order: 1, Settings: map[string]string{"project": "second-project", "per_minute": "1200000"}}},
		{Kind: provider.FCM, Spec: provider.Spec{Settings: map[string]string{"project": "disabled-project"}}},
		{Kind: provider.APNS, Spec: provider.Spec{Enabled: true, Settings: map[string]string{"topic": "com.example.shop"}}},
	} {
		var err error
		p.ID, err = store.NewID(t.Context())
		w.Must(err)
		p.Channel, p.Weight, p.Name = delivery.WebPush, 1, "n"
		_, err = store.Create(t.Context(), p, "", staff.System())
		w.Must(err)
	}
	a := &App{DB: w.DB, Stores: NewStores(w.DB), Config: config.Config{FCMAccount: `{"project_id":"env-project"}`, FCMPerMinute: 60_000}}
	got, err := a.pushQuotas(t.Context())
	w.Must(err)
	want := []forecast.PushQuota{
		{Account: provider.Account{App: provider.App{Platform: user.Android, Name: "env-project"}}, PerSecond: 1000},
		{Account: provider.Account{ID: 1, App: provider.App{Platform: user.Android, Name: "first-project"}}, PerSecond: 10_000},
		{Account: provider.Account{ID: 2, Order: 1, App: provider.App{Platform: user.Android, Name: "second-project"}}, PerSecond: 20_000},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}
