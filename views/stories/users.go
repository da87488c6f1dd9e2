package stories

import (
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/cart"
	owned "dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	life "dropbell/domain/timeline"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
)

func userPages() []Story {
	list := []user.User{person(1001), {ID: 1002, Email: "a-very-long-address-that-somebody-really-has@subdomain.of.a.company.example", Name: "Ünal Öztürk"}, {ID: 9_007_199_254_740_993}}
	return []Story{
		{Name: "users/start", Page: audiencepages.Users{}.Page()},
		{Name: "users/recent", Page: recentUsers(1).Page()},
		{Name: "users/recent-millions", Page: recentUsers(10_000).Page()},
		{Name: "users/none", Page: audiencepages.Users{Search: "nobody"}.Page()},
		{Name: "users/number", Page: audiencepages.Users{Search: "777777", Unknown: 777777}.Page()},
		{Name: "users/one", Page: audiencepages.Users{Search: "xiaoyu", List: list[:1], Paged: pageparts.Paged{Export: "/users.csv?q=xiaoyu"}}.Page()},
		{Name: "users/many", Page: audiencepages.Users{Search: "x", List: list, Paged: pageparts.Paged{Next: "/users?q=x&after=1002"}}.Page()},
		{Name: "user/busy", Page: busyUser().Page()},
		{Name: "user/plain", Page: audiencepages.User{User: list[1], Known: true, Reservations: views()[:1], Ways: busyUser().Ways}.Page(), Role: staff.Viewer},
		{Name: "user/unverified", Page: unverifiedUser().Page()},
		{Name: "user/masked", Page: maskedUser().Page(), Role: staff.Marketer, Shops: []int64{10}},
		{Name: "user/masked-viewer", Page: maskedUser().Page(), Role: staff.Viewer},
		{Name: "user/erased", Page: audiencepages.User{User: user.User{ID: 42}, Ways: busyUser().Ways, Erasure: &user.Erasure{At: Now(), By: "staff:2 Ada Okafor"}}.Page()},
		{Name: "user/unknown", Page: audiencepages.User{User: user.User{ID: 42}, Ways: busyUser().Ways}.Page()},
	}
}

// busyUser has something of everything, and more than the page shows.
func busyUser() audiencepages.User {
	u := person(1001)
	u.Quiet = user.QuietHours{From: 19 * 60, To: 8 * 60}
	u.Attributes = map[string]any{"tier": "gold", "birthday": "1994-05-17", "orders": 41.0, "newsletter": true,
		"favourite_branch": "Harbour Tea House, second floor of the old ferry terminal, counter by the window"}
	p := audiencepages.User{User: u, Known: true, Reservations: views(), Inbox: inboxPage(), Next: "/users/1001?before=1", MoreCoupons: true,
		Ways: audiencepages.Ways{Channels: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS, delivery.WebPush)}, Worth: worthOf(1)}
	for i, s := range owned.States() {
		p.Coupons = append(p.Coupons, ownedCoupon(int64(901+i), s))
	}
	outcomes := []struct {
		delivery.Outcome
		reason string
	}{{delivery.InFlight, ""}, {delivery.Failed, delivery.ReasonQuietHours}, {delivery.Sent, ""}, {delivery.Skipped, delivery.ReasonFrequencyCap}, {delivery.Recovered, delivery.ReasonThrottled}, {delivery.Dead, delivery.ReasonRefused},
		{delivery.Expired, delivery.ReasonCampaignEnded}}
	for i := range 11 {
		o := outcomes[i%len(outcomes)]
		l := campaign.Letter{CampaignID: int64(40 - i), Name: "Autumn letter to everybody who likes tea", Shop: 10, ShopName: "Harbour Tea House", Channel: delivery.Channel(i % 3), BatchID: int64(i + 1),
			Outcome: o.Outcome, Reason: o.reason, CountsAt: Now().Add(-time.Duration(i) * 20 * time.Hour)}
		if l.Outcome != delivery.InFlight {
			l.At = l.CountsAt
		}
		p.Received.Letters = append(p.Received.Letters, l)
	}
	p.Orders = []cart.Placed{{At: Now().Add(-3 * time.Hour), Order: cart.Order{ID: "2026-1120-000087", State: cart.Confirmed, Discount: 3000, PaidBack: 2400, Returned: []int64{0, 1},
		Cart: cart.Cart{Currency: "CNY", Lines: []cart.Line{{ID: "1", Product: "Jasmine tea", Quantity: 2, Amount: 12_000}, {ID: "2", Product: "Cup", Quantity: 1, Amount: 3000}}},
		Uses: []cart.Use{{Coupon: 903, Off: 2000, Shares: []money.Amount{1600, 400}}, {Coupon: 904, Off: 1000, Shares: []money.Amount{800, 200}}}}}}
	p.Suppression = &suppressedAddresses()[0]
	p.User.PhoneVerifiedAt = Now().Add(-30 * 24 * time.Hour)
	p.Received.AtLeast = true
	p.Received.Shares = []campaign.Allowance{{ShopName: "", Limits: campaign.Limits{PerWeek: 1}, Week: 0},
		{Shop: 10, ShopName: "Harbour Tea House", Limits: campaign.Limits{PerDay: 1, PerWeek: 3}, Day: 1, Week: 2},
		{Shop: 11, ShopName: "Isar Bakery", Limits: campaign.Limits{PerWeek: 3}, Week: 3}}
	p.History = busyHistory()
	return p
}

