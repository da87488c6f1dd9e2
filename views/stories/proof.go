package stories

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	deliverypages "dropbell/views/pages/delivery"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// proofs are the pages that show the outcome of every message.
func proofs() []Story {
	var all []Story
	for _, group := range [][]Story{deadLetters(), explanations(), forecasts(), balances(), announcements()} {
		all = append(all, group...)
	}
	return all
}

func ptr[T any](v T) *T { return &v }

func deadGroups() []delivery.DeadLetterGroup {
	ago := func(d time.Duration) time.Time { return Now().Add(-d) }
	return []delivery.DeadLetterGroup{
		{Channel: delivery.SMS, Fingerprint: "the provider answered HTTP #", Dead: 1533, FirstAt: ago(6 * time.Minute), LastAt: ago(20 * time.Second), Sample: "the provider answered HTTP 503"},
		{Channel: delivery.Email, Fingerprint: "#.#.# mailbox unavailable", Dead: 212, FirstAt: ago(26 * time.Hour), LastAt: ago(4 * time.Minute), Sample: "550 5.1.1 mailbox unavailable: the recipient’s server rejected this address and everything that was ever sent to it"},
		{Channel: delivery.WebPush, Fingerprint: "", Dead: 3, FirstAt: ago(40 * time.Hour), LastAt: ago(39 * time.Hour)},
	}
}

func jobs() deliverypages.Jobs {
	filter := delivery.DeadLetterFilter{Channel: ptr(delivery.SMS), Fingerprint: ptr("the provider answered HTTP #")}
	return deliverypages.Jobs{List: []delivery.DeadLetterJob{
		{ID: 9, Action: delivery.Replay, Filter: filter, Rate: 20, State: "running", Total: 1533, Done: 604, Late: 102, Sent: 17, CreatedBy: "staff:1 Lin Mei", CreatedAt: Now().Add(-38 * time.Second)},
		{ID: 8, Action: delivery.Discard, Filter: delivery.DeadLetterFilter{TemplateID: 3}, State: "finished", Total: 41, Done: 41, CreatedBy: "key:3 automation", CreatedAt: Now().Add(-3 * time.Hour)},
		{ID: 7, Action: delivery.Replay, State: "cancelled", Total: 900, Done: 12, CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now().Add(-26 * time.Hour)},
	}}
}

