package stories

import (
	"fmt"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/claim"
	owned "dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/increment"
	"dropbell/domain/money"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/review"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
)

// figures returns the figures of a drop with this number of users, all of whose slots have fired.
func figures(t template.Template, users, issued int64) report.Figures {
	f := report.Figures{Template: t, Late: lateness(users), Total: t.Stock, Issued: issued,
		Tally: owned.Tally{Issued: issued, Used: issued / 3, Expired: issued / 20, Revoked: issued / 90, Discounted: money.Amount(issued / 3 * 2000)}}
	snapshot := snapshotOf(deliver(board(t, users), false), false)
	f.Progress = snapshot.Progress()
	f.Money = earned(t, issued/3, f.Progress.Sent)
	f.Opened = users * 3 / 5
	f.Money = report.Money{Sums: report.Sums{Currency: t.Currency, Paid: issued / 3, PaidAmount: money.Amount(issued / 3 * 18_000), PaidDiscount: money.Amount(issued / 3 * 2000),
		Refunds: 12, RefundedAmount: 12 * 18_000, RefundedDiscount: 12 * 2000}, Reminders: f.Progress.Sent, Messages: f.Progress.Sent + 400}
	if issued == t.Stock {
		f.SoldOutAfter = 58 * time.Second
	}
	return f
}

// earned returns what a drop earned whose coupons were used for this many orders.
func earned(t template.Template, orders, sent int64) report.Money {
	n := money.Amount(orders)
	return report.Money{Sums: report.Sums{Currency: t.Currency, Paid: orders, PaidAmount: n * 18_050, PaidDiscount: n * 2000, Refunds: orders / 50,
		RefundedAmount: n / 50 * 18_050, RefundedDiscount: n / 50 * 2000}, Without: report.Plain{Reported: true, Orders: 4 * orders, Amount: 4 * n * 14_200},
		Reminders: sent, Messages: sent + 120, SMS: delivery.SMSCosts{{Currency: "CNY", Parts: 9_000, Micros: 405_000_000}}}
}

// brought compares so many users and their orders with held-out users and theirs.
func brought(users, orders, held, theirs int64) *increment.Increment {
	i := increment.Increment{Currency: "CNY"}
	for g, n := range map[*increment.Group][2]int64{&i.Reached: {users, orders}, &i.HeldOut: {held, theirs}} {
		g.Users = n[0]
		for k := range n[1] {
			g.Add(1, money.Amount(12_000+k%7*2000))
		}
	}
	return &i
}

// hourly are the orders of three days after the opening, by hour.
func hourly(opensAt time.Time) (list []report.Hour) {
	for i := range 60 {
		if n := int64(4000/(i+1) + 300*(i%24)/24 - 60); n > 0 && i%24 < 18 {
			h := report.Hour{From: opensAt.Truncate(time.Hour).Add(time.Duration(i) * time.Hour), Sums: report.Sums{Currency: "CNY", Paid: n, PaidAmount: money.Amount(n * 18_000), PaidDiscount: money.Amount(n * 2000)}}
			if i == 40 {
				h.Refunds, h.RefundedAmount, h.RefundedDiscount = 2*n, 2*h.PaidAmount, 2*h.PaidDiscount
			}
			list = append(list, h)
		}
	}
	return list
}

