package stories

import (
	"maps"
	"slices"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/segment"
	"dropbell/domain/user"
	campaignpages "dropbell/views/pages/campaigns"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// campaignAt is a campaign in a state with part of its audience reached.
func campaignAt(id int64, name string, state campaign.State, sent int64) campaign.Status {
	started, ended := Now().Add(-2*time.Minute), Now().Add(-time.Minute)
	c := campaign.Campaign{ID: id, State: state, Version: 3, CreatedBy: "staff:1 Lin Mei", ShopName: "Harbour Tea House", ShopTimezone: "Asia/Shanghai", Spec: campaign.Spec{
		Shop: 10, Name: name, Channel: delivery.Email, Audience: campaign.Audience{Kind: campaign.Everybody}, RatePerSecond: 500,
		StartsAt: started, EndsAt: started.Add(24 * time.Hour), Content: delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{
			"":      {Title: "Moon cakes for {{name|you}}", Body: "Come by this week.\nEverything is 20 % off."},
			"zh-CN": {Title: "{{name|您好}}，月饼来了", Body: "本周全场八折。"}}}}}}}
	st := campaign.Status{Campaign: c, Progress: campaign.Progress{Left: -1}}
	if state == campaign.Draft || state == campaign.Scheduled {
		return st
	}
	st.StartedAt = &started
	counts := delivery.Counts{Reserved: 120_000, Sent: sent, Skipped: 2_104, Dead: 31}
	counts.InFlight = counts.Reserved - counts.Sent - counts.Skipped - counts.Dead
	if state.Over() { // nothing is on its way any more
		counts.Expired, counts.InFlight = counts.InFlight, 0
	}
	st.Progress = campaign.ProgressOf(counts, true, sent-4000, Now().Add(-8*time.Second), Now())
	if state.Over() {
		st.SettledAt, st.EndedAt = &ended, &ended
	}
	return st
}

func campaignPage(st campaign.Status) campaignpages.Campaign {
	p := campaignpages.Campaign{Status: st, Zone: shanghai(), Carrier: delivery.ChannelStatus{Setting: delivery.Setting{Channel: st.Channel}, Configured: true}, Recipients: campaignpages.CampaignRecipients{Status: st, Zone: shanghai(), Part: true}}
	p.Previews = letters(st.Content, st.Channel)
	if n := st.Progress.Reserved; n > 0 {
		p.Recipients.List = recipientList()[:1]
		p.Results = campaign.Results{CountedTo: ptr(Now().Add(-21 * time.Second)), AccountOff: new(int64), Groups: []campaign.Tally{{Assigned: n, Sent: st.Progress.Sent}}}
	}
	return p
}

// letters are the messages of a campaign of one version over the channel.
func letters(c delivery.Copy, over delivery.Channel) campaignpages.Texts {
	p := campaignpages.Texts{Channel: message.Channel(over.String()), Reader: "Robin Chen", MayTry: true, Own: pageparts.Own{Email: "ada@shop.example", Phone: "+8613800138000"}}
	s := delivery.Subject{Kind: delivery.KindCampaign, Copy: &c, ShopName: "Harbour Tea House"}
	for _, tag := range slices.Sorted(maps.Keys(c.Variants[0].Texts)) {
		v := pageparts.Preview{Channel: p.Channel, Content: delivery.RenderCopy(nil, s, over, 0, user.User{Name: p.Reader, Locale: tag}), Note: "The storybook has no mail to show."}
		if v.Content.HTML = ""; over == delivery.SMS {
			v.Size, v.Price, v.Currency = message.SizeOf(v.Content.Text), 500, "CNY"
		}
		p.List = append(p.List, campaignpages.CampaignText{Locale: tag, Preview: v})
	}
	return p
}