func deadLetters() []Story {
	filter := pageparts.DeadFilter{Channel: "sms", Fingerprint: ptr("the provider answered HTTP #")}
	letter := func(id user.ID, worthless time.Duration) delivery.DeadLetter {
		return delivery.DeadLetter{BatchID: 88, UserID: id, Channel: delivery.SMS, TemplateID: 1, TemplateName: "Moon cake night", Reason: delivery.ReasonTooManyTries, Detail: "the provider answered HTTP 503",
			Attempts: 8, FirstAt: Now().Add(-5 * time.Minute), LastAt: Now().Add(-90 * time.Second), WorthlessAfter: Now().Add(worthless)}
	}
	spring := letter(1002, time.Hour)
	spring.Kind, spring.OwnerID, spring.OwnerName, spring.TemplateID, spring.TemplateName = delivery.KindCampaign, 9, "Spring greetings", 0, ""
	list := []delivery.DeadLetter{letter(1001, 11*time.Minute), letter(1007, 11*time.Minute), letter(9_007_199_254_740_993, -time.Minute), spring}
	return []Story{
		{Name: "dead-letters/empty", Page: deliverypages.DeadLetters{}.Page()},
		{Name: "dead-letters/one", Page: deliverypages.DeadLetters{Groups: deadGroups()[2:]}.Page()},
		{Name: "dead-letters/many", Page: deliverypages.DeadLetters{Groups: deadGroups(), Jobs: jobs()}.Page()},
		{Name: "dead-letters/past", Page: deliverypages.DeadLetters{Groups: deadGroups(), Jobs: deliverypages.Jobs{List: jobs().List[1:]}}.Page()},
		{Name: "dead-letters/viewer", Page: deliverypages.DeadLetters{Groups: deadGroups()[:1], Jobs: deliverypages.Jobs{List: jobs().List[:1]}, Filter: pageparts.DeadFilter{Channel: "sms"}}.Page(), Role: "viewer"},
		{Name: "dead-letters/none", Page: deliverypages.DeadLetters{Filter: pageparts.DeadFilter{Template: "4"}}.Page()},
		{Name: "dead-letters/campaign", Page: deliverypages.DeadLetters{Groups: deadGroups()[:1], Filter: pageparts.DeadFilter{Campaign: "9"}}.Page()},
		{Name: "dead-letters/nonsense", Page: deliverypages.DeadLetters{Filter: pageparts.DeadFilter{User: "ada"}, Errors: []fault.Field{{Name: "user", Key: "rule.user_id", Message: "must be a positive whole number"}}}.Page()},
		{Name: "dead-letters/single", Page: deliverypages.DeadLetterList{Filter: filter, List: list, Paged: pageparts.Paged{Next: "/dead-letters/list?after=88_1007"}}.Page()},
		{Name: "dead-letters/replay", Page: deliverypages.Replay{Filter: filter, Triage: delivery.Triage{Total: 1533, InTime: 1204, TooLate: 312, AlreadySent: 17, ByRate: 290}, Rate: "20", PerSecond: 20}.Page()},
		{Name: "dead-letters/replay-fast", Page: deliverypages.Replay{Filter: filter, Triage: delivery.Triage{Total: 1533, InTime: 1494, TooLate: 22, AlreadySent: 17}}.Page()},
		{Name: "dead-letters/replay-refused", Page: deliverypages.Replay{Filter: filter, Triage: delivery.Triage{Total: 3, InTime: 3}, Rate: "-1", Errors: []fault.Field{{Name: "rate_per_second", Key: "rule.rate", Message: "must be between 0 and 1000000"}}}.Page()},
		{Name: "dead-letters/replay-useless", Page: deliverypages.Replay{Filter: filter, Triage: delivery.Triage{Total: 1533, TooLate: 1533}}.Page()},
	}
}