// worthOf is what a customer of two currencies brought, times n.
func worthOf(n int64) life.Worth {
	sums := func(currency string, orders int64) report.Sums {
		return report.Sums{Currency: currency, Paid: orders * n, PaidAmount: money.Amount(orders * n * 17_950), PaidDiscount: money.Amount(orders * n * 2_000)}
	}
	return life.Worth{Coupons: 14 * n, Used: 8 * n, LastOrder: Now().Add(-3 * time.Hour), Spent: []life.Spent{
		{With: sums("CNY", 8), Without: report.Plain{Reported: true, Orders: 5 * n, Amount: money.Amount(61_900 * n)}}, {With: sums("EUR", 1)}}}
}

// recentUsers is the page of customers without a search, with sums times n.
func recentUsers(n int64) audiencepages.Users {
	p := audiencepages.Users{Ways: busyUser().Ways, Used: 61_204 * n, Earned: report.Overview{Days: 30,
		Now: []report.Sums{{Currency: "CNY", Paid: 3_412 * n, PaidAmount: money.Amount(61_416_000 * n), PaidDiscount: money.Amount(6_824_000 * n), Refunds: 12 * n, RefundedAmount: money.Amount(216_000 * n)}}, Before: []report.Sums{worthOf(300 * n).Spent[0].With}}}
	kinds := []life.Kind{life.Used, life.Claimed, life.Ordered, life.OptedOut, ""}
	for i := range 12 {
		c := life.Customer{User: person(user.ID(1001 + i)), Suppressed: i%3 == 1}
		c.User.Name = []string{"林晓雨", "Ada Okafor", "Ünal Öztürk", "", "A customer whose name is rather longer than most names are"}[i%5]
		c.User.OptOuts = uint8(i % 8)
		if k := kinds[i%len(kinds)]; k != "" {
			c.Last = life.Line{Cursor: life.Cursor{At: Now().Add(-time.Duration(i*i) * time.Hour)}, Kind: k}
		}
		switch c.Last.Kind {
		case life.Used, life.Claimed:
			c.Last.TemplateID, c.Last.Drop = 1, "Moon cake night"
		}
		if i%5 < 3 {
			c.Worth = worthOf(n)
		}
		p.Recent = append(p.Recent, c)
	}
	return p
}

// unverifiedUser has a number that no text message is sent to before it is verified.
func unverifiedUser() audiencepages.User {
	p := busyUser()
	p.User.PhoneVerifiedAt, p.VerifiedOnly = time.Time{}, true
	return p
}

// maskedUser is the user as staff without the permission to see contacts see it.
func maskedUser() audiencepages.User {
	p := busyUser()
	p.User, p.Masked = p.User.Masked(), true
	p.Suppression.Address = user.MaskEmail(p.Suppression.Address)
	return p
}

// busyHistory has a line of every kind.
func busyHistory() audiencepages.History {
	h := audiencepages.History{Group: life.Coupons, First: "/users/1001", Next: "/users/1001?past=1", More: 20}
	add := func(l life.Line) {
		l.Cursor = life.Cursor{At: Now().Add(-time.Duration(len(h.Lines)) * 3 * time.Hour), ID: 1}
		h.Lines = append(h.Lines, l)
	}
	for i, o := range []delivery.Outcome{delivery.Sent, delivery.InFlight, delivery.Skipped, delivery.Dead} {
		add(life.Line{Kind: life.Message, Message: delivery.KindReminder, Slot: 4, TemplateID: 1, Drop: "Moon cake night", BatchID: 7, Channels: delivery.Channel(i).Bit(), Outcome: o})
	}
	add(life.Line{Kind: life.Message, Message: delivery.KindCampaign, CampaignID: 40, Campaign: "Autumn letter to everybody who likes tea", BatchID: 8, Channels: delivery.Email.Bit(), Outcome: delivery.Sent})
	for _, k := range life.Kinds() {
		l := life.Line{Kind: k}
		switch k {
		case life.OptedOut, life.OptedIn:
			l.Channels = delivery.Email.Bit() | delivery.SMS.Bit()
		case life.Ordered:
			l.OrderID, l.Amount, l.Refunded, l.Currency = "2026-1120-000090", 18_000, 5_000, "CNY"
		case life.EmailChange, life.PhoneChange:
		case life.Opened:
			l.CampaignID, l.Campaign = 40, "Autumn letter to everybody who likes tea"
		case life.Reserved, life.Withdrawn:
			l.TemplateID, l.Drop = 1, "Moon cake night"
		default:
			l.TemplateID, l.Drop, l.CouponID = 1, "Moon cake night", 903
			if k == life.Used || k == life.Refunded {
				l.OrderID, l.Amount, l.Discount, l.Currency, l.By = "2026-1120-000087", 18_000, 2_000, "CNY", "staff:1 Ada Okafor"
			}
		}
		add(l)
	}
	return h
}
