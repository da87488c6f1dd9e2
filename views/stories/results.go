package stories

import (
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
)

// inGroups is a campaign in two versions with a hold-out, about a template.
func inGroups(st campaign.Status) campaign.Status {
	st.GrantTemplate = 1
	st.Content.Variants = []delivery.Variant{{Percent: 50, Texts: st.Content.Variants[0].Texts}, {Percent: 50, Texts: st.Content.Variants[0].Texts}}
	st.Content.HoldOut = 10
	// The control group gets no message.
	st.Progress.Skipped, st.Progress.Expired = st.Progress.Skipped+st.Progress.Expired, 0
	return st
}

// resultsOf returns counted results. b is the number of users of version B who have used the coupon.
func resultsOf(b int64, final bool) campaign.Results {
	r := campaign.Results{CountedTo: ptr(Now().Add(-21 * time.Second)), AccountOff: new(int64), Final: final, Until: ptr(Now().Add(6*24*time.Hour + 3*time.Hour))}
	if final {
		r.CountedTo, r.Until = ptr(Now().Add(-24*time.Hour)), ptr(Now().Add(-24*time.Hour))
	}
	r.Groups = []campaign.Tally{
		{Variant: 0, Assigned: 54_012, Sent: 52_990, Opened: 8_114, Reserved: 612, Claimed: 52_990, Used: 3_120},
		{Variant: 1, Assigned: 53_988, Sent: 52_875, Opened: 9_870, Reserved: 640, Claimed: 52_875, Used: b},
		{Variant: delivery.HeldOut, Assigned: 12_000, Reserved: 80, Claimed: 240, Used: 84},
	}
	r.SMS = delivery.SMSCosts{{Currency: "CNY", Parts: 211_730, Micros: 9_527_850_000}, {Currency: "HKD", Parts: 310, Micros: 93_000_000}}
	for i := range r.Groups {
		r.Groups[i].Spent = ordersOf(r.Groups[i].Used)
	}
	return r
}

// ordersOf are n orders of around 180.00, each of another user.
func ordersOf(n int64) (sum campaign.Spent) {
	for i := range n {
		sum = sum.Plus(campaign.Spent{Currency: "CNY", Orders: 1, Ordered: money.Amount(12_000 + i%7*2000), Discount: 2000}.OfUser())
	}
	return sum
}

// plainResults are the results of a campaign that sends one message to all.
func plainResults() campaign.Results {
	r := resultsOf(0, true)
	r.SMS = r.SMS[:1]
	r.Groups = []campaign.Tally{{Assigned: 120_000, Sent: 117_865, Opened: 20_412, Reserved: 1_204, Claimed: 3_912, Used: 801}}
	return r
}

func recipientList() []campaign.Outcome {
	opened := Now().Add(-time.Minute)
	retry := Now().Add(8 * time.Second)
	person := func(id user.ID, o delivery.Outcome, reason, detail string, variant int) campaign.Outcome {
		x := campaign.Outcome{UserID: id, Outcome: o, Reason: reason, Detail: detail, BatchID: 9, Channel: delivery.Email, Variant: variant}
		if o != delivery.InFlight {
			x.At = Now().Add(-90 * time.Second)
		}
		return x
	}
	first, waits := person(1001, delivery.Sent, "", "", 0), person(1005, delivery.Failed, delivery.ReasonProvider, "the provider answered HTTP 503", 0)
	first.OpenedAt, waits.NextRetryAt = &opened, &retry
	sleeps, wakes := person(1007, delivery.Failed, delivery.ReasonQuietHours, "", 1), Now().Add(9*time.Hour)
	sleeps.NextRetryAt = &wakes
	begun, done := Now().Add(-95*time.Second), Now().Add(-90*time.Second)
	first.At, first.NotBefore, first.NotAfter = time.Time{}, &begun, &done
	return []campaign.Outcome{first, person(1002, delivery.Recovered, delivery.ReasonProvider, "451 4.3.0 try again later", 1), waits, sleeps,
		person(1009, delivery.Skipped, delivery.ReasonOptedOut, "", 0), person(1010, delivery.Skipped, delivery.ReasonHoldOut, "", delivery.HeldOut),
		person(1011, delivery.Skipped, delivery.ReasonFrequencyCap, "", 1), person(1012, delivery.Dead, delivery.ReasonRefused, "550 5.1.1 no such mailbox here for anybody of that name", 1),
		person(1013, delivery.Expired, delivery.ReasonDeadline, "", 0), person(9_223_372_036_854_775_807, delivery.InFlight, "", "", 1)}
}

