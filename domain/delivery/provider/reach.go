package provider

import (
	"cmp"
	"slices"

	"dropbell/domain/user"
)

// An App is the set of devices that an account at a push service reaches: the
// devices of one app on one platform.
type App struct {
	Platform user.Platform
	// Name is the platform's name of the app: the bundle id, the id of the Firebase
	// project, or the AppID; see [user.Device].
	Name string
}

// An Account is an account at a push service. Each app has accounts of its own, since the
// token of a device belongs to one app. Accounts of different apps deliver independently.
type Account struct {
	ID    int64 // of the provider; 0 = it is the environment's
	Shop  int64 // whose messages it delivers; 0 = all shops'
	Order int   // of two accounts of one app the lowest is asked first
	App   App
}

// Reach returns the accounts that deliver a message of the shop to the phone, as indexes
// into all, in the order in which they are asked; none = no account reaches the phone's
// app.
//
// A phone that names its app is delivered to by the accounts of that app: first the shop's
// own accounts, then the accounts of all shops, then the environment's account. A phone
// that names no app is delivered to by the environment's account of its platform. If there
// is no such account, the phone is taken for a phone of one app: the app of the shop's own
// account of the platform or, without one, of the account of all shops; of several accounts
// the lowest order counts.
func Reach(all []Account, shop int64, d user.Device) (places []int) {
	name := d.App
	if name == "" {
		first := withoutApp(all, shop, d.Platform)
		if first < 0 || all[first].ID == 0 {
			return listOf(first)
		}
		name = all[first].App.Name
	}
	app := App{d.Platform, name}
	for _, level := range levels(shop) {
		before := len(places)
		for i, a := range all {
			if a.ID != 0 && a.Shop == level && a.App == app {
				places = append(places, i)
			}
		}
		slices.SortFunc(places[before:], func(i, j int) int { return earlier(all[i], all[j]) })
	}
	return append(places, listOf(slices.IndexFunc(all, func(a Account) bool { return a.ID == 0 && a.App == app }))...)
}

// withoutApp returns the index of the account that delivers to phones of the platform
// that name no app; -1 = there is no such account.
func withoutApp(all []Account, shop int64, platform user.Platform) int {
	if i := slices.IndexFunc(all, func(a Account) bool { return a.ID == 0 && a.App.Platform == platform }); i >= 0 {
		return i
	}
	first := -1
	for _, level := range levels(shop) {
		for i, a := range all {
			if a.ID != 0 && a.Shop == level && a.App.Platform == platform && (first < 0 || earlier(a, all[first]) < 0) {
				first = i
			}
		}
		if first >= 0 {
			return first
		}
	}
	return -1
}

// levels are the shops whose accounts are looked at, one after the other.
func levels(shop int64) []int64 {
	if shop == 0 {
		return []int64{0}
	}
	return []int64{shop, 0}
}

func earlier(a, b Account) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.ID, b.ID)) }

// listOf returns a list of the place; an empty one of -1.
func listOf(place int) []int {
	if place < 0 {
		return nil
	}
	return []int{place}
}