// lately is what the shops earned in 30 days.
func lately() droppages.Earned {
	from := Now().Truncate(24*time.Hour).AddDate(0, 0, -29)
	hours := func(from time.Time, grows int64) (list []report.Hour) {
		for i := range int64(30) {
			if n := 300 + grows*i + 2400*(i%7/6); i%5 != 3 {
				list = append(list, report.Hour{From: from.Add(time.Duration(24*i+9) * time.Hour), Sums: report.Sums{Currency: "CNY", Paid: n, PaidAmount: money.Amount(n * 18_050), PaidDiscount: money.Amount(n * 2000)}})
			}
		}
		return list
	}
	return droppages.Earned{Overview: report.Overview{Days: 30, From: from, Hours: hours(from, 60), HoursBefore: hours(from.AddDate(0, 0, -30), 45), SMS: delivery.SMSCosts{{Currency: "CNY", Parts: 61_000, Micros: 2_745_000_000}}, SMSBefore: delivery.SMSCosts{{Currency: "CNY", Parts: 58_000, Micros: 2_610_000_000}},
		Now:    []report.Sums{{Currency: "CNY", Paid: 41_200, PaidAmount: 743_660_000, PaidDiscount: 82_400_000, Refunds: 310, RefundedAmount: 5_595_500, RefundedDiscount: 620_000}, {Currency: "EUR", Paid: 9, PaidAmount: 21_450, PaidDiscount: 4500}},
		Before: []report.Sums{{Currency: "CNY", Paid: 35_900, PaidAmount: 650_100_000, PaidDiscount: 71_800_000}}}}
}

// spending are budgets at every level.
func spending() []budget.Budget {
	at := func(scope budget.Scope, subject int64, name string, amount, committed, used money.Amount) budget.Budget {
		return budget.Budget{Key: budget.Key{Scope: scope, Subject: subject, Currency: "CNY"}, Name: name, Shop: 10, Amount: amount, Committed: committed, Used: used, Taken: used * 3 / 5, Least: 2000, Since: Now()}
	}
	return []budget.Budget{at(budget.Shop, 10, "Harbour Tea House", 200_000_000, 160_000_000, 90_000_000), at(budget.Drop, 1, "Moon cake night", 100_000_000, 100_000_000, 84_000_000),
		at(budget.Drop, 5, "Morning rush", 10_000_000, 10_000_000, 10_000_000), at(budget.Campaign, 7, "Spring greetings", 5_000_000, 1_250_000, 1_250_000)}
}

// budgetPages are the pages about budgets.
func budgetPages() []Story {
	t := coupon(1, "Moon cake night", time.Minute)
	return []Story{
		{Name: "budgets/empty", Page: droppages.Budgets{Shops: shops(), Values: map[string]string{"currency": "CNY"}}.Page()},
		{Name: "budgets/many", Page: droppages.Budgets{List: spending(), Shops: shops(), Values: map[string]string{"currency": "CNY"}}.Page()},
		{Name: "budgets/campaign", Page: droppages.Budgets{List: spending(), Campaign: "Spring greetings", Values: map[string]string{"scope": "campaign", "subject": "7", "currency": "CNY"}}.Page()},
		{Name: "budgets/refused", Page: droppages.Budgets{List: spending(), Drop: &t, Values: map[string]string{"scope": "drop", "subject": "1", "amount": "1"},
			Errors: []fault.Field{{Name: "reason", Key: "rule.reason", Message: "say why, in at most 500 characters"}}}.Page()},
	}
}

// pastDrop returns a drop that opened this many days before the drop of the page.
func pastDrop(days int, users, issued int64) report.Past {
	t := coupon(int64(20-days), fmt.Sprintf("Lunch rush, week %d", 47-days/7), -time.Duration(days)*24*time.Hour)
	t.Stored = template.Closed
	p := report.Past{Figures: figures(t, users, issued), Sales: sold(t, issued)}
	for _, g := range growth(users) {
		p.Growth = append(p.Growth, reminder.Growth{At: g.At.Add(-time.Duration(days) * 24 * time.Hour), Booked: g.Booked})
	}
	return p
}

func history(t template.Template) report.History {
	return report.History{
		Events: []reminder.TemplateStep{{At: Now().Add(-71 * time.Hour), Kind: reminder.StepPublished},
			{At: Now().Add(-26 * time.Hour), Kind: reminder.StepMoved, From: ptr(t.OpensAt.Add(-time.Hour)), To: &t.OpensAt},
			{At: Now().Add(-3 * time.Hour), Kind: reminder.StepPaused}, {At: Now().Add(-2 * time.Hour), Kind: reminder.StepResumed}},
		Earlier: []report.Past{pastDrop(7, 17_400, 50_000), pastDrop(14, 12_100, 41_000), pastDrop(21, 9_800, 50_000)},
	}
}

