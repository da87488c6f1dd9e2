package program

import (
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/config"
	"dropbell/adapters/sms"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
	"dropbell/musttest"
)

// TestAChannelThatStaffConfigure: a channel can be reserved in every process while a provider for
// all shops is enabled, without a restart. The environment's channels stay.
func TestAChannelThatStaffConfigure(t *testing.T) {
	const key = "a key of at least thirty-two bytes"
	env := smsEnv(t, "PROVIDERS_KEY", key, "WEBHOOK_URL", "https://shop.example/notify", "WEBHOOK_SECRET", "whsec_YSBzZWNyZXQgdGhhdCBub2JvZHkgdXNlcw==")
	cfg, err := config.Load(func(name string) string { return env[name] })
	musttest.OK(t, err)
	var processes []*program
	for range 2 {
		p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
		musttest.OK(t, err)
		t.Cleanup(func() { _ = p.Close() })
		processes = append(processes, p)
	}
	var looks []chan time.Time
	for _, p := range processes {
		again := make(chan time.Time)
		looks = append(looks, again)
		go p.watchProviders(t.Context(), again)
	}
	want := func(step string, set delivery.ChannelSet) {
		t.Helper()
		for i, p := range processes {
			looks[i] <- time.Time{}
			looks[i] <- time.Time{} // the first look is over
			if got := p.channels.Set(); got != set {
				t.Errorf("%s: process %d has the channels %b, want %b", step, i+1, got, set)
			}
		}
	}
	box, err := seal.New(provider.SealPurpose, key)
	musttest.OK(t, err)
	s := &provider.Service{Store: processes[0].Stores.Providers, Box: box, Keyed: true, IsCountry: sms.IsCountry}
	always := delivery.ChannelSetOf(delivery.App, delivery.Webhook)
	want("at first", always)
	create := func(kind provider.Kind, shop int64, settings, secrets map[string]string) provider.Provider {
		t.Helper()
		p, err := s.Create(t.Context(), staff.System(), provider.Input{Kind: kind, Spec: provider.Spec{Name: "n", Weight: 1, Enabled: true, Settings: settings}, Shop: shop, Secrets: secrets}, "")
		musttest.OK(t, err)
		return p
	}
	first := create(provider.JSON, 0, map[string]string{"url": "https://sms.example"}, map[string]string{"token": "secret"})
	second := create(provider.WeChat, 0, map[string]string{"app_id": "wx0123456789abcdef", "template": "t", "data": "thing1 = {{drop}}"}, map[string]string{"app_secret": "s"})
	want("two were added", always|delivery.ChannelSetOf(delivery.SMS, delivery.WebPush))
	for _, p := range []provider.Provider{first, second} {
		if _, err := s.Switch(t.Context(), staff.System(), p.ID, false); err != nil {
			t.Fatal(err)
		}
	}
	want("both were disabled", always)
}
