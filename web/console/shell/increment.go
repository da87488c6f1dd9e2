package shell

import (
	"math"
	"strings"

	"dropbell/domain/increment"
)

// incrementHead are the columns that files have about what messages brought: the orders and the revenue
// of the users who were addressed and of the held-out users, and what the former ordered and paid
// more, for each user with the bounds of the 95 % interval. Amounts are minor units.
const incrementHead = "increment_currency reached_users reached_orders reached_revenue held_out_users held_out_orders held_out_revenue " +
	"more_revenue more_revenue_per_user more_revenue_low more_revenue_high more_orders more_orders_per_user more_orders_low more_orders_high"

// NotEnough is the cell about a difference for which there are not enough data.
const NotEnough = "not enough data yet"

// IncrementHead returns the names of the columns of [IncrementCells].
func IncrementHead() []string { return strings.Fields(incrementHead) }

// IncrementCells returns the cells of one increment; nil = nobody is held out, and the cells are
// empty. more_revenue and more_orders say whether the difference is beyond chance: more, less or
// chance, or [NotEnough].
func IncrementCells(i *increment.Increment) []any {
	if i == nil {
		return make([]any, len(IncrementHead()))
	}
	cells := []any{i.Currency, i.Reached.Users, i.Reached.Orders, int64(i.Reached.Revenue), i.HeldOut.Users, i.HeldOut.Orders, int64(i.HeldOut.Revenue)}
	for _, e := range []increment.Estimate{i.Revenue(), i.Orders()} {
		cells = append(cells, estimateCells(e)...)
	}
	return cells
}

func estimateCells(e increment.Estimate) []any {
	rounded := func(x float64) float64 { return math.Round(x*10_000) / 10_000 }
	word := "chance"
	switch {
	case !e.Enough:
		return []any{NotEnough, rounded(e.Difference), nil, nil}
	case e.Low > 0:
		word = "more"
	case e.High < 0:
		word = "less"
	}
	return []any{word, rounded(e.Difference), rounded(e.Low), rounded(e.High)}
}