func reportOf(t template.Template, users, issued int64) report.Report {
	r := report.Report{Figures: figures(t, users, issued), At: Now(), Growth: growth(users), Sales: sold(t, issued), History: history(t),
		People: report.People{Booked: users, Reminded: users * 97 / 100, Opened: users * 11 / 20, Claimed: users / 2, Used: users / 5, Others: issued - users/2}}
	r.Other = &r.Earlier[0]
	r.Other.People = report.People{Booked: 17_400, Reminded: 16_900, Opened: 9_100, Claimed: 8_800, Used: 2_900}
	snapshot := snapshotOf(deliver(board(t, users), false), false)
	for _, row := range snapshot.Rows {
		for i, l := range row.Lanes {
			if l.Reserved > 0 {
				done := row.DueAt.Add(70 * time.Second)
				r.Outcomes = append(r.Outcomes, forecast.Outcome{Counts: l.Counts, DoneAt: &done, PastForecast: forecast.PastForecast{Slot: row.Slot.Slot, Channel: delivery.Channel(i), DueAt: row.DueAt,
					OpensAt: row.OpensAt, MadeAt: row.DueAt.Add(-20 * time.Second), Booked: l.Reserved, Messages: l.Reserved * 97 / 100, Missed: l.Reserved / 40, FinishAt: row.DueAt.Add(80 * time.Second)}})
			}
		}
	}
	r.Accuracy = forecast.Accuracy{Drops: 10, Median: 0.043}
	for c := range snapshot.Rows[0].Lanes {
		var sum delivery.Counts
		for _, row := range snapshot.Rows {
			sum = sum.Plus(row.Lanes[c].Counts)
		}
		if sum.Reserved > 0 {
			r.Sheets = append(r.Sheets, report.Sheet{Channel: delivery.Channel(c), Counts: sum})
		}
	}
	return r
}