// timeline has a step of every kind.
func timeline(t template.Template) reminder.Timeline {
	at := func(before time.Duration) time.Time { return t.OpensAt.Add(-before) }
	by := func(c delivery.Channel, s template.Slot) *reminder.Reminder {
		return &reminder.Reminder{Channel: c, Slot: s}
	}
	due := func(s template.Slot) *time.Time { return ptr(s.DueAt(t.OpensAt)) }
	fired := func(c delivery.Channel, s template.Slot) reminder.Step {
		return reminder.Step{At: due(s).Add(42 * time.Millisecond), Kind: reminder.StepFired, Planned: due(s), Reminder: by(c, s), Message: delivery.KindReminder, BatchID: 88}
	}
	ended := func(c delivery.Channel, s template.Slot, after time.Duration, o delivery.Outcome) reminder.Step {
		return reminder.Step{At: due(s).Add(after), Kind: reminder.StepOutcome, Planned: due(s), Reminder: by(c, s), Message: delivery.KindReminder, BatchID: 88, Outcome: o}
	}
	sms := ended(delivery.SMS, 3, 97*time.Second, delivery.Dead)
	sms.Reason, sms.Detail, sms.Attempts = delivery.ReasonTooManyTries, "the provider answered HTTP 503", 8
	skipped := ended(delivery.WebPush, 3, 310*time.Millisecond, delivery.Skipped)
	skipped.Reason = delivery.ReasonOptedOut
	mail := ended(delivery.Email, 6, 3210*time.Millisecond, delivery.Recovered)
	mail.Reported = feedback.Delivered
	v := reservation(t, map[reminder.Reminder]string{*by(delivery.App, 12): "sent", *by(delivery.Email, 6): "recovered", *by(delivery.SMS, 3): "dead", *by(delivery.WebPush, 3): "skipped", *by(delivery.Email, 1): "waiting"})
	v.CreatedAt, v.UpdatedAt = at(50*time.Hour), at(49*time.Hour)
	return reminder.Timeline{View: v, Steps: []reminder.Step{
		{At: at(50 * time.Hour), Kind: reminder.StepReserved},
		{At: at(49 * time.Hour), Kind: reminder.StepChanged},
		{At: at(26 * time.Hour), Kind: reminder.StepMoved, By: "staff:2 Ada Okafor", From: ptr(at(30 * time.Minute)), To: ptr(t.OpensAt)},
		{At: at(25 * time.Hour), Kind: reminder.StepAnnounced, Reminder: by(delivery.App, 0), Message: delivery.KindCorrection},
		fired(delivery.App, 12), ended(delivery.App, 12, 128*time.Millisecond, delivery.Sent),
		fired(delivery.Email, 6), {At: due(6).Add(1900 * time.Millisecond), Kind: reminder.StepTried, Reminder: by(delivery.Email, 6), Message: delivery.KindReminder, Attempts: 2, Reason: delivery.ReasonProvider, Detail: "451 4.3.0 try again later"},
		mail,
		fired(delivery.SMS, 3), fired(delivery.WebPush, 3), skipped, sms,
		{At: at(13 * time.Minute), Kind: reminder.StepClaimed, CouponID: 7001, Reason: "grant"},
		{At: at(770 * time.Second), Kind: reminder.StepCouponLocked, CouponID: 7001, OrderID: "A-1001", By: "key:3 checkout"},
		{At: at(760 * time.Second), Kind: reminder.StepCouponUsed, CouponID: 7001, OrderID: "A-1001", By: "key:3 checkout"},
		{At: at(750 * time.Second), Kind: reminder.StepCouponRefunded, CouponID: 7001, OrderID: "A-1001", By: "key:3 checkout"},
		{At: at(740 * time.Second), Kind: reminder.StepCouponExpired, CouponID: 7001},
		{At: at(730 * time.Second), Kind: reminder.StepAnnounced, Planned: ptr(at(730 * time.Second)), Reminder: by(delivery.App, 0), Message: delivery.KindNotice, BatchID: 91},
		{At: at(720 * time.Second), Kind: reminder.StepOutcome, Reminder: by(delivery.App, 0), Message: delivery.KindNotice, BatchID: 91, Outcome: delivery.Sent},
		{At: at(710 * time.Second), Kind: reminder.StepOutcome, Message: delivery.KindNotice, Outcome: delivery.Expired, Reason: delivery.ReasonDeadline},
		{At: *due(1), Kind: reminder.StepExpected, Planned: due(1), Reminder: by(delivery.Email, 1), Message: delivery.KindReminder},
		{At: at(-24 * time.Hour), Kind: reminder.StepExpected, Planned: ptr(at(-24 * time.Hour)), Message: delivery.KindNotice},
	}}
}

func explanations() []Story {
	t := coupon(1, "Moon cake night", 11*time.Minute)
	return []Story{
		{Name: "explain/busy", Page: droppages.Explain{Template: t, User: person(1001), Found: true, Timeline: timeline(t)}.Page()},
		{Name: "explain/none", Page: droppages.Explain{Template: t, User: user.User{ID: 42}}.Page()},
	}
}

// outlook plays made-up bookings through at the rates given.
func outlook(booked map[delivery.Channel]int64, rates map[delivery.Channel]forecast.Rate, drops ...template.Template) []forecast.ChannelForecast {
	var list []forecast.ChannelForecast
	for _, c := range delivery.AllChannels() {
		var jobs []forecast.Job
		for _, t := range drops {
			for _, s := range []template.Slot{12, 6, 3, 2, 1} {
				if n := booked[c] / int64(s); n > 0 && s.DueAt(t.OpensAt).After(Now()) {
					jobs = append(jobs, forecast.Job{TemplateID: t.ID, Name: t.Name, Slot: s, Channel: c, DueAt: s.DueAt(t.OpensAt), Deadline: t.OpensAt, Messages: n})
				}
			}
		}
		rate, ok := rates[c]
		if !ok {
			rate = forecast.AssumedRate(c)
		}
		f := forecast.ChannelForecast{Channel: c, Rate: rate, Jobs: forecast.Forecast(jobs, rate, Now())}
		for _, p := range f.Jobs {
			f.Missed += p.Missed
		}
		if f.Missed > 0 {
			f.Needed = forecast.NeededRate(jobs, Now())
		}
		list = append(list, f)
	}
	return list
}

