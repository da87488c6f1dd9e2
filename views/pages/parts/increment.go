package parts

import (
	"context"
	"math"

	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/views/ui"
)

// An incrementRow is one group of an [increment.Increment].
type incrementRow struct {
	key string
	increment.Group
}

func incrementRows(i increment.Increment) []incrementRow {
	return []incrementRow{{"reached", i.Reached}, {"held", i.HeldOut}}
}

// perThousand writes the orders of 1,000 users.
func perThousand(ctx context.Context, g increment.Group) string {
	if g.Users == 0 {
		return "–"
	}
	return ui.Num(ctx, int64(math.Round(1000*float64(g.Orders)/float64(g.Users))))
}

// An incrementFinding is one sentence about a difference; its tone is neutral unless the difference
// is beyond chance.
type incrementFinding struct {
	tone ui.Tone
	text string
}

// incrementFindings says what the messages brought in revenue and in orders, or that there are not
// enough data yet.
func incrementFindings(ctx context.Context, i increment.Increment) []incrementFinding {
	l := ui.From(ctx).Locale
	amount := func(x float64) string { return l.Sum(money.Amount(math.Round(x)), i.Currency) }
	count := func(x float64) string { return l.Number(int64(math.Round(x))) }
	thousand := func(x float64) string { return l.Number(int64(math.Round(1000 * x))) }
	if !i.Revenue().Enough && !i.Orders().Enough {
		return []incrementFinding{{ui.Neutral, l.T("increment.none", l.Sum(i.Reached.PerUser(), i.Currency), l.Sum(i.HeldOut.PerUser(), i.Currency), l.Number(i.Reached.Orders), l.Number(i.HeldOut.Orders))}}
	}
	return []incrementFinding{incrementFound(ctx, "increment.revenue.", i.Revenue(), amount, amount), incrementFound(ctx, "increment.orders.", i.Orders(), count, thousand)}
}

// incrementFound words one estimate: all writes the difference for all users, each the difference
// for each user.
func incrementFound(ctx context.Context, key string, e increment.Estimate, all, each func(float64) string) incrementFinding {
	l := ui.From(ctx).Locale
	n, _, _ := e.Extra()
	switch {
	case !e.Enough:
		return incrementFinding{ui.Neutral, l.T(key + "none")}
	case !e.Sure():
		return incrementFinding{ui.Neutral, l.T(key+"chance", each(e.Difference), each(e.Low), each(e.High))}
	case e.Difference < 0:
		return incrementFinding{ui.Warn, l.T(key+"less", all(-n), each(-e.Difference), each(-e.High), each(-e.Low))}
	}
	return incrementFinding{ui.Good, l.T(key+"more", all(n), each(e.Difference), each(e.Low), each(e.High))}
}
