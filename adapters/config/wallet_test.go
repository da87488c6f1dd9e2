package config_test

import (
	"strings"
	"testing"

	"dropbell/adapters/config"
	"dropbell/adapters/wallet/wallettest"
)

func passIdentity(t *testing.T) wallettest.Identity {
	t.Helper()
	id, err := wallettest.NewIdentity("pass.com.example.coupons", "ABCDE12345")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPassesFitTogether: a setting that does not fit is named by its variable.
func TestPassesFitTogether(t *testing.T) {
	id, other := passIdentity(t), passIdentity(t)
	for name, c := range map[string]struct {
		change map[string]string
		want   string
	}{
		"all fit":                  {nil, ""},
		"none":                     {map[string]string{"PASS_TYPE_ID": "", "PASS_TEAM_ID": "", "PASS_CERTIFICATE": "", "PASS_KEY": "", "PASS_WWDR": "", "LINK_SECRET": ""}, ""},
		"another key":              {map[string]string{"PASS_KEY": string(other.Key)}, "PASS_KEY does not belong"},
		"another issuer":           {map[string]string{"PASS_WWDR": string(other.Root.Raw)}, "PASS_WWDR must be"},
		"an issuer of another one": {map[string]string{"PASS_WWDR": string(other.Certificate)}, "PASS_WWDR did not issue"},
		"another type":             {map[string]string{"PASS_TYPE_ID": "pass.com.example.other"}, "PASS_TYPE_ID is not the pass type"},
		"another team":             {map[string]string{"PASS_TEAM_ID": "ABCDE99999"}, "PASS_TEAM_ID is not the team"},
		"no key":                   {map[string]string{"PASS_KEY": ""}, "not set: PASS_KEY"},
		"no secret of links":       {map[string]string{"LINK_SECRET": ""}, "LINK_SECRET is missing: it signs the tokens of passes"},
		"an issuer alone":          {map[string]string{"GOOGLE_WALLET_ISSUER": "3388000000012345678"}, "not set: GOOGLE_WALLET_ACCOUNT"},
	} {
		env := map[string]string{"PASS_TYPE_ID": id.TypeID, "PASS_TEAM_ID": id.TeamID, "PASS_CERTIFICATE": string(id.Certificate), "PASS_KEY": string(id.Key),
			"PASS_WWDR": string(id.WWDR), "LINK_SECRET": "0123456789abcdef0123456789abcdef"}
		for variable, value := range c.change {
			env[variable] = value
		}
		var pairs []string
		for variable, value := range env {
			pairs = append(pairs, variable, value)
		}
		_, err := config.Load(least(pairs...))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "BEGIN RSA")):
			t.Errorf("%s: %v", name, err)
		}
	}
}
