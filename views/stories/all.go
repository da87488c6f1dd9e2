package stories

import (
	"github.com/a-h/templ"

	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/fault"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	accesspages "dropbell/views/pages/access"
	campaignpages "dropbell/views/pages/campaigns"
	droppages "dropbell/views/pages/drops"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
)

// All returns every story.
func All() []Story {
	var all []Story
	for _, group := range [][]Story{doors(), overviews(), budgetPages(), doorPages(), flightPages(), lists(), seriesPages(), forms(), drops(), confirms(), userPages(), people(), operations(), providerDialogs(), webhookDialogs(), proofs(), cockpits(), gates(),
		singleSignOn(),
		secondFactors(),
		couponPages(),
		audiences(),
		campaigns(),
		recipePages(),
		calendars(),
		campaignOutcomes(),
		sales(),
		draws(),
		reports(),
		longLists(),
		codes(),
		messages(),
		searches(),
		documentation(),
		queues(),
		housekeepings(),
		alerts(),
	} {
		all = append(all, group...)
	}
	return all
}

func doors() []Story {
	return []Story{
		{Name: "signin/empty", Page: accesspages.SignIn{}.Page(), Outside: true},
		{Name: "signin/missing", Page: accesspages.SignIn{Email: "lin@example.com", Errors: []fault.Field{{Name: "password", Key: "rule.required"}}}.Page(), Outside: true},
		{Name: "forgot/empty", Page: accesspages.ForgotPassword{Errors: []fault.Field{{Name: "email", Key: "rule.required"}}}.Page(), Outside: true},
		{Name: "forgot/sent", Page: accesspages.ForgotPassword{Email: "lin@example.com", Sent: true}.Page(), Outside: true},
		{Name: "signin/refused", Page: accesspages.SignIn{Email: "lin@example.com", Error: "The e-mail address or the password is wrong. Check both and try again."}.Page(), Outside: true},
		{Name: "failure/missing", Page: pageparts.Failure{Status: 404}.Page()},
		{Name: "failure/forbidden", Page: pageparts.Failure{Status: 403}.Page(), Role: staff.Viewer},
		{Name: "failure/limited", Page: pageparts.Failure{Status: 403, Text: "This affects all shops, and your access is limited to some. Ask a staff member with access to all shops."}.Page(), Role: staff.Operator, Shops: []int64{10}},
		{Name: "failure/conflict", Page: pageparts.Failure{Status: 409, Text: "Its current state does not allow this."}.Page()},
		{Name: "failure/told", Page: pageparts.Failure{Status: 409, Text: "The drop is paused. Resume it, then give the coupons.", Complete: true}.Page()},
		{Name: "failure/invalid", Page: pageparts.Failure{Status: 422, Fields: []fault.Field{{Name: "channel", Key: "rule.kind", Message: "must be a channel"}}}.Page()},
		{Name: "failure/bug", Page: pageparts.Failure{Status: 500, RequestID: "7Q2K9ZD4", Retry: "/"}.Page()},
		{Name: "failure/database-away", Page: pageparts.Failure{Status: 503, Retry: "/", Reload: 5, Complete: true, Text: "The database, PostgreSQL, does not answer right now. What was stored is safe. If this lasts, tell the operators of this server; /readyz names the part that fails."}.Page(), Outside: true},
		{Name: "failure/redis-away", Page: pageparts.Failure{Status: 503, Retry: "/channels", Reload: 5, Complete: true, Text: "Redis, which holds the queues, does not answer right now. What was stored is safe. If this lasts, tell the operators of this server; /readyz names the part that fails."}.Page()},
		{Name: "failure/database-slow", Page: pageparts.Failure{Status: 503, Retry: "/coupons", Complete: true, Text: "The database took too long for this page and was stopped, so that others are served. Narrow the filter or the period, or try again later."}.Page()},
		{Name: "failure/unavailable", Page: pageparts.Failure{Status: 503, Retry: "/"}.Page(), Outside: true},
	}
}

