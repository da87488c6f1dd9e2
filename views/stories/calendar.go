package stories

import (
	"slices"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/campaign/approval"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	campaignpages "dropbell/views/pages/campaigns"
	droppages "dropbell/views/pages/drops"
)

// calendars are months of campaigns and drops, the page of an approval, and the
// limits of shops.
func calendars() []Story {
	var all []Story
	for _, group := range [][]Story{months(), approvals()} {
		all = append(all, group...)
	}
	return all
}

func date(month time.Month, day int) time.Time {
	return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC)
}

func planned(day time.Time, hour int, name string, s campaign.State) campaign.Planned {
	at := time.Date(day.Year(), day.Month(), day.Day(), hour, 0, 0, 0, shanghai())
	return campaign.Planned{ID: int64(day.Day()*100 + hour), Name: name, At: at, EndsAt: at.Add(24 * time.Hour), Zone: "Asia/Shanghai",
		ShopName: "Harbour Tea House", State: s, Channel: delivery.App}
}

func opening(day time.Time, hour int, name string, s template.State) campaign.Planned {
	p := planned(day, hour, name, "")
	p.Drop, p.DropState = true, s
	return p
}

// monthDays are six weeks around November 2026, with the things put on their days.
func monthDays(list ...campaign.Planned) []campaign.CalendarDay {
	var days []campaign.CalendarDay
	for d := date(time.October, 25); d.Before(date(time.December, 7)); d = d.AddDate(0, 0, 1) {
		day := campaign.CalendarDay{Date: d}
		for _, p := range list {
			if p.At.In(shanghai()).Format(time.DateOnly) == d.Format(time.DateOnly) {
				day.List = append(day.List, p)
			}
		}
		slices.SortStableFunc(day.List, func(a, b campaign.Planned) int { return a.At.Compare(b.At) })
		days = append(days, day)
	}
	return days
}

func months() []Story {
	page := campaignpages.CampaignCalendar{Month: date(time.November, 1), Today: date(time.November, 20), Zone: shanghai(), Shops: shops()}
	november := func(day int) time.Time { return date(time.November, day) }
	empty, one, many, full := page, page, page, page
	empty.Days = monthDays()
	one.Days, one.Shop = monthDays(planned(november(24), 10, "Thanks for this year", campaign.Scheduled)), 10
	awaiting := planned(november(27), 9, "Black Friday: everything that is left over, in all shops at once", campaign.Draft)
	awaiting.Awaiting = true
	berlin := planned(november(24), 21, "Advent in Berlin", campaign.Scheduled)
	berlin.Zone, berlin.ShopName = "Europe/Berlin", "Teehaus Mitte"
	many.Days = monthDays(
		planned(november(3), 10, "Autumn letter", campaign.Finished), planned(november(11), 0, "Double eleven", campaign.Finished),
		opening(november(11), 0, "Double eleven: ¥111 off", template.Closed), planned(november(12), 18, "What you missed", campaign.Cancelled),
		opening(november(20), 20, "Moon cake night: ¥20 off everything at Harbour Tea House", template.Scheduled),
		planned(november(20), 8, "Tonight at eight", campaign.Running), planned(november(20), 12, "Lunch break", campaign.Paused),
		planned(november(20), 9, "Lost segment", campaign.Failed), berlin, planned(november(24), 10, "Thanks for this year", campaign.Scheduled),
		awaiting, planned(november(30), 10, "Draft for December", campaign.Draft), opening(date(time.December, 3), 20, "Winter warm-up", template.Draft))
	for i := range many.Days {
		switch many.Days[i].Date {
		case november(20):
			many.Days[i].More = 12
		case november(24):
			many.Days[i].More, many.Days[i].Many = 100, true
		}
	}
	day := campaign.CalendarDay{Date: november(20), More: 100, Many: true, List: []campaign.Planned{
		planned(november(20), 8, "Tonight at eight", campaign.Running), planned(november(20), 12, "Lunch break", campaign.Paused),
		opening(november(20), 20, "Moon cake night: ¥20 off everything", template.Scheduled)}}
	full.Day = &day
	nobody := page
	nobody.Day = &campaign.CalendarDay{Date: november(29)}
	return []Story{
		{Name: "calendar/empty", Page: empty.Page()},
		{Name: "calendar/one", Page: one.Page(), Role: staff.Viewer},
		{Name: "calendar/many", Page: many.Page()},
		{Name: "calendar/day", Page: full.Page()},
		{Name: "calendar/day_empty", Page: nobody.Page()},
	}
}

func rule(version int64, cities ...string) *campaign.FrozenRule {
	return &campaign.FrozenRule{SegmentID: 3, Version: version, Name: "Regulars in the east", Kind: segment.ByRules, Rule: segment.Rule{Match: segment.All, Rules: []segment.Rule{
		segment.Leaf(segment.Attribute, "city", segment.Is, cities...),
		{Match: segment.Any, Rules: []segment.Rule{segment.Leaf(segment.Attribute, "tier", segment.Is, "gold"), segment.Leaf(segment.Locale, "", segment.Is, "zh-CN")}}}}}
}