func campaigns() []Story {
	running := campaignPage(campaignAt(7, "Mid-autumn sale", campaign.Running, 61_000))
	asleep := running
	asleep.Waiting = campaign.Waiting{Users: 48_217, Next: Now().Add(9 * time.Hour)}
	night := campaignPage(campaignAt(13, "While all sleep", campaign.Running, 61_000))
	night.Progress.PerSecond, night.Progress.Left = 0, -1
	night.Waiting = campaign.Waiting{Users: night.Progress.InFlight, Next: Now().Add(9 * time.Hour)}
	halted := running
	halted.Carrier.Paused, halted.Carrier.PausedReason, halted.Carrier.PausedBy, halted.Carrier.PausedAt = true, "The app is being rebuilt.", "Ada Okafor", Now().Add(-time.Hour)
	waiting := campaignPage(campaignAt(9, "Twelve-twelve", campaign.Draft, 0))
	asked := Now()
	waiting.ApprovalAskedAt = &asked
	held := campaignPage(campaignAt(14, "Gold members", campaign.Paused, 61_000))
	held.HeldAt, held.ApprovalAskedAt, held.Requests = &asked, &asked, []campaign.Request{{ID: 5, State: campaign.RequestAsked, Reach: campaign.Reach{Users: 120_000, Exact: true, At: asked}, Allowed: new(int64(100_000))}}
	refused := campaignPage(campaignAt(11, "Too many at once", campaign.Draft, 0))
	refused.Requests = []campaign.Request{{ID: 4, State: campaign.RequestRefused, DecidedBy: "staff:2 Ada Okafor", DecidedReason: "Not on the day of a drop."}}
	refused.Audience, refused.SegmentNow = campaign.Audience{Kind: campaign.Segment, ID: 3}, rule(4, "Shanghai")
	kept := campaignPage(campaignAt(12, "For the regulars of last week", campaign.Running, 61_000))
	kept.Audience, kept.Rule, kept.SegmentNow = refused.Audience, rule(4, "Shanghai"), rule(6, "Shanghai", "Hangzhou")
	kept.PublishedAt, kept.ApprovedBy = kept.StartedAt, "staff:2 Ada Okafor"
	lost := campaignAt(10, "Lost segment", campaign.Failed, 0)
	lost.Progress = campaign.ProgressOf(delivery.Counts{}, true, 0, Now(), Now())
	failed := campaignPage(lost)
	failed.Reason = "audience_gone"
	many := campaignpages.Campaigns{Paged: pageparts.Paged{Next: "/campaigns?before=3"}}
	for i, s := range campaign.States() {
		sent := int64(61_000)
		if s == campaign.Finished {
			sent = 117_865
		}
		many.List = append(many.List, campaignAt(int64(20-i), "Campaign "+string(s), s, sent))
	}
	form := campaignpages.CampaignForm{Title: "New campaign", Channels: delivery.ChannelSetOf(delivery.App, delivery.Email), Kinds: campaign.AudienceKinds(),
		Segments: []segment.Segment{{ID: 3, Name: "Regulars in Shanghai", Kind: segment.ByRules}, {ID: 4, Name: "Fair 2026, uploaded", Kind: segment.ByList}},
		Values:   map[string]string{"audience": "all", "channel": "app", "starts_at": "2026-11-21T20:00", "ends_at": "2026-11-22T20:00"}}
	broken := form
	broken.Values = map[string]string{"name": "", "audience": "user_ids", "channel": "sms", "title": "Hello {{nmae}}", "body": "Come"}
	broken.Errors = []fault.Field{{Name: "name", Key: "rule.required", Message: "is required"}, {Name: "title", Key: "rule.variable_unknown", Message: `line 1: "{{nmae}}" is not a variable; there are "user, drop"`},
		{Name: "audience_value", Key: "rule.required", Message: "name at least one customer"}}
	full := form
	full.Values = map[string]string{"name": "Mid-autumn sale", "shop": "10", "audience": "segment_id", "audience_value": "3", "channel": "sms", "title": "Tea for {{name|you}}", "body": "Twenty off until tomorrow.",
		"l0_language": "de", "l0_title": "Tee für {{name|Sie}}", "l0_body": "Zwanzig weniger, bis morgen.", "l0_title_b": "", "l0_body_b": "",
		"l1_language": "zh-CN", "l1_title": "送您一张茶券", "l1_body": "明天之前满 100 减 20。", "l1_title_b": "", "l1_body_b": "", "grant_template_id": "1", "hold_out": "10", "rate_per_second": "500", "starts_at": "2026-11-21T20:00", "ends_at": "2026-11-22T20:00"}
	grant := coupon(1, "Moon cake night", time.Minute)
	written := delivery.Copy{Variants: []delivery.Variant{{Percent: 100, Texts: map[string]delivery.Text{"": {Title: full.Values["title"], Body: full.Values["body"]},
		"de": {Title: full.Values["l0_title"], Body: full.Values["l0_body"]}, "zh-CN": {Title: full.Values["l1_title"], Body: full.Values["l1_body"]}}}}}
	full.Previews = letters(written, delivery.SMS)
	full.Previews.Form, full.Previews.Action = campaignpages.FormID, "/campaigns"
	full.Shops, full.Zone, full.Reach, full.Grant, full.ApprovalAbove = shops(), shanghai(), &campaign.Reach{Users: 1_204_000}, &grant, 100_000
	full.Texts = full.Reach.Users
	full.Everybody, full.Reaches = full.Reach, map[delivery.Channel]int64{delivery.App: 1_204_000, delivery.Email: 412_000}
	full.Readers = &message.Readers{Of: map[string]int64{"de": 91_000, "zh-CN": 204_000}, Other: 909_000, Missing: []message.Missing{{Language: "fr", Readers: 94_360}, {Language: "it", Readers: 1_640}}}
	full.Spec = campaign.Spec{Channel: delivery.SMS, RatePerSecond: 500, StartsAt: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), EndsAt: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} // as the fields say
	edited := full
	edited.ID, edited.Version, edited.Title = 7, 3, "Edit “Mid-autumn sale”"
	named := full
	named.Values = maps.Clone(full.Values)
	named.Values["audience"], named.Values["audience_value"], named.Values["audience_template"] = "reserved_template_id", "", "Moon"
	named.Values["grant_template_id"], named.Errors = "Moon cake night (#1)", []fault.Field{{Name: "audience_template", Key: "rule.template_choice", Message: "choose a template, or type its number"}}
	looked := full
	looked.Values = maps.Clone(full.Values)
	looked.Values["channel"], looked.Spec.Channel, looked.Looked = "email", delivery.Email, true
	looked.Previews = letters(written, delivery.Email)
	looked.Previews.Form, looked.Previews.Action, looked.Previews.Try = campaignpages.FormID, "/campaigns", pageparts.Try{Tone: ui.Good, Text: "The message was delivered to ada@shop.example."}
	composed := looked
	composed.Looked, composed.Values = false, maps.Clone(looked.Values)
	composed.Pictures = pageparts.Pictures{Shop: 10, List: []pageparts.Picture{{Address: "https://drops.example/pictures/10/a.png", Alt: "Moon cakes", Width: 1200, Height: 600}}}
	composed.Values["test_share"], composed.Values["test_by"], composed.Values["test_minutes"], composed.Values["link"] = "20", "opened", "240", "https://shop.example/tea"
	composed.Values["title_b"], composed.Values["body_b"], composed.Values["percent_b"] = "Tea time", "Come by.", "50"
	campaignpages.SetBlocks(composed.Values, campaignpages.TextPlaceOf(0, -1), []message.Block{{Type: message.Heading, Text: "Tea for you"}, {Type: message.Words, Text: "Twenty off until tomorrow."},
		{Type: message.Image, Text: "A cup of tea", URL: "https://shop.example/tea.png"}, {Type: message.Button, Text: "Claim it"}})
	twice := full
	twice.Values = maps.Clone(full.Values)
	twice.Values["l1_language"], twice.Values["l0_title"], twice.Values["l2_language"], twice.Values["l2_title"] = "de", "", "", "Thé"
	twice.Errors = []fault.Field{{Name: "l0_title", Key: "rule.required", Message: "must not be empty"}, {Name: "l1_language", Key: "rule.language_twice", Message: "is in the form twice; remove one of the two"},
		{Name: "l2_language", Key: "rule.required", Message: "is required"}}
	twice.Previews.Try = pageparts.Try{Tone: ui.Warn, Text: "Title: must not be empty"}
	question := pageparts.Confirmation{Active: "campaigns", Crumbs: []ui.Crumb{{Label: "Campaigns", URL: "/campaigns"}}, ConfirmProps: ui.ConfirmProps{Title: "Publish “New year”?",
		Points: []string{"It starts at once.", "It is sent to 120,000 people.", "More than 5,000 recipients need approval by a second person."},
		Action: "/campaigns/6/publish", Cancel: "/campaigns/6", Submit: "Publish", Kind: "primary",
		Error: "Maximum recipients without approval: was changed to 5,000 since this page was loaded; check the effect and confirm again"}}
	return []Story{
		{Name: "campaign/limit_changed", Page: question.Page()},
		{Name: "campaigns/empty", Page: campaignpages.Campaigns{}.Page()},
		{Name: "campaigns/none", Page: campaignpages.Campaigns{Search: "nothing"}.Page()},
		{Name: "campaigns/one", Page: campaignpages.Campaigns{List: many.List[:1]}.Page()},
		{Name: "campaigns/many", Page: many.Page()},
		{Name: "campaign/draft", Page: campaignPage(campaignAt(6, "New year", campaign.Draft, 0)).Page()},
		{Name: "campaign/held", Page: held.Page()},
		{Name: "campaign/awaiting", Page: waiting.Page()},
		{Name: "campaign/refused", Page: refused.Page()},
		{Name: "campaign/rule_kept", Page: kept.Page()},
		{Name: "campaign/running", Page: running.Page()},
		{Name: "campaign/asleep", Page: asleep.Page()},
		{Name: "campaign/night", Page: night.Page()},
		{Name: "campaign/halted", Page: halted.Page()},
		{Name: "campaign/paused", Page: campaignPage(campaignAt(5, "Paused sale", campaign.Paused, 61_000)).Page(), Role: "viewer"},
		{Name: "campaign/failed", Page: failed.Page()},
		{Name: "campaignform/new", Page: form.Page()},
		{Name: "campaignform/refused", Page: broken.Page()},
		{Name: "campaignform/refused_later", Page: broken.Page(), At: "step-4"},
		{Name: "campaignform/languages", Page: edited.Page(), At: "step-2"},
		{Name: "campaignform/languages_refused", Page: twice.Page(), At: "step-2"},
		{Name: "campaignform/step_compare", Page: edited.Page(), At: "step-3"},
		{Name: "campaignform/review", Page: edited.Page(), At: "step-5"},
		{Name: "campaignform/review_errors", Page: broken.Page(), At: "step-5"},
		{Name: "campaignform/by_template", Page: named.Page()},
		{Name: "campaignform/looked", Page: looked.Page()},
		{Name: "campaignform/composed", Page: composed.Page()},
	}
}