// pasts are earlier campaigns with their results.
func pasts() []campaign.Past {
	list := []campaign.Past{{Status: inGroups(campaignAt(4, "Summer sale with a name that is quite a bit longer than others", campaign.Finished, 117_865)), Results: plainResults()},
		{Status: campaignAt(3, "Spring sale", campaign.Cancelled, 9_000)}, {Status: inGroups(campaignAt(2, "First try", campaign.Finished, 105_865))}}
	list[2].Results = resultsOf(2_100, true)
	for i := range list {
		began := Now().Add(-time.Duration(i+1) * 24 * 30 * time.Hour)
		list[i].StartsAt, list[i].StartedAt, list[i].SettledAt, list[i].EndedAt = began, &began, ptr(began.Add(time.Duration(i+1)*5*time.Minute)), ptr(began)
	}
	return list
}

func campaignOutcomes() []Story {
	page := func(st campaign.Status, r campaign.Results, list []campaign.Outcome) campaignpages.Campaign {
		p := campaignPage(st)
		p.Results = r
		p.Recipients = campaignpages.CampaignRecipients{Status: st, Zone: shanghai(), List: list, Part: true}
		return p
	}
	finished := inGroups(campaignAt(7, "Mid-autumn sale", campaign.Finished, 105_865))
	better := page(finished, resultsOf(3_610, false), recipientList())
	better.Earlier = pasts()
	worse := resultsOf(2_600, true)
	worse.Groups[2].Used = 900
	nobody := resultsOf(0, false)
	for i := range nobody.Groups {
		nobody.Groups[i].Used, nobody.Groups[i].Opened, nobody.Groups[i].Claimed = 0, 0, 0
	}
	plain := inGroups(campaignAt(6, "One for all", campaign.Finished, 117_865))
	plain.Content.Variants, plain.Content.HoldOut = plain.Content.Variants[:1], 0
	bare := campaignAt(6, "News", campaign.Finished, 117_865)
	fresh := resultsOf(0, false)
	fresh.Groups, fresh.CountedTo, fresh.Until, fresh.AccountOff = nil, nil, nil, nil
	off := resultsOf(3_150, false)
	off.AccountOff = ptr(int64(-2))
	recounted := page(finished, off, nil)
	recounted.Balance = &campaign.Balance{Counted: finished.Progress.Counts, Kept: finished.Progress.Counts}

	list := func(p campaignpages.CampaignRecipients) campaignpages.CampaignRecipients {
		p.Status, p.Zone = finished, shanghai()
		return p
	}
	export := "/campaigns/7/recipients.csv"
	started := campaignAt(5, "Just begun", campaign.Running, 0)
	started.Progress = campaign.Progress{Left: -1}
	plainList := campaignpages.CampaignRecipients{Status: bare, Zone: shanghai(), List: recipientList()[:1], Paged: pageparts.Paged{Export: export}}
	compare := campaignpages.CampaignCompare{Campaign: finished.Campaign, Zone: shanghai(), Others: pasts(), Chosen: []int64{4, 3, 1}, Next: "/campaigns/7/compare?before=2", LeftOut: 2,
		List: append([]campaign.Past{{Status: finished, Results: resultsOf(3_610, false)}}, pasts()...)}
	alone := campaignpages.CampaignCompare{Campaign: finished.Campaign, Zone: shanghai(), List: compare.List[:1]}
	tested := page(inGroups(campaignAt(7, "Mid-autumn sale", campaign.Running, 61_000)), resultsOf(3_610, false), recipientList())
	tested.Content.Test = &delivery.Test{Share: 20, By: delivery.ByOpened, Minutes: 60, Early: true, Winner: new(1)}
	tested.Course = campaignpages.CampaignCourse{Status: tested.Status, Zone: shanghai(), Series: courseOf(*tested.StartedAt), Looks: []campaign.TestDecision{
		{Look: campaign.Halfway, At: tested.StartedAt.Add(30 * time.Minute), Arms: []campaign.Arm{{Assigned: 9_800, Sent: 9_600, Did: 410}, {Variant: 1, Assigned: 9_900, Sent: 9_700, Did: 480}}},
		{Look: campaign.AtEnd, At: tested.StartedAt.Add(time.Hour), Winner: new(1), Arms: []campaign.Arm{{Assigned: 9_800, Sent: 9_600, Did: 780}, {Variant: 1, Assigned: 9_900, Sent: 9_700, Did: 960}}}}}
	testing := tested
	testing.Content.Test = &delivery.Test{Share: 20, By: delivery.ByClaimed, Minutes: 60}
	testing.Waiting.Undecided = testing.Progress.InFlight
	testing.Course.Content.Test, testing.Course.Looks = testing.Content.Test, nil
	return []Story{
		{Name: "results/tested", Page: tested.Page()},
		{Name: "results/testing", Page: testing.Page()},
		{Name: "results/more", Page: better.Page()},
		{Name: "results/chance", Page: page(finished, resultsOf(3_150, false), recipientList()).Page(), Role: "viewer"},
		{Name: "results/less", Page: page(finished, worse, recipientList()).Page()},
		{Name: "results/nobody", Page: page(finished, nobody, recipientList()).Page()},
		{Name: "results/plain", Page: page(plain, plainResults(), recipientList()[:1]).Page()},
		{Name: "results/no-template", Page: page(bare, plainResults(), recipientList()[:3]).Page()},
		{Name: "results/soon", Page: page(started, fresh, nil).Page()},
		{Name: "results/off", Page: page(finished, off, recipientList()).Page()},
		{Name: "results/recounted", Page: recounted.Page()},
		{Name: "recipients/many", Page: list(campaignpages.CampaignRecipients{List: recipientList(), Paged: pageparts.Paged{First: "/campaigns/7/recipients", Next: "/campaigns/7/recipients?after=1013", Export: export}}).Page()},
		{Name: "recipients/one", Page: plainList.Page(), Role: "viewer"},
		{Name: "recipients/none", Page: list(campaignpages.CampaignRecipients{Filter: campaignpages.RecipientFilter{Outcome: "expired", Reason: delivery.ReasonDeadline, Variant: "b"}}).Page()},
		{Name: "recipients/further", Page: list(campaignpages.CampaignRecipients{Filter: campaignpages.RecipientFilter{Outcome: pageparts.HeldOutOutcome}, Paged: pageparts.Paged{Further: true, Next: "/campaigns/7/recipients?after=9"}}).Page()},
		{Name: "recipients/gone", Page: list(campaignpages.CampaignRecipients{}).Page()},
		{Name: "recipients/empty", Page: campaignpages.CampaignRecipients{Status: campaignAt(6, "New year", campaign.Draft, 0), Zone: shanghai()}.Page()},
		{Name: "recipients/broken", Page: list(campaignpages.CampaignRecipients{Filter: campaignpages.RecipientFilter{User: "ada"},
			Paged: pageparts.Paged{Errors: []fault.Field{{Name: "user", Key: "rule.user_id", Message: "must be a positive whole number"}}}}).Page()},
		{Name: "compare/some", Page: compare.Page()},
		{Name: "compare/none", Page: alone.Page(), Role: "viewer"},
	}
}

// courseOf is what a campaign brought over two hours.
func courseOf(from time.Time) campaign.Series {
	s := campaign.Series{Currency: "CNY"}
	for i := range int64(24) {
		p := campaign.Point{At: from.Add(time.Duration(i) * 5 * time.Minute), Opened: 400 / (i + 1), Claimed: 90 / (i + 1), Earned: 810_000 / (i + 1)}
		if i < 3 || i > 11 && i < 16 {
			p.Sent, p.Delivered = 8_700, 8_590
		}
		s.Points = append(s.Points, p)
	}
	return s
}