func health(busy bool) []droppages.ChannelHealth {
	var list []droppages.ChannelHealth
	for _, c := range delivery.AllChannels() {
		h := droppages.ChannelHealth{Channel: c, Configured: c != delivery.Webhook, Paused: busy && c == delivery.WebPush}
		if busy && c <= delivery.SMS {
			h.Counts = outcome(40_000/int64(c+1), c != delivery.App, c == delivery.SMS)
		}
		list = append(list, h)
	}
	return list
}

func overviews() []Story {
	next := drop(1, "Moon cake night: ¥20 off everything at Harbour Tea House", time.Minute, 184_220)
	next.Board = deliver(next.Board, true)
	open := drop(5, "Morning rush", -20*time.Minute, 22_000)
	open.Issued, open.Board = 31_400, deliver(open.Board, false)
	concert := drop(9, "Concert in the tea house", 52*time.Minute, 1_400)
	concert.OpeningMode, concert.Stock, concert.Entered = template.ByDraw, 100, 210_600
	later := []droppages.Drop{concert, drop(2, "Winter warm-up", 26*time.Hour, 9_310), drop(3, "Twelve-twelve", 22*24*time.Hour, 412), drop(4, "New year", 41*24*time.Hour, 0)}
	ahead := outlook(map[delivery.Channel]int64{delivery.App: 99_000, delivery.Email: 47_000, delivery.SMS: 30_000},
		map[delivery.Channel]forecast.Rate{delivery.App: {PerSecond: 5000}, delivery.Email: {PerSecond: 400}, delivery.SMS: {PerSecond: 100}}, later[1].Template)
	trouble := []droppages.Attention{{Tone: ui.Bad, Text: "“Moon cake night”: 2,114 reminders failed", URL: "/templates/1"}, {Tone: ui.Bad, Text: "31 failed messages of other drops, campaigns or notices await a decision", URL: "/dead-letters"}, {Tone: ui.Warn, Text: "Push is paused", URL: "/channels"}}
	waiting := []droppages.Attention{{Tone: ui.Info, Text: "Approve “Spring tea for regulars”: to 41,220 customers, requested by Ada Okafor", URL: "/campaigns/7/approval"},
		{Tone: ui.Info, Text: "“Winter warm-up” opens soon and has no text of its own: the built-in text would be sent", URL: "/templates/2/message"}}
	return []Story{
		{Name: "overview/first", Page: droppages.Overview{First: true, Health: health(false)}.Page()},
		{Name: "overview/setup", Page: droppages.Overview{First: true, Setup: &template.Setup{Shop: true, Users: true}, Health: health(false)}.Page()},
		{Name: "overview/quiet", Page: droppages.Overview{Health: health(false), Activity: records()}.Page(), Role: staff.Viewer},
		{Name: "overview/one", Page: droppages.Overview{Upcoming: later[1:2], Health: health(false), Activity: records()[:1]}.Page()},
		{Name: "overview/rush", Page: droppages.Overview{Upcoming: append([]droppages.Drop{next}, later...), Open: []droppages.Drop{open}, Attention: trouble, Tasks: waiting, Health: health(true), Activity: records(), Forecast: ahead, Earned: lately()}.Page(),
			Flashes: []ui.Flash{{Kind: ui.Good, Text: "“Moon cake night” has been published. Customers can reserve reminders now."}}},
	}
}