func forecasts() []Story {
	moon, rush := coupon(1, "Moon cake night", 61*time.Minute), coupon(5, "Morning rush with a name that is rather long for a heading", 63*time.Minute)
	booked := map[delivery.Channel]int64{delivery.App: 180_000, delivery.Email: 52_000, delivery.SMS: 41_000}
	accuracy := forecast.Accuracy{Drops: 10, Median: 0.062}
	good := outlook(booked, map[delivery.Channel]forecast.Rate{delivery.Email: {PerSecond: 1800, Source: forecast.Measured}}, moon)
	bad := outlook(booked, map[delivery.Channel]forecast.Rate{delivery.Email: {PerSecond: 240, Source: forecast.Measured}, delivery.SMS: {PerSecond: 120, Source: forecast.Configured}}, moon, rush)
	bad[delivery.Email].Measured, bad[delivery.Email].Most = forecast.Throughput{PerSecond: 240, Low: 180, High: 310, Slots: 6}, 31_000
	bad[delivery.SMS].Measured = forecast.Throughput{PerSecond: 150, Low: 150, High: 150, Slots: 1}
	for i := range bad[delivery.Email].Jobs {
		bad[delivery.Email].Jobs[i].Booked = bad[delivery.Email].Jobs[i].Messages * 8
	}
	return []Story{
		{Name: "forecast/empty", Page: droppages.Forecast{Horizon: 24 * time.Hour}.Page()},
		{Name: "forecast/good", Page: droppages.Forecast{Horizon: 24 * time.Hour, Channels: good}.Page()},
		{Name: "forecast/halted", Page: droppages.Forecast{Horizon: 24 * time.Hour, Channels: good, Halted: droppages.Halted{delivery.Email: "failing", delivery.SMS: "paused"}}.Page()},
		{Name: "forecast/bad", Page: droppages.Forecast{Horizon: 24 * time.Hour, Channels: bad, Halted: droppages.Halted{delivery.Email: "paused"}, Hidden: map[int64]bool{5: true}, Accuracy: accuracy}.Page()},
		{Name: "forecast/texts", Page: alone("Forecast", textCosts()...)},
		{Name: "forecast/limits", Page: droppages.Forecast{Horizon: 24 * time.Hour, Channels: limited()}.Page()},
		{Name: "forecast/card", Page: alone("Forecast", droppages.ForecastCard(bad, 1, droppages.Halted{}, accuracy), droppages.ForecastCard(good, 0, droppages.Halted{"failing", "paused"}, accuracy), droppages.ForecastCard(nil, 2, droppages.Halted{}, forecast.Accuracy{}))},
	}
}

// textCosts are a drop whose prices and budgets are enough, and one with neither.
func textCosts() []templ.Component {
	good := forecast.TextCost{Messages: 41_000, Parts: 43_100, Micros: 2_105_400_000, Currency: "CNY", Estimated: true, Countries: []forecast.CountryCost{
		{Country: "CN", Messages: 40_000, Parts: 42_000, Micros: 1_890_000_000, Priced: true}, {Country: "HK", Messages: 1000, Parts: 1100, Micros: 215_400_000, Priced: true}}}
	short := good
	short.Messages, short.Parts = good.Messages+12, good.Parts+24
	short.Countries = append(slices.Clone(good.Countries), forecast.CountryCost{Country: "", Messages: 12, Parts: 24})
	short.DropParts, short.DropLeft = 43_124, 30_000
	short.Days = []forecast.ShortDay{{Day: Now(), Parts: true, Money: true, Need: delivery.BudgetSize{Parts: 90_000, Micros: 4_400_000_000}, Left: delivery.BudgetSize{Parts: 50_000, Micros: 2_000_000_000}}}
	unpriced := forecast.TextCost{Messages: 7, Parts: 14, Countries: []forecast.CountryCost{{Country: "DE", Messages: 7, Parts: 14}}}
	return []templ.Component{droppages.TextCostCard(good), droppages.TextCostCard(short), droppages.TextCostCard(unpriced)}
}

// alone shows cards that are parts of other pages.
func alone(title string, cards ...templ.Component) templ.Component {
	inside := templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		for _, c := range cards {
			if err := c.Render(ctx, w); err != nil {
				return err
			}
		}
		return nil
	})
	return templ.ComponentFunc(func(ctx context.Context, w io.Writer) error {
		return ui.Page(ui.PageProps{Title: title}).Render(templ.WithChildren(ctx, inside), w)
	})
}

