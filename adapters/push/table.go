package push

import (
	"slices"

	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/user"
)

// table holds the services that are in use at one time, and which devices are whose.
type table struct {
	list []Configured // in order of shops
	// accounts are those of phones: of list, and of the environment. Entry i of at is the
	// place in list of accounts[i]; -1 = it is the environment's.
	accounts []provider.Account
	at       []int
	onlyOwn  bool // there are no accounts of phones but the environment's
}

// newTable returns the table of the sorted list and of the environment's services.
func newTable(list []Configured, environment []Service) table {
	t := table{list: list, onlyOwn: true}
	for i, one := range list {
		app := one.Service.App()
		if app.Platform.OneTime() {
			continue
		}
		t.accounts = append(t.accounts, provider.Account{ID: one.Provider, Shop: one.Shop, Order: one.Order, App: app})
		t.at, t.onlyOwn = append(t.at, i), false
	}
	for _, s := range environment {
		if s, ok := s.(AppService); ok {
			t.accounts, t.at = append(t.accounts, provider.Account{App: s.App()}), append(t.at, -1)
		}
	}
	return t
}

// serves reports whether a configured service delivers messages of the shop.
func (t table) serves(shop int64) bool {
	return slices.ContainsFunc(t.list, func(one Configured) bool { return one.Shop == 0 || one.Shop == shop })
}

// programs returns the services of mini programs of a shop: its own if it has any, else
// those of all shops.
func (t table) programs(shop int64) (list []Configured) {
	for _, level := range []int64{shop, 0} {
		for _, one := range t.list {
			if one.Shop == level && one.Service.App().Platform.OneTime() {
				list = append(list, one)
			}
		}
		if len(list) > 0 {
			return list
		}
	}
	return nil
}

// A phone is a device with the configured services that are asked to reach it, one after
// the other.
type phone struct {
	device   user.Device
	services []Configured
}

// divide returns the user with the devices that are left to the services of the environment,
// and the phones of the configured ones. A phone that names an app which no service reaches
// is among neither.
func (t table) divide(to *user.User, shop int64) (rest *user.User, phones []phone) {
	if t.onlyOwn && !slices.ContainsFunc(to.Devices, named) {
		return to, nil
	}
	left := make([]user.Device, 0, len(to.Devices))
	for _, d := range to.Devices {
		if d.Platform.OneTime() {
			left = append(left, d)
			continue
		}
		places := provider.Reach(t.accounts, shop, d)
		var p phone
		for _, place := range places {
			if t.at[place] >= 0 {
				p.services = append(p.services, t.list[t.at[place]])
			}
		}
		switch {
		case len(p.services) > 0:
			p.device = d
			phones = append(phones, p)
		case len(places) > 0 || d.App == "":
			left = append(left, d)
		}
	}
	return withDevices(to, left), phones
}

// named reports whether the device is a phone that names its app.
func named(d user.Device) bool { return d.App != "" && !d.Platform.OneTime() }

// withDevices returns the user with these devices.
func withDevices(to *user.User, devices []user.Device) *user.User {
	u := *to
	u.Devices = devices
	return &u
}

// addressedTo returns the message to the user as other devices reach them.
func addressedTo(m delivery.Message, u *user.User) delivery.Message {
	m.To = u
	return m
}