func approvals() []Story {
	st := campaignAt(9, "Twelve-twelve", campaign.Draft, 0)
	asked := Now().Add(-40 * time.Minute)
	st.ApprovalAskedAt, st.Audience, st.GrantTemplate = &asked, campaign.Audience{Kind: campaign.Segment, ID: 3}, 1
	now := campaign.Snapshot{Spec: st.Spec, Rule: rule(4, "Shanghai", "Hangzhou")}
	then := now
	then.Rule, then.Name, then.RatePerSecond, then.GrantTemplate = rule(3, "Shanghai"), "Twelve-eleven", 0, 0
	then.Content = delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{
		"": {Title: "Moon cakes for {{name|you}}", Body: "Come by this week.\nEverything is 10 % off."}}}}}
	open := campaign.Request{ID: 12, CampaignID: 9, Snapshot: now, Reach: campaign.Reach{Users: 1_204_000, At: asked}, State: campaign.RequestAsked,
		AskedBy: "staff:2", AskedName: "Ada Okafor", AskedAt: asked, Reason: "The last week before the year ends; agreed with the shop."}
	refusedAt := asked.Add(-2 * time.Hour)
	refused := campaign.Request{ID: 11, CampaignID: 9, Snapshot: then, Reach: campaign.Reach{Users: 804_000, At: refusedAt}, State: campaign.RequestRefused,
		AskedBy: "staff:2", AskedName: "Ada Okafor", AskedAt: refusedAt, DecidedBy: "staff:1 Lin Mei", DecidedAt: new(refusedAt.Add(time.Hour)), DecidedReason: "Not without a text in Chinese."}
	page := campaignPage(st)
	granted := coupon(1, "Moon cake night", time.Minute)
	base := campaignpages.Approval{Review: approval.Review{Campaign: st.Campaign, Now: now, Reach: &campaign.Reach{Users: 1_206_311, At: Now()}, Open: &open, Above: 100_000},
		Zone: shanghai(), Mine: true, Grants: map[int64]template.Template{1: granted}, Previews: page.Previews}
	again := base
	again.Before = &refused
	lapsed := base
	stale := open
	stale.Snapshot = then
	lapsed.Open, lapsed.Error = &stale, "The campaign has changed since approval was requested. Both versions are shown below; approval must be requested again."
	lapsed.Mine, lapsed.Asks = false, true
	others := lapsed
	others.Error, others.Mine, others.Asks = "", true, false
	own := base
	own.Mine, own.Withdraws = false, true
	held := base
	held.Campaign.State, held.Campaign.HeldAt = campaign.Paused, &asked
	grown := open
	grown.Reason, grown.Reach.Exact, grown.Allowed = "", true, new(int64(100_000))
	held.Open, held.Reach = &grown, &grown.Reach
	needless := base
	needless.Above = 2_000_000
	late := base
	late.Campaign.EndsAt = Now().Add(-time.Minute)
	theirs := base
	theirs.Mine, theirs.Reach = false, nil
	needs := base
	needs.Errors = []fault.Field{{Name: "reason", Key: "rule.required", Message: "is required"}}
	decided := base
	decided.Open, decided.Before, decided.Mine, decided.Asks = nil, &refused, false, true
	return []Story{
		{Name: "approval/none", Page: campaignpages.Approval{Review: approval.Review{Campaign: campaignAt(6, "New year", campaign.Draft, 0).Campaign}}.Page()},
		{Name: "approval/first", Page: base.Page()},
		{Name: "approval/again", Page: again.Page()},
		{Name: "approval/lapsed", Page: lapsed.Page()},
		{Name: "approval/others_ask", Page: others.Page()},
		{Name: "approval/own", Page: own.Page()},
		{Name: "approval/needless", Page: needless.Page()},
		{Name: "approval/held", Page: held.Page()},
		{Name: "approval/late", Page: late.Page()},
		{Name: "approval/theirs", Page: theirs.Page(), Role: staff.Viewer},
		{Name: "approval/needs_reason", Page: needs.Page()},
		{Name: "approval/refused", Page: decided.Page()},
	}
}

func shopLimits() *droppages.ShopLimits {
	values := droppages.LimitValues(campaign.Limits{PerDay: 1, PerWeek: 3, ApprovalAbove: 100_000})
	return &droppages.ShopLimits{Shop: 10, Name: "Harbour Tea House", Values: values, Was: values}
}

func limitsRefused() droppages.ShopLimits {
	p := *shopLimits()
	p.Values = map[string]string{"approval_above": "many", "per_day": "1001", "per_week": "3"}
	p.Errors = []fault.Field{{Name: "approval_above", Key: "rule.number", Message: "must be a whole number"},
		{Name: "per_day", Key: "rule.cap", Message: "must be between 0 (no limit) and 1000"}}
	return p
}
