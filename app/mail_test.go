package app

import (
	"testing"

	"dropbell/adapters/config"
)

// The environment's key and address for reports are used for a configured mail server
// only if they are of its sender's domain.
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
