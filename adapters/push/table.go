package push

import (
	"slices"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// table holds the services that are in use at one time, and which devices are whose.
type table struct {
	list []Configured // in order of shops
	// accounts are the accounts for phones: the accounts of list and of the environment. ways[i]
	// is the service of accounts[i].
	accounts        []provider.Account
	ways            []way
	environmentOnly bool // there are no accounts of phones but the environment's
}

// A way is a service that phones are handed to: a configured one, or one of the environment.
type way struct {
	configured  Configured
	environment Service // nil = it is the configured one
}

// newTable returns the table of the sorted list and of the environment's services.
func newTable(list []Configured, environment []Service) table {
	t := table{list: list, environmentOnly: true}
	for _, one := range list {
		app := one.Service.App()
		if app.Platform.OneTime() {
			continue
		}
		t.accounts = append(t.accounts, provider.Account{ID: one.Provider, Shop: one.Shop, Order: one.Order, App: app})
		t.ways, t.environmentOnly = append(t.ways, way{configured: one}), false
	}
	for _, s := range environment {
		if s, ok := s.(AppService); ok {
			t.accounts, t.ways = append(t.accounts, provider.Account{App: s.App()}), append(t.ways, way{environment: s})
		}
	}
	return t
}

// serves reports whether a configured service delivers messages of the shop.
func (t table) serves(shop int64) bool {
	return slices.ContainsFunc(t.list, func(one Configured) bool { return one.Shop == 0 || one.Shop == shop })
}

// programs returns the services for mini programs of the shop. If the shop has none, programs
// returns the services of all shops.
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

// A phone is a device with the services that may reach it, in the order in which they are asked.
// At least one service is configured; the environment's service comes last, if it reaches the
// same app.
type phone struct {
	device user.Device
	ways   []way
}

// divide returns the user with only the devices of the environment's services, and the phones
// that the configured services are asked to reach first. A phone whose named app no service
// reaches is in neither result.
func (t table) divide(to *user.User, shop int64) (rest *user.User, phones []phone) {
	if len(to.Devices) == 0 || t.environmentOnly && !slices.ContainsFunc(to.Devices, named) {
		return to, nil
	}
	left := make([]user.Device, 0, len(to.Devices))
	for _, d := range to.Devices {
		if d.Platform.OneTime() {
			left = append(left, d)
			continue
		}
		places := provider.Reach(t.accounts, shop, d)
		switch {
		case len(places) > 0 && t.ways[places[0]].environment == nil:
			p := phone{device: d}
			for _, place := range places {
				p.ways = append(p.ways, t.ways[place])
			}
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