// reports are the results of a drop, for staff and for holders of a link.
func reports() []Story {
	over := coupon(1, "Moon cake night: ¥20 off everything at Harbour Tea House", -5*time.Hour)
	over.Stored, over.EndedAt = template.Closed, ptr(Now().Add(-time.Hour))
	ahead := coupon(1, "Moon cake night", 20*time.Minute)
	done := droppages.Report{Report: reportOf(over, 22_000, over.Stock), Address: func(id int64) string {
		return fmt.Sprintf("https://coupons.example/r/AQAAAAAAAAAB7mK0pQ2v9XWc1tYd4uZr%d", id)
	}, Links: []report.Link{{ID: 3, CreatedAt: Now(), CreatedBy: "staff:1 Lin Mei", ExpiresAt: Now().Add(7 * 24 * time.Hour)},
		{ID: 2, CreatedBy: "staff:2 Ada Okafor", ExpiresAt: Now().Add(time.Hour), RevokedAt: ptr(Now().Add(-time.Minute))},
		{ID: 1, CreatedBy: "staff:2 Ada Okafor", ExpiresAt: Now().Add(-time.Hour)}}}
	done.Hours = hourly(over.OpensAt)
	done.Brakes = &review.Counts{Entries: over.Stock, Refused: 84_112, WithoutPass: 12_004, Suspended: 3, TakenBack: 2_950, Restored: 4, ReviewedAt: ptr(Now().Add(-time.Hour))}
	done.Draw = &draw.Fairness{Draw: draw.Draw{State: draw.Done, DrawnAt: ptr(over.OpensAt.Add(time.Minute)), Counts: draw.Counts{Entered: 212_000, Left: 1_400, Won: 5_000, Struck: 14, Lapsed: 120}},
		Reasons: []draw.Count{{Reason: "Employee of the shop", N: 11}, {Reason: "Two entries of one person", N: 3}}, TakenBack: 2,
		Doors:  []draw.DoorShare{{CardDoor: draw.CardDoor{Weight: 3, Name: "Gold members"}, Entered: 12_000, Won: 840}, {CardDoor: draw.CardDoor{Weight: 1, Name: "All customers"}, Entered: 198_600, Won: 4_160}},
		Growth: entriesOf(drawn(draw.Done, -time.Hour, draw.Drand))}
	done.Template.Doors = []template.Door{{Name: "Gold members", Who: template.ToSegment, LeadMinutes: 60}, {Name: "All customers", Who: template.ToAll}}
	done.Refused = []door.Refusal{{Door: 0, Code: "not_eligible", Claims: 41}, {Door: 1, Code: "sold_out", Claims: 1_204}, {Door: 1, Code: "limit_reached", Claims: 18}, {Door: 2, Code: "sold_out", Claims: 84_112}}
	done.Template.HoldOutPercent, done.Money.Increment = 10, brought(18_000, 5_120, 2_000, 310)
	for _, e := range done.Earlier {
		done.Others = append(done.Others, e.Template)
	}
	young := droppages.Report{Report: reportOf(ahead, 0, 0), Off: true}
	young.Sales, young.Growth, young.History, young.Sheets, young.Outcomes, young.Other = claim.Curve{}, nil, report.History{}, nil, nil, nil
	partial := droppages.Report{Report: reportOf(over, 22_000, 31_400), Address: done.Address, Error: "The report has as many valid links as it may have. Revoke one first."}
	partial.Money.Increment = brought(180, 20, 20, 1)
	partial.People.Partial, partial.Archived, partial.AfterOpening = true, true, 2
	silent := droppages.Report{Report: reportOf(over, 0, 31_400)}
	silent.Hours, silent.People = hourly(over.OpensAt), report.People{Others: 31_400}
	raffle := silent
	raffle.Draw = &draw.Fairness{Draw: done.Draw.Draw}
	trend := droppages.Trend{Period: report.PeriodOf(report.Months12, Now(), shanghai()), Shops: []template.Shop{{Number: 10, Name: "Harbour Tea House", Timezone: "Asia/Shanghai"}, {Number: 11, Name: "Corner Books", Timezone: "Europe/Berlin"}}}
	for i := range 12 {
		trend.List = append(trend.List, pastDrop(7*i, int64(24_000-1_700*i), int64(50_000-1_500*i)).Figures)
	}
	for i := range 12 {
		f := pastDrop(7*(12+i), int64(9_000-300*i), int64(31_000-900*i)).Figures
		f.Template.OpensAt = f.Template.OpensAt.AddDate(0, -9, 0)
		trend.Before = append(trend.Before, f)
	}
	trend.Choose("issued", nil)
	days, quarter := trend, trend
	days.Period, days.List, days.Before = report.PeriodOf(report.Days30, Now(), shanghai()), trend.List[:5], trend.List[5:9]
	quarter.Period, quarter.List, quarter.Before = report.PeriodOf(report.Days90, Now(), shanghai()), trend.List[:8], trend.List[8:]
	quarter.More = true
	beside := days
	beside.Choose("revenue", []string{"20", "13"})
	broken := droppages.Trend{Period: days.Period, From: "2026-11-20", To: "2026-11-02", Errors: []fault.Field{{Name: "to", Key: "rule.days_order"}}}
	return []Story{
		{Name: "results/beside", Page: beside.Page()},
		{Name: "report/over", Page: done.Page()},
		{Name: "report/unreminded", Page: silent.Page()},
		{Name: "report/unreminded-draw", Page: raffle.Page()},
		{Name: "report/ahead", Page: young.Page()},
		{Name: "report/partial", Page: partial.Page()},
		{Name: "report/shared", Page: droppages.SharedReport{Report: done.Report, Picture: "https://coupons.example/r/AQAAAAAAAAAB7mK0pQ2v9XWc1tYd4uZr/picture.png"}.Page(), Outside: true},
		{Name: "report/gone", Page: droppages.SharedFailure{Status: 404}.Page(), Outside: true},
		{Name: "results/trend", Page: trend.Page()},
		{Name: "results/days", Page: days.Page()},
		{Name: "results/quarter", Page: quarter.Page()},
		{Name: "results/broken", Page: broken.Page()},
		{Name: "results/none", Page: droppages.Trend{Period: days.Period}.Page(), Role: "viewer"},
	}
}
