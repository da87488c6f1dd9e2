package stories

import (
	"math"
	"time"

	"dropbell/domain/claim"
	owned "dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/template"
	"dropbell/domain/waitlist"
	droppages "dropbell/views/pages/drops"
)

// sold is a made-up rush of so many coupons from the opening on.
func sold(t template.Template, n int64) claim.Curve {
	var steps []claim.Point
	var done int64
	for i := range 60 {
		to := int64(float64(n) * (1 - math.Exp(-float64(i+1)/12)))
		if i == 59 {
			to = n
		}
		if to > done {
			at := t.OpensAt.Add(time.Duration(i) * time.Second)
			steps = append(steps, claim.Point{At: at, Issued: to - done, Most: to - done, MostAt: at})
		}
		done = to
	}
	return claim.NewCurve(time.Second, steps)
}

func pace(n int64) []int64 {
	list := make([]int64, 60)
	for i := range list {
		list[i] = n * int64(i) / 60
	}
	return list
}

// salesOf puts a card on its page.
func salesOf(t template.Template, issued, writing int64, rate int64) droppages.Template {
	t.Issued = issued
	p := droppages.Template{Tab: droppages.TabClaims, Drop: droppages.Drop{Template: t, Board: deliver(board(t, 22_000), false)}, Growth: growth(22_000),
		Channels: delivery.ChannelSetOf(delivery.AllChannels()...)}
	p.Sales = &droppages.Sales{Template: t, Money: droppages.Money{Money: earned(t, issued/3, 22_000), BudgetURL: "/budgets?scope=drop&subject=1", Drop: 1}, Curve: sold(t, issued), Pace: pace(rate), Total: t.Stock, Issued: issued, Writing: writing,
		Tally: owned.Tally{Issued: issued, Used: issued / 3, Locked: issued / 50, Expired: issued / 20, Revoked: issued / 90, Returned: issued / 200,
			Released: issued / 30, Refunded: issued / 100, Discounted: money.Amount(issued / 3 * 2000)}}
	beside := history(t)
	p.Sales.Events, p.Sales.Earlier = beside.Events, beside.Earlier
	return p
}

func sales() []Story {
	ahead, open := coupon(1, "Moon cake night", time.Hour), coupon(1, "Moon cake night", -20*time.Second)
	paused := coupon(1, "Moon cake night", -20*time.Minute)
	paused.Stored = template.Paused
	over := coupon(1, "Moon cake night", -3*time.Minute)
	one := coupon(1, "Moon cake night", -3*time.Minute)
	early, ended := coupon(1, "Moon cake night", -time.Hour), coupon(1, "Moon cake night", -5*time.Hour)
	early.Stored, early.EndedAt = template.Closed, ptr(Now().Add(-10*time.Minute))
	early.Spec = early.WithNotices(template.NoticeDaysOf(7, 1, 0), delivery.ChannelSetOf(delivery.App, delivery.SMS))
	ended.Stored, ended.EndedAt = template.Closed, ptr(Now().Add(-time.Hour))
	away := salesOf(open, open.Stock/3, 0, 1_350)
	away.Sales.Away = true
	waited := over
	waited.Waitlist, waited.Held = template.IssueNext, 400
	waiting := salesOf(waited, over.Stock-400, 0, 0)
	waiting.Sales.Wait = waitlist.Sheet{Joined: 2_214, Waiting: 1_830, Filled: 312, Left: 61, Skipped: 11, Held: 400}
	offered := waited
	offered.Waitlist, offered.AcceptMinutes, offered.UseWithinHours, offered.RefundTo = template.OfferNext, 30, 24, template.RefundToStock
	offering := salesOf(offered, over.Stock-400, 0, 0)
	offering.Sales.Wait = waitlist.Sheet{Joined: 2_214, Waiting: 1_793, Offered: 400, Filled: 312, Lapsed: 37, Left: 61, Skipped: 11, Held: 400}
	return []Story{
		{Name: "claims/waitlist", Page: waiting.Page()},
		{Name: "claims/waitlist-offers", Page: offering.Page()},
		{Name: "claims/closed-early", Page: salesOf(early, 31_400, 0, 0).Page()},
		{Name: "claims/ended", Page: salesOf(ended, 31_400, 0, 0).Page()},
		{Name: "claims/away", Page: away.Page()},
		{Name: "claims/all-given", Page: salesOf(open, open.Stock-5_120, 5_120, 3_500).Page()},
		{Name: "claims/ahead", Page: salesOf(ahead, 0, 0, 0).Page()},
		{Name: "claims/one", Page: salesOf(one, 1, 0, 1).Page()},
		{Name: "claims/rush", Page: salesOf(open, open.Stock*2/3, 1204, 2_600).Page()},
		{Name: "claims/paused", Page: salesOf(paused, paused.Stock/3, 0, 0).Page(), Role: "viewer"},
		{Name: "claims/sold-out", Page: salesOf(over, over.Stock, 0, 0).Page()},
	}
}