func lists() []Story {
	list := []template.Template{coupon(1, "Moon cake night", time.Minute), coupon(2, "Winter warm-up", 26*time.Hour), coupon(3, "Twelve-twelve", 22*24*time.Hour)}
	draft := coupon(6, "Untitled idea with a name that goes on for rather longer than anybody would like to read in a list", 40*24*time.Hour)
	draft.Stored = template.Draft
	open, gone, off, paused, ended := coupon(5, "Morning rush", -time.Hour), coupon(7, "Lunch", -time.Hour), coupon(8, "Rained off", time.Hour), coupon(9, "Second try", time.Hour), coupon(10, "Yesterday", -20*time.Hour)
	gone.Issued, off.Stored, paused.Stored = gone.Stock, template.Cancelled, template.Paused
	draft.Kind, draft.PercentOff, draft.MaxOff, draft.Threshold = template.PercentOff, 20, 3050, 0
	off.Kind, off.Currency = template.AmountOff, "EUR"
	list = append(list, open, gone, paused, off, ended, draft)
	return []Story{
		{Name: "templates/empty", Page: droppages.Templates{Sort: "ahead"}.Page()},
		{Name: "templates/behind", Page: droppages.Templates{List: list[:1], Sort: "ahead", Shops: shops()}.Page(), Behind: 4 * time.Second},
		{Name: "templates/silent", Page: droppages.Templates{List: list[:1], Sort: "ahead", Shops: shops()}.Page(), Silent: []string{"b"}},
		{Name: "templates/one", Page: droppages.Templates{List: list[:1], Sort: "ahead", Shops: shops()}.Page(), Role: staff.Viewer},
		{Name: "templates/many", Page: droppages.Templates{List: list, Sort: "ahead", Shops: shops(), Paged: pageparts.Paged{Next: "/templates?after=x", First: "/templates"}}.Page()},
		{Name: "templates/unreadable", Page: droppages.Templates{From: "0002-01-01", Sort: "ahead", Shops: shops(), Paged: pageparts.Paged{Errors: []fault.Field{
			{Name: "from", Key: "rule.date_format", Message: "is not a date"}, {Name: "state", Key: "rule.kind", Message: "must be one of the choices"}}}}.Page()},
		{Name: "templates/none", Page: droppages.Templates{Search: "moon", States: []template.State{template.Open}, Shop: "10", Sort: "latest", Shops: shops(), Zone: shanghai(), DaysOf: &shops()[0]}.Page()},
	}
}

func shops() []template.Shop {
	return []template.Shop{{Number: 10, Name: "Harbour Tea House", Timezone: "Asia/Shanghai"}, {Number: 11, Name: "Isar Bakery", Timezone: "Europe/Berlin"}}
}

func typed() map[string]string {
	return map[string]string{"name": "Moon cake night", "shop_number": "10", "description": "", "claim_url": "https://shop.example/claim", "kind": "threshold_off", "amount_off": "20",
		"threshold": "100", "percent_off": "", "max_off": "", "currency": "CNY", "target": "shop", "product": "", "opens_at": "2026-11-20T20:00", "closes_at": "2026-11-21T00:00",
		"validity": "hours", "valid_hours": "72", "valid_until": "", "stock": "50000", "per_user_limit": "1", "obtain": "claim", "claim_mode": "durable", "opening_mode": "first_come", "entry_minutes": "0", "notify_days": "3, 1", "notify_channels": "app, sms"}
}

// returning are the values of a drop whose coupons are offered to users who wait, and return to the stock.
func returning() map[string]string {
	v := typed()
	v["waitlist"], v["accept_minutes"], v["use_within_hours"], v["refund_to"] = "offer", "30", "24", "stock"
	return v
}

// savedModels are models that a shop saved under names of its own.
func savedModels() []template.Model {
	return []template.Model{
		{ID: 1, Name: "Friday special", Drop: coupon(5, "Morning rush", -time.Hour)},
		{ID: 2, Name: "A name of a template that goes on for as long as the field allows", Drop: coupon(6, "Untitled idea", 40*24*time.Hour)},
	}
}

// gallery are models as the console offers them.
func gallery() (list []droppages.Model) {
	for _, key := range []string{"lunch", "weekend", "evening", "premiere"} {
		list = append(list, droppages.Model{Key: key, Preview: coupon(0, key, 26*time.Hour)})
	}
	return list
}