// sheet is the balance of a board whose slots have fired.
func sheet(b reminder.Board) []droppages.BalanceLine {
	var list []droppages.BalanceLine
	for _, r := range b.Rows {
		for _, c := range r.Cells {
			if c.Reserved > 0 {
				kept := c.Counts
				kept.InFlight = 0
				list = append(list, droppages.BalanceLine{BalanceLine: reminder.BalanceLine{Slot: r.Slot, Channel: c.Channel, Kept: kept, Counted: c.Counts}})
			}
		}
	}
	return list
}

func balances() []Story {
	rush := drop(1, "Moon cake night", 11*time.Minute, 184_220)
	rush.Board = deliver(rush.Board, true)
	fine, wrong := sheet(rush.Board), sheet(rush.Board)[:12]
	wrong[1].Counted.Reserved, wrong[1].Counted.Sent = wrong[1].Counted.Reserved-3, wrong[1].Counted.Sent-3
	wrong[2].Twice = 1
	wrong[5].Kept.Skipped += 2
	at := Now()
	return []Story{
		{Name: "balance/empty", Page: droppages.Balance{Template: rush.Template, At: at}.Page()},
		{Name: "balance/fine", Page: droppages.Balance{Template: rush.Template, Lines: fine, At: at}.Page()},
		{Name: "balance/off", Page: droppages.Balance{Template: rush.Template, Lines: wrong, At: at}.Page()},
	}
}

func announcements() []Story {
	moved, off := coupon(1, "Moon cake night", 31*time.Minute), coupon(8, "Rained off", time.Hour)
	off.Stored = template.Cancelled
	sent := func(id int64, kind delivery.Kind, state reminder.AnnouncementState, counts ...delivery.Counts) reminder.AnnouncementStatus {
		a := reminder.AnnouncementStatus{Announcement: reminder.Announcement{ID: id, TemplateID: 1, Kind: kind, OpensAt: moved.OpensAt, State: state, CreatedBy: "staff:2 Ada Okafor", CreatedAt: Now().Add(-4 * time.Minute)}}
		copy(a.Channels[:], counts)
		return a
	}
	stopped := sent(3, delivery.KindCorrection, reminder.AnnouncementFinished, outcome(900, false, false))
	stopped.StopReason, stopped.OpensAt = delivery.ReasonMoved, moved.OpensAt.Add(-20*time.Minute)
	offer := droppages.Announce{Template: moved, Kind: delivery.KindCorrection, Audience: reminder.Audience{2900, 512}, List: []reminder.AnnouncementStatus{stopped}}
	going := droppages.Announce{Template: off, List: []reminder.AnnouncementStatus{sent(5, delivery.KindCancelled, reminder.AnnouncementSending, outcome(40_000, true, false), outcome(8_000, true, true)), sent(4, delivery.KindCorrection, reminder.AnnouncementWaiting)}}
	call := droppages.Announce{Template: off, Kind: delivery.KindCancelled, Audience: reminder.Audience{1}}
	confirm := pageparts.Confirmation{Active: "templates", Inside: droppages.Recipients(reminder.Reach{Audience: offer.Audience, Users: 3102, Again: 1840, LeftOut: 17}), ConfirmProps: ui.ConfirmProps{Title: "Correct the opening of “Moon cake night”", NoReason: true, Kind: "primary",
		Points: []string{"Each customer gets it once per channel, however many reminders there were.", "17 customers are left out: no customer gets more than 3 corrections of one drop."}, Action: "/templates/1/announcements/correction", Cancel: "/templates/1", Submit: "Send correction"}}
	return []Story{
		{Name: "announce/empty", Page: droppages.Announce{Template: moved}.Page()},
		{Name: "announce/offer", Page: offer.Page()},
		{Name: "announce/left-out", Page: droppages.Announce{Template: moved, LeftOut: 7557, List: offer.List}.Page()},
		{Name: "announce/going", Page: going.Page()},
		{Name: "announce/cancelled", Page: call.Page()},
		{Name: "announce/confirm", Page: confirm.Page()},
	}
}
