package app

import (
	"slices"
	"testing"

	"dropbell/adapters/config"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/mailcheck"
)

// TestExtrasOfConfiguredMailServers: the environment's DKIM key and address for reports are used
// for a configured mail server only if they belong to the domain of its sender.
func TestExtrasOfConfiguredMailServers(t *testing.T) {
	const key, reports = "shop.example", "bounces@mail.shop.example"
	for from, want := range map[string]config.Mail{
		"drops@shop.example":      {DKIMDomain: key, BounceAddress: reports},
		"drops@News.Shop.example": {DKIMDomain: key, BounceAddress: reports},
		"drops@mail.shop.example": {DKIMDomain: key, BounceAddress: reports},
		"drops@other.example":     {},
		"drops@myshop.example":    {},
		"drops@example":           {},
	} {
		if got := fitting(config.Mail{DKIMDomain: key, BounceAddress: reports}, from); got.DKIMDomain != want.DKIMDomain || got.BounceAddress != want.BounceAddress {
			t.Errorf("%s: %+v", from, got)
		}
	}
	parent := config.Mail{DKIMDomain: "mail.shop.example", BounceAddress: "bounces@shop.example"}
	if got := fitting(parent, "drops@shop.example"); got.DKIMDomain != "" || got.BounceAddress == "" {
		t.Errorf("a key of a subdomain: %+v", got)
	}
}

// TestMailSenders: the page about records in DNS shows each sender that is used, once.
func TestMailSenders(t *testing.T) {
	server := func(address string, enabled bool) provider.Provider {
		return provider.Provider{Channel: delivery.Email, Spec: provider.Spec{Enabled: enabled, Settings: map[string]string{"url": address}}}
	}
	cfg := config.Config{SMTPURL: "smtp://relay.shop.example:25?from=drops@Shop.example", Mail: config.Mail{BounceAddress: "bounces@mail.shop.example"}}
	got := MailSenders(cfg, []provider.Provider{
		server("smtp://mail.tea.example:587?from=tea@tea.example", true),
		server("smtp://mail.tea.example:587?from=other@tea.example", true),
		server("smtp://off.example:25?from=a@off.example", false),
		{Channel: delivery.SMS, Spec: provider.Spec{Enabled: true, Settings: map[string]string{"url": "http://sms.example"}}},
		server("smtp://relay.shop.example:25?from=b@shop.example", true),
		server("not an address", true)})
	want := []mailcheck.Sender{{From: "shop.example", ReturnPath: "mail.shop.example", Server: "relay.shop.example"}, {From: "tea.example", ReturnPath: "tea.example", Server: "mail.tea.example"}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := MailSenders(config.Config{}, nil); len(got) != 0 {
		t.Errorf("without a mail server: %+v", got)
	}
}