func forms() []Story {
	t := coupon(1, "Moon cake night", time.Minute)
	preview := droppages.CouponPreview{Template: t, Times: []droppages.TimeHint{{Label: "Opening", Text: "Fri 20 Nov 2026, 20:00 Beijing time (in 1 min)"}, {Label: "Reminders", Text: "from 19:00 on; 12 of 12 slots are already past"}}}
	clashing := preview
	clashing.Clashes = []droppages.Clash{{Template: t, Booked: 383_298}, {Template: t, Foreign: true, Booked: 9_310}}
	bad := typed()
	bad["name"], bad["amount_off"], bad["opens_at"], bad["opens_at_fold"] = "", "200", "2026-10-25T02:30", ""
	errs := []fault.Field{{Name: "name", Key: "rule.required", Message: "is required"}, {Name: "amount_off", Key: "rule.amount_over_threshold", Message: "must not exceed the threshold"},
		{Name: "opens_at", Key: pageparts.KeyTimeTwice, Message: "happens twice"}, {Name: "per_user_limit", Key: "rule.per_user_limit", Message: "must be between 1 and 1000"}}
	unread := preview
	unread.Template.OpensAt, unread.Times = time.Time{}, nil
	configured := delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS)
	mine := droppages.TemplateForm{ID: 1, Version: 3, Values: typed(), Shops: shops()}
	theirs := typed()
	theirs["stock"], theirs["name"], theirs["description"] = "80000", "Moon cake evening", "With tea"
	return []Story{
		{Name: "models/first", Page: droppages.Models{List: gallery()}.Page()},
		{Name: "models/many", Page: droppages.Models{List: gallery(), Drops: []template.Template{coupon(5, "Morning rush", -time.Hour), coupon(6, "Untitled idea with a name that goes on for rather longer than anybody would like to read in a list", 40*24*time.Hour)}}.Page(), Role: staff.Marketer},
		{Name: "models/saved", Page: droppages.Models{List: gallery(), Saved: savedModels(), Drops: []template.Template{coupon(5, "Morning rush", -time.Hour)}}.Page(), Role: staff.Marketer},
		{Name: "models/taken", Page: droppages.Models{List: gallery(), Saved: savedModels(), Renaming: 2, NewName: "Friday special", Errors: []fault.Field{{Name: "name", Key: "fault.model_taken"}}}.Page(), Role: staff.Marketer},
		{Name: "models/no-shop", Page: droppages.Models{NoShop: true}.Page()},
		{Name: "form/clash", Page: droppages.TemplateForm{Title: "New drop", Values: typed(), Shops: shops(), Whole: true, Preview: clashing, Channels: configured}.Page(), At: "step-6"},
		{Name: "form/no-shop", Page: droppages.TemplateForm{Title: "New drop", Values: map[string]string{}}.Page()},
		{Name: "form/new", Page: droppages.TemplateForm{Title: "New drop", Demand: draw.Demand{Drops: 5, PerCoupon: 42}, Values: typed(), Shops: shops(), Preview: preview, Channels: configured}.Page()},
		{Name: "form/errors", Page: droppages.TemplateForm{Title: "New drop", Values: bad, Errors: errs, Shops: shops(), Preview: unread, Channels: configured}.Page()},
		{Name: "form/errors_later", Page: droppages.TemplateForm{Title: "New drop", Values: bad, Errors: errs, Shops: shops(), Preview: unread, Channels: configured}.Page(), At: "f-per_user_limit"},
		{Name: "form/step_times", Page: droppages.TemplateForm{Title: "New drop", Values: typed(), Shops: shops(), Preview: preview, Channels: configured}.Page(), At: "step-3"},
		{Name: "form/step_stock", Page: droppages.TemplateForm{Title: "New drop", Values: returning(), Shops: shops(), Preview: preview, Channels: configured}.Page(), At: "step-4"},
		{Name: "form/message", Page: droppages.TemplateForm{Title: "New drop", Values: typed(), Shops: shops(), Preview: preview, Channels: configured, Message: messageStep()}.Page(), At: "step-5"},
		{Name: "form/review", Page: droppages.TemplateForm{Title: "New drop", Values: typed(), Shops: shops(), Preview: preview, Channels: configured}.Page(), At: "step-6"},
		{Name: "form/review_errors", Page: droppages.TemplateForm{Title: "New drop", Values: bad, Errors: errs, Shops: shops(), Preview: unread, Channels: configured}.Page(), At: "step-6"},
		{Name: "form/published", Page: droppages.TemplateForm{ID: 1, Version: 3, Title: "Edit “Moon cake night”", Values: typed(), Shops: shops(), Published: true, Preview: preview, Channels: configured}.Page()},
		{Name: "form/review_published", Page: droppages.TemplateForm{ID: 1, Version: 3, Title: "Edit “Moon cake night”", Values: typed(), Shops: shops(), Published: true, Preview: preview, Channels: configured,
			Blast: droppages.Blast{Valid: true, OpensAt: preview.Template.OpensAt, Booked: 383_298, Reminded: 20_112, Late: 5_100, Shift: -150 * time.Minute}}.Page(), At: "step-6"},
		{Name: "form/conflict-campaign", Page: pageparts.Conflict{Mine: campaignpages.CampaignForm{ID: 7, Values: map[string]string{"name": "Autumn", "title": "Tea for {{name}}"}},
			Theirs: map[string]string{"name": "Autumn", "title": "Tea for everybody", "rate_per_second": "500"}, Version: 4}.Page()},
		{Name: "form/conflict", Page: pageparts.Conflict{Mine: mine, Theirs: theirs, Version: 4, Who: "Ada Okafor"}.Page()},
	}
}

