package provider_test

import (
	"slices"
	"testing"

	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// TestReach: a phone's account is found by the app that the phone names. Without a name it
// is the environment's account, otherwise the account that the shop, or all shops, would
// use.
func TestReach(t *testing.T) {
	account := func(id, shop int64, order int, platform user.Platform, app string) provider.Account {
		return provider.Account{ID: id, Shop: shop, Order: order, App: provider.App{Platform: platform, Name: app}}
	}
	env := account(0, 0, 0, user.IOS, "com.env")
	list := []provider.Account{
		account(1, 0, 5, user.IOS, "com.market"), account(2, 0, 1, user.IOS, "com.market.lite"), account(3, 0, 5, user.IOS, "com.market"),
		account(4, 7, 9, user.IOS, "com.seven"), account(5, 7, 9, user.IOS, "com.env"),
		account(6, 0, 0, user.Android, "market-project"), account(7, 7, 0, user.Android, "seven-project"), account(8, 8, 0, user.Android, "market-project"),
		account(10, 0, 1000, user.IOS, "com.env"), account(11, 9, 1000, user.IOS, "com.env"),
	}
	for name, c := range map[string]struct {
		environment bool
		shop        int64
		platform    user.Platform
		app         string
		want        []int64 // ids
	}{
		"the accounts of its app, in their order":                 {false, 1, user.IOS, "com.market", []int64{1, 3}},
		"an app of all shops, of a message of a shop of its own":  {false, 7, user.IOS, "com.market", []int64{1, 3}},
		"an app of another shop":                                  {false, 1, user.IOS, "com.seven", nil},
		"the shop's own app":                                      {false, 7, user.IOS, "com.seven", []int64{4}},
		"the shop's own account before that of all shops":         {false, 8, user.Android, "market-project", []int64{8, 6}},
		"a message of no shop":                                    {false, 0, user.Android, "market-project", []int64{6}},
		"all accounts of an app":                                  {true, 9, user.IOS, "com.env", []int64{11, 10, 0}},
		"all accounts of an app, of a message of no shop":         {true, 0, user.IOS, "com.env", []int64{10, 0}},
		"an app of another platform":                              {false, 1, user.IOS, "market-project", nil},
		"an app that is gone":                                     {false, 1, user.IOS, "com.gone", nil},
		"an app that is gone, beside the environment's":           {true, 1, user.IOS, "com.gone", nil},
		"the environment's app":                                   {true, 1, user.IOS, "com.env", []int64{10, 0}},
		"the environment's app, which the shop has an account of": {true, 7, user.IOS, "com.env", []int64{5, 10, 0}},
		"no app":                                      {false, 1, user.IOS, "", []int64{2}},
		"no app, and the shop has accounts":           {false, 7, user.IOS, "", []int64{4}},
		"no app, beside the environment's":            {true, 7, user.IOS, "", []int64{0}},
		"no app, the environment's is of another":     {true, 7, user.Android, "", []int64{7}},
		"no app, and no account of the platform":      {true, 1, user.WeChat, "", nil},
		"no app, and a message of no shop":            {false, 0, user.Android, "", []int64{6}},
		"no app, and a shop without accounts its own": {false, 9, user.Android, "", []int64{6}},
	} {
		all := slices.Clone(list)
		if c.environment {
			all = append(all, env)
		}
		var got []int64
		for _, i := range provider.Reach(all, c.shop, user.Device{Platform: c.platform, App: c.app}) {
			got = append(got, all[i].ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
