package parts

import (
	"math"

	"dropbell/domain/increment"
)

// Increment compares the orders of users who were addressed with the orders of held-out users.
type Increment struct {
	Currency string         `json:"currency" example:"CNY"`
	Reached  IncrementGroup `json:"reached" doc:"Users who were not held out, whether or not a message reached them."`
	HeldOut  IncrementGroup `json:"held_out"`
	Orders   Additional     `json:"orders" doc:"Additional orders."`
	Revenue  Additional     `json:"revenue" doc:"Additional revenue, in minor units."`
}

// IncrementGroup sums the orders of the users of one group. Refunded orders do not count.
type IncrementGroup struct {
	Users   int64 `json:"users" example:"9000"`
	Orders  int64 `json:"orders" example:"612"`
	Revenue int64 `json:"revenue" doc:"What the users paid, in minor units." example:"5508000"`
	PerUser int64 `json:"revenue_per_user" doc:"Rounded down." example:"612"`
}

// Additional is what users who were addressed did more than held-out users.
type Additional struct {
	Enough  bool     `json:"enough" doc:"Whether there are enough data for an interval: each group has at least 100 users and 355 times the squared skewness of the quantity."`
	PerUser float64  `json:"per_user" doc:"The difference for each user." example:"61.5"`
	Low     *float64 `json:"low,omitempty" doc:"With 95 % confidence the true difference for each user is at least this; absent without enough data." example:"12.5"`
	High    *float64 `json:"high,omitempty" doc:"And at most this." example:"110.5"`
	All     int64    `json:"all" doc:"The difference times the users who were addressed, rounded." example:"553500"`
}

// IncrementOf returns i as the API shows it.
func IncrementOf(i increment.Increment) Increment {
	group := func(g increment.Group) IncrementGroup {
		return IncrementGroup{g.Users, g.Orders, int64(g.Revenue), int64(g.PerUser())}
	}
	return Increment{i.Currency, group(i.Reached), group(i.HeldOut), additional(i.Orders()), additional(i.Revenue())}
}

func additional(e increment.Estimate) Additional {
	all, _, _ := e.Extra()
	a := Additional{Enough: e.Enough, PerUser: e.Difference, All: int64(math.Round(all))}
	if e.Enough {
		a.Low, a.High = &e.Low, &e.High
	}
	return a
}