func drops() []Story {
	configured := delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS, delivery.WebPush)
	page := func(d droppages.Drop) droppages.Template {
		return droppages.Template{Drop: d, Tab: droppages.TabReminders, Before: lastMonth(), Channels: configured, Growth: growth(d.Booked()), History: records()[:3]}
	}
	draft := page(drop(6, "Untitled idea", 40*24*time.Hour, 0))
	draft.Stored, draft.Board, draft.Growth, draft.History = template.Draft, reminder.Board{}, nil, nil
	waiting := page(drop(2, "Winter warm-up", 26*time.Hour, 9_310))
	fresh := page(drop(4, "New year", 41*24*time.Hour, 0))
	fresh.Growth = nil
	rush := page(drop(1, "Moon cake night", time.Minute, 184_220))
	rush.Board = deliver(rush.Board, false)
	trouble := page(drop(1, "Moon cake night", 13*time.Minute, 1_184_220))
	trouble.Board = deliver(trouble.Board, true)
	trouble.Board.Rows[9].State, trouble.Board.Rows[9].FiredAt, trouble.Board.Rows[9].Cells = reminder.Waiting, nil, board(trouble.Drop.Template, 100).Rows[9].Cells
	trouble.Board.Earlier, trouble.Difference = rush.Board.Rows[:2], 3
	back := page(drop(12, "Moved and moved back", 3*time.Minute, 1_204))
	back.Board = deliver(back.Board, false)
	again := back.Board.Rows[len(back.Board.Rows)-1]
	again.Round = 1
	back.Board.Rows = append(back.Board.Rows, again)
	open := page(drop(5, "Morning rush", -20*time.Minute, 22_000))
	open.Issued, open.Board = 31_400, deliver(open.Board, false)
	open.Sales = salesOf(open.Drop.Template, open.Issued, 0, 0).Sales
	past := page(drop(3, "Afterthought", 4*time.Minute, 20_500))
	past.Board = late(deliver(past.Board, false), 11)
	paused := page(drop(9, "Second try", time.Hour+90*time.Second, 300))
	paused.Stored = template.Paused
	ended := page(drop(8, "Rained off", time.Hour, 1_200))
	ended.Stored = template.Cancelled
	for i := range ended.Board.Rows {
		ended.Board.Rows[i].State = reminder.SlotEnded
	}
	coupons, told := open, open
	coupons.Tab, told.Tab = droppages.TabCoupons, droppages.TabHistory
	return []Story{
		{Name: "template/draft", Page: draft.Page()},
		{Name: "template/scheduled", Page: waiting.Page()},
		{Name: "template/fresh", Page: fresh.Page(), Role: staff.Viewer},
		{Name: "template/rush", Page: rush.Page()},
		{Name: "template/trouble", Page: trouble.Page()},
		{Name: "template/moved_back", Page: back.Page()},
		{Name: "template/open", Page: open.Page()},
		{Name: "template/past", Page: past.Page()},
		{Name: "template/coupons", Page: coupons.Page()},
		{Name: "template/history", Page: told.Page()},
		{Name: "template/paused", Page: paused.Page()},
		{Name: "template/cancelled", Page: ended.Page()},
		{Name: "template/compare", Page: droppages.ChooseOther{Template: open.Drop.Template, Tab: droppages.TabClaims, With: 3, Others: []template.Template{coupon(3, "Mid-autumn", -30*24*time.Hour), coupon(4, "Summer", -80*24*time.Hour)}}.Page(), Role: staff.Viewer},
		{Name: "template/compare-none", Page: droppages.ChooseOther{Template: fresh.Drop.Template, Tab: droppages.TabReminders}.Page()},
	}
}

// lastMonth is the drop before.
func lastMonth() *droppages.Journey {
	return &droppages.Journey{ID: 3, Name: "Mid-autumn", Booked: 151_900, Sent: 149_211, Opened: 61_804, Stock: 40_000, Claimed: 40_000, Used: 21_318}
}

func confirms() []Story {
	t := coupon(1, "Moon cake night", 3*time.Hour)
	cancel := pageparts.Confirmation{Active: "templates", ConfirmProps: ui.ConfirmProps{Title: "Cancel “Moon cake night”?", Action: "/templates/1/cancel", Cancel: "/templates/1", Keep: "Keep it", Submit: "Cancel drop", Kind: "danger",
		Points: []string{"The drop will not take place. This cannot be undone.", "Waiting reminders, which are not sent: 401,993."}}}
	refused := cancel
	refused.Error = "Its current state does not allow this."
	movedTo := time.Date(2026, 11, 20, 12, 30, 0, 0, time.UTC) // as the field says
	when := droppages.WhenProps{Name: "opens_at", Label: "Opening", Help: "Claiming starts at this time. Reminders are sent 5 to 60 minutes before.", Value: "2026-11-20T20:30"}
	return []Story{
		{Name: "confirm/cancel", Page: cancel.Page()},
		{Name: "confirm/refused", Page: refused.Page()},
		{Name: "move/empty", Page: droppages.Move{Template: t, Opens: when, Follow: true}.Page()},
		{Name: "move/refused", Page: droppages.Move{Template: t, Opens: when, Follow: true, Error: "Another person changed this in the meantime. Check the current version and repeat your change."}.Page()},
		{Name: "move/past", Page: droppages.Move{Template: t, Opens: when, Follow: true, Blast: droppages.Blast{Error: "Opening: must lie in the future"}}.Page()},
		{Name: "move/blast", Page: droppages.Move{Template: t, Opens: when, Follow: true, Blast: droppages.Blast{Valid: true, OpensAt: movedTo, Booked: 383_298, Reminded: 20_112, Late: 5_100, Shift: -150 * time.Minute}}.Page()},
		{Name: "move/once", Page: droppages.Move{Template: t, Opens: when, Follow: true, Once: true, Blast: droppages.Blast{Valid: true, OpensAt: movedTo, Booked: 383_298, Reminded: 20_112, Once: true, Shift: -150 * time.Minute}}.Page()},
	}
}

func people() []Story {
	gone := Now().Add(-24 * time.Hour)
	members := []staff.Member{{ID: 1, Email: "lin@example.com", Name: "Lin Mei", Role: staff.Admin, CreatedAt: gone}, {ID: 2, Email: "ada@example.com", Name: "Ada Okafor", Role: staff.Marketer, Shops: []int64{10, 11}, CreatedAt: gone},
		{ID: 3, Email: "former@example.com", Role: staff.Viewer, DisabledAt: &gone, CreatedAt: gone},
		{ID: 4, Email: "new@example.com", Name: "Noor Haddad", Role: staff.Operator, CreatedAt: gone, InvitedUntil: new(Now().Add(6 * 24 * time.Hour))},
		{ID: 5, Email: "late@example.com", Name: "Late Comer", Role: staff.Viewer, CreatedAt: gone, InvitedUntil: &gone}}
	keys := []staff.Key{{ID: 3, Name: "checkout", Prefix: "dbk_7f3a", Scopes: []staff.Scope{staff.ScopePayment}, CreatedAt: gone, LastUsedAt: &gone}, {ID: 2, Name: "app backend", Prefix: "dbk_x2n9", Scopes: []staff.Scope{staff.ScopeRead, staff.ScopeActAsUser}, CreatedAt: gone},
		{ID: 1, Name: "old", Prefix: "dbk_aaaa", Scopes: []staff.Scope{staff.ScopeAdmin}, CreatedAt: gone, RevokedAt: &gone}}
	signIns := []staff.SignIn{{ID: "a", IP: "203.0.113.7", UserAgent: "Mozilla/5.0 (X11; Linux x86_64) Chrome/156.0 Safari/537.36", LastSeenAt: Now(), CreatedAt: gone}, {ID: "b", IP: "198.51.100.20", UserAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 20_0 like Mac OS X) Mobile Safari/604.1", LastSeenAt: gone, CreatedAt: gone}}
	values := map[string]string{"email": "ada@example.com", "name": "Ada Okafor", "role": "marketer", "shops": "10, 11"}
	invited := map[string]string{"email": "new@example.com", "name": "Noor Haddad", "role": "operator"}
	wrong := []fault.Field{{Name: "email", Key: "rule.email", Message: "must be an e-mail address"}, {Name: "shops", Key: "rule.shop_number", Message: "must be a positive number"}}
	return []Story{
		{Name: "staff/one", Page: accesspages.Staff{List: members[:1], Policy: staff.Required, PolicyFixed: true}.Page()},
		{Name: "staff/many", Page: accesspages.Staff{List: members, Shops: shops(), Policy: staff.Required}.Page()},
		{Name: "member/new", Page: accesspages.MemberForm{Values: map[string]string{"role": "viewer"}, Shops: shops()}.Page()},
		{Name: "member/errors", Page: said(func(l *i18n.Locale) templ.Component {
			return accesspages.MemberForm{ID: 2, Name: "Ada Okafor", Values: values, Errors: wrong, Refused: l.T("fault.last_admin")}.Page()
		})},
		{Name: "member/signed-in", Page: accesspages.MemberForm{ID: 2, Name: "Ada Okafor", Values: values, Shops: shops(), SignIns: signIns, Member: staff.Member{ID: 2, Email: "ada@example.com", PasswordHash: "x", SecondFactors: 2}}.Page()},
		{Name: "member/invited", Page: accesspages.MemberForm{ID: 4, Name: "Noor Haddad", Values: invited, Member: members[3], Link: "https://drops.example.com/password?token=mfzg6ylqmvzxg5dborsw4ytboq4dkn3a"}.Page()},
		{Name: "member/new-single-sign-on", Page: accesspages.MemberForm{Values: map[string]string{"role": "viewer"}, PasswordsOff: true}.Page()},
		{Name: "password/invitation", Page: accesspages.SetPassword{Token: "t", Email: "new@example.com", Purpose: staff.Invitation}.Page(), Outside: true},
		{Name: "password/reset", Page: accesspages.SetPassword{Token: "t", Email: "ada@example.com", Purpose: staff.PasswordReset, Errors: []fault.Field{{Name: "password", Key: "rule.password_common", Message: "is one of the most common passwords"}}}.Page(), Outside: true},
		{Name: "password/invalid", Page: accesspages.SetPassword{Invalid: true}.Page(), Outside: true},
		{Name: "signin/single-sign-on-only", Page: accesspages.SignIn{SingleSignOn: true, PasswordsOff: true, Return: "/"}.Page(), Outside: true},
		{Name: "keys/empty", Page: accesspages.Keys{}.Page()},
		{Name: "keys/one", Page: accesspages.Keys{List: keys[:1]}.Page()},
		{Name: "keys/created", Page: accesspages.Keys{List: keys, Secret: "dbk_mfzg6ylqmvzxg5dborsw4ytboq4dkn3a", Name: "checkout"}.Page()},
		{Name: "key/new", Page: accesspages.KeyForm{Values: map[string]string{}}.Page()},
		{Name: "key/errors", Page: accesspages.KeyForm{Values: map[string]string{"name": ""}, Errors: []fault.Field{{Name: "name", Key: "rule.required", Message: "is required"}, {Name: "scopes", Key: "rule.scopes", Message: "choose at least one scope"}}}.Page()},
		{Name: "account/two", Page: accesspages.Account{SignIns: signIns, InUse: "a"}.Page()},
		{Name: "account/errors", Page: accesspages.Account{SignIns: signIns[:1], InUse: "a", Errors: []fault.Field{{Name: "old_password", Key: "rule.old_password", Message: "is not your current password"}}}.Page()},
	}
}

func operations() []Story {
	dead := []staff.DeadMessage{{ID: 1, MessageID: "0198f2c4-9a40-7c11-8d1e-2f51c2f0a0b1", Topic: "reservations.changed.v1", Handler: "counters", Reason: "payload of reservations.changed.v1: unexpected end of JSON input", Payload: []byte(`{"at":"2026-11-20T11:00:00Z","added":[{"template_id":"1","bits":"1","users":3}]}`), At: Now().Add(-time.Hour)}}
	return []Story{
		{Name: "audit/empty", Page: accesspages.Audit{}.Page()},
		{Name: "audit/one", Page: accesspages.Audit{List: records()[:1], Paged: pageparts.Paged{Export: "/audit.csv"}}.Page()},
		{Name: "audit/many", Page: accesspages.Audit{List: records(), Paged: pageparts.Paged{Next: "/audit?before=5", Export: "/audit.csv"}, Actions: []string{"template.move", "template.publish"}, Filter: accesspages.AuditFilter{Action: "template.cancel"}}.Page()},
		{Name: "audit/security", Page: accesspages.Audit{List: refusals(), Paged: pageparts.Paged{Export: "/audit.csv?security=1"}, Filter: accesspages.AuditFilter{Security: true}}.Page()},
		{Name: "audit/none", Page: accesspages.Audit{Filter: accesspages.AuditFilter{Kind: "key", Actor: "staff:9"}}.Page()},
		{Name: "shops/empty", Page: droppages.Shops{}.Page()},
		{Name: "shops/one", Page: droppages.Shops{List: shops()[:1]}.Page()},
		{Name: "shops/many", Page: droppages.Shops{List: shops()}.Page()},
		{Name: "shop/limits", Page: droppages.ShopForm{Values: map[string]string{"shop_number": "10", "name": "Harbour Tea House", "timezone": "Asia/Shanghai"}, Zones: []string{"Asia/Shanghai"}, Limits: shopLimits()}.Page()},
		{Name: "shop/limits_refused", Page: limitsRefused().Page()},
		{Name: "shop/errors", Page: droppages.ShopForm{New: true, Values: map[string]string{"timezone": "Asia/Shanghai"}, Zones: []string{"Asia/Shanghai", "Europe/Berlin", "UTC"}, Errors: []fault.Field{{Name: "shop_number", Key: "rule.shop_number", Message: "must be a positive number"}}}.Page()},
		{Name: "providers/list", Page: providerList().Page()},
		{Name: "providers/none", Page: noProviders().Page()},
		{Name: "providers/kinds", Page: providerKinds().Page()},
		{Name: "providers/form", Page: providerForm().Page()},
		{Name: "providers/form/wechat", Page: miniProgramForm().Page()},
		{Name: "providers/form/apns", Page: appleForm().Page()},
		{Name: "providers/form/fcm", Page: googleForm().Page()},
		{Name: "webhooks/list", Page: webhookList().Page()},
		{Name: "webhooks/one", Page: webhookPage().Page()},
		{Name: "webhooks/form", Page: webhookForm().Page()},
		{Name: "webhooks/delivery", Page: webhookDelivery().Page()},
		{Name: "dead/empty", Page: workpages.DeadMessages{}.Page()},
		{Name: "dead/one", Page: workpages.DeadMessages{List: dead}.Page()},
		{Name: "dead/many", Page: workpages.DeadMessages{List: slices.Repeat(dead, 3), Paged: pageparts.Paged{Next: "/dead-messages?before=1"}}.Page()},
	}
}
