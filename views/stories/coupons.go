package stories

import (
	"time"

	"dropbell/domain/cart"
	owned "dropbell/domain/coupon"
	"dropbell/domain/fault"
	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
)

// couponPages are the pages about users' coupons.
func couponPages() []Story {
	var all []Story
	for _, group := range [][]Story{coupons(), grants(), locks(), notices(), reviews()} {
		all = append(all, group...)
	}
	return all
}

func ownedCoupon(id int64, state owned.State) owned.Listed {
	t := coupon(1, "Moon cake night: ¥20 off everything at Harbour Tea House", time.Minute)
	l := owned.Listed{Coupon: owned.Coupon{ID: id, TemplateID: 1, UserID: 1001, Origin: "claim", State: state, IssuedAt: Now().Add(-26 * time.Hour),
		ExpiresAt: Now().Add(46 * time.Hour), UpdatedAt: Now()}, Rule: owned.RuleOf(t.Spec), TemplateName: t.Name, ShopNumber: 10,
		ShopName: t.ShopName, ShopTimezone: t.ShopTimezone, Now: Now()}
	if state == owned.Locked || state == owned.Used {
		l.OrderID, l.Discount, l.LockedAt = "2026-1120-000087", 2000, new(Now().Add(-4*time.Minute))
	}
	if state == owned.Locked {
		l.LockedUntil = new(Now().Add(11 * time.Minute))
	}
	if state == owned.Used {
		l.UsedAt = new(Now().Add(-3 * time.Minute))
	}
	return l
}

func coupons() []Story {
	list := []owned.Listed{ownedCoupon(901, owned.Unused), ownedCoupon(902, owned.Locked), ownedCoupon(903, owned.Used), ownedCoupon(904, owned.Expired), ownedCoupon(905, owned.Revoked), ownedCoupon(907, owned.Suspended)}
	late := ownedCoupon(906, owned.Unused)
	late.ExpiresAt = Now().Add(-time.Minute)
	at := func(minutes int) time.Time { return Now().Add(time.Duration(minutes) * time.Minute) }
	log := []owned.Operation{
		{OrderID: "2026-1120-000085", Step: owned.StepLock, Outcome: owned.RefusedRule, By: "key:3 Till", At: at(-30)},
		{OrderID: "2026-1120-000086", Step: owned.StepLock, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-28)},
		{OrderID: "2026-1120-000086", Step: owned.StepTimeout, Outcome: owned.Done, Discount: 2000, By: "system", At: at(-13)},
		{OrderID: "2026-1120-000086", Step: owned.StepConfirm, Outcome: owned.RefusedEnded, By: "key:3 Till", At: at(-12)},
		{OrderID: "2026-1120-000087", Step: owned.StepLock, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-4)},
		{OrderID: "2026-1120-000087", Step: owned.StepLock, Outcome: owned.RefusedCurrency, By: "key:3 Till", At: at(-4)},
	}
	used := append(log[:len(log):len(log)], owned.Operation{OrderID: "2026-1120-000087", Step: owned.StepConfirm, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-3)})
	revoked := []owned.Operation{{Step: owned.StepRevoke, Outcome: owned.Done, Reason: "given to the wrong person", By: "staff:1 Ada Okafor", At: at(-1)}}
	percent := list[0]
	percent.Rule.Kind, percent.Rule.AmountOff, percent.Rule.PercentOff, percent.Rule.MaxOff = template.PercentOff, 0, 20, 3000
	percent.Rule.Target, percent.Rule.Product = template.Product, "Jasmine tea"
	returned := list[4]
	returned.Returned = true
	return append(together(), []Story{
		{Name: "coupons/empty", Page: couponpages.Coupons{By: "user"}.Page()},
		{Name: "coupons/broken", Page: couponpages.Coupons{By: "user", Search: "moon", Broken: true}.Page()},
		{Name: "coupons/none", Page: couponpages.Coupons{By: "order", Search: "A-1", State: owned.Locked}.Page()},
		{Name: "coupons/one", Page: couponpages.Coupons{By: "coupon", Search: "901", List: list[:1]}.Page(), Role: staff.Viewer},
		{Name: "coupons/of-a-template", Page: couponpages.Coupons{By: "template", Search: "1", List: list, Tally: &pageparts.Tally{Template: coupon(1, "Moon cake night", -time.Hour),
			Tally: owned.Tally{Issued: 31_400, Used: 12_004, Locked: 87, Expired: 640, Revoked: 12, Suspended: 211, Returned: 9, Released: 903, Refunded: 41, Discounted: 24_008_000, Removed: 1_250}}}.Page()},
		{Name: "coupons/of-a-template-without", Page: couponpages.Coupons{By: "template", Search: "1", Tally: &pageparts.Tally{Template: coupon(1, "Moon cake night", time.Hour)}}.Page()},
		{Name: "coupons/many", Page: couponpages.Coupons{By: "user", Search: "1001", List: append(list, late), Paged: pageparts.Paged{First: "/coupons", Next: "/coupons?before=901"}}.Page()},
		{Name: "coupon/unused", Page: couponpages.CouponDetail{Coupon: list[0], MayRelease: true, MayRevoke: true}.Page()},
		{Name: "coupon/percent", Page: couponpages.CouponDetail{Coupon: percent}.Page()},
		{Name: "coupon/not_revocable", Page: asked(func(l *i18n.Locale) pageparts.Confirmation {
			return pageparts.Confirmation{Active: "coupons", ConfirmProps: ui.ConfirmProps{Title: l.T("coupon.revoke.not"), Cancel: "/coupons/905",
				Points: []string{l.T("coupon.revoke.not.revoked")}, NoReason: true}}
		})},
		{Name: "coupon/locked", Page: couponpages.CouponDetail{Coupon: list[1], Log: log, MayRelease: true, MayRevoke: true}.Page()},
		{Name: "coupon/used", Page: couponpages.CouponDetail{Coupon: list[2], Log: used}.Page(), Role: staff.Viewer},
		{Name: "coupon/revoke", Page: asked(func(l *i18n.Locale) pageparts.Confirmation {
			return pageparts.Confirmation{Active: "coupons", Inside: couponpages.ReturnChoice(false), ConfirmProps: ui.ConfirmProps{Title: l.T("coupon.revoke.title"), Action: "/coupons/901/revoke",
				Points: []string{l.T("coupon.revoke.1", "1001", "Moon cake night"), l.T("coupon.revoke.2")}, Cancel: "/coupons/901", Submit: l.T("coupon.revoke"), Kind: "danger", NeedsReason: true}}
		})},
		{Name: "coupon/given-again", Page: couponpages.CouponDetail{Coupon: list[4], Again: 912, Log: revoked}.Page()},
		{Name: "gift/empty", Page: couponpages.GiftForm{RequestKey: "k"}.Page()},
		{Name: "gift/wrong", Page: couponpages.GiftForm{User: "Ann", RequestKey: "k", Errors: []fault.Field{{Name: "user", Key: "rule.name_several"},
			{Name: "template", Key: "rule.required"}, {Name: "reason", Key: "rule.reason", Message: "say why, in at most 500 characters"}}}.Page()},
		{Name: "gift/refused", Page: couponpages.GiftForm{User: "1001", Template: "Moon cake night (#1)", Reason: "the parcel was late", RequestKey: "k",
			Error: "No coupon is left in stock. Raise the stock of the drop first."}.Page()},
		{Name: "coupon/reissue", Page: asked(func(l *i18n.Locale) pageparts.Confirmation {
			return pageparts.Confirmation{Active: "coupons", ConfirmProps: ui.ConfirmProps{Title: l.T("gift.reissue.title"), Action: "/coupons/901/reissue",
				Points: []string{l.T("gift.reissue.1", "1001", "Moon cake night"), l.T("gift.reissue.2_unused"), l.T("gift.reissue.3")}, Cancel: "/coupons/901",
				Submit: l.T("gift.reissue"), Kind: "primary", NeedsReason: true}}
		})},
		{Name: "coupon/returned", Page: couponpages.CouponDetail{Coupon: returned, Log: revoked}.Page()},
		{Name: "coupon/revoked", Page: couponpages.CouponDetail{Coupon: list[4], Log: revoked, MayRevoke: true}.Page()},
	}...)
}

// together are the states of the page about what goes with what.
func together() []Story {
	p := couponpages.Together{Shops: shops(), Shop: 10, Currency: "CNY", Values: map[string]string{"amount1": "80", "amount2": "20"},
		Cart: cart.Cart{Shop: 10, Currency: "CNY", Lines: []cart.Line{{ID: "1", Quantity: 1, Amount: 8000}, {ID: "2", Quantity: 1, Amount: 2000}}}}
	for i, name := range []string{"Welcome", "Members of the tea club, who come first", "Moon cake night: ¥20 off everything at Harbour Tea House"} {
		r := owned.RuleOf(coupon(1, name, time.Hour).Spec)
		r.Threshold += money.Amount(2000 * (i - 1))
		d := cart.Drop{Name: name, Terms: cart.Terms{ID: int64(i + 1), TemplateID: int64(i + 1), Shop: 10, Rule: r, Stacking: cart.Stacking{Group: []string{"welcome", "member", "other"}[i],
			With: [][]string{{"member"}, {"welcome", "other"}, nil}[i]}}}
		if i == 0 {
			d.Rule.Kind, d.Rule.PercentOff, d.Rule.MaxOff = template.PercentOff, 10, 5000
		}
		p.Drops = append(p.Drops, d)
	}
	empty, wrong, none := p, p, p
	var list []cart.Terms
	for _, d := range p.Drops {
		list = append(list, d.Terms)
	}
	p.Answer = cart.Qualify(p.Cart, list, Now())
	empty.Drops = nil
	wrong.Values, wrong.Errors = map[string]string{"amount1": "abc"}, []fault.Field{{Name: "amount1", Key: "rule.amount_format", Message: "must be a number with at most 2 decimals"}}
	none.Values, none.Cart.Lines, none.More = map[string]string{}, nil, true
	return []Story{{Name: "together/empty", Page: empty.Page()}, {Name: "together/example", Page: p.Page()}, {Name: "together/wrong", Page: wrong.Page()},
		{Name: "together/no_cart", Page: none.Page(), Role: staff.Viewer}}
}

func locks() []Story {
	everywhere := func(int64) bool { return true }
	late, long := ownedCoupon(910, owned.Locked), ownedCoupon(911, owned.Locked)
	late.LockedAt, late.LockedUntil = new(Now().Add(-15*time.Minute)), new(Now().Add(-time.Second))
	long.OrderID = "0193f1a2-7b5c-7d3e-9f4a-2b1c0d9e8f7a-retry-0042-very-long-order-id"
	return []Story{
		{Name: "locks/empty", Page: couponpages.Locks{MayRelease: everywhere}.Page()},
		{Name: "locks/one", Page: couponpages.Locks{List: []owned.Listed{ownedCoupon(902, owned.Locked)}, Paged: pageparts.Paged{Export: "/coupons/locks.csv"}, MayRelease: func(int64) bool { return false }}.Page(), Role: staff.Viewer},
		{Name: "locks/many", Page: couponpages.Locks{List: []owned.Listed{late, ownedCoupon(902, owned.Locked), long}, MayRelease: everywhere, Paged: pageparts.Paged{Next: "/coupons/locks?after=1-1", First: "/coupons/locks", Export: "/coupons/locks.csv"}}.Page()},
	}
}

func notices() []Story {
	today := Now().UTC().Truncate(24 * time.Hour)
	page := couponpages.NoticeCalendar{Today: today, Month: today.AddDate(0, 0, 1-today.Day())}
	one, many := page, page
	// Six weeks from a Sunday or a Monday on. Days outside the weeks of a language are not shown.
	for d := time.Date(2026, 10, 25, 0, 0, 0, 0, time.UTC); d.Before(time.Date(2026, 12, 7, 0, 0, 0, 0, time.UTC)); d = d.AddDate(0, 0, 1) {
		i := int(d.Sub(today) / (24 * time.Hour))
		day := owned.NoticeDay{Day: d}
		page.Days = append(page.Days, day)
		single := day
		if i == 2 {
			single.Planned = 1
		}
		one.Days = append(one.Days, single)
		if i%7 != 0 || i == 0 {
			day.Planned = int64(52_000 + 731*i)
		}
		if i < 0 && day.Planned > 0 {
			day.Failed, day.Dropped = int64(40-i), day.Planned/5
			day.Sent = day.Planned - day.Failed - day.Dropped
		}
		if i == 0 {
			day.Sent, day.Dropped = 2000, 12
		}
		many.Days = append(many.Days, day)
	}
	return []Story{
		{Name: "notices/empty", Page: page.Page()},
		{Name: "notices/one", Page: one.Page()},
		{Name: "notices/many", Page: many.Page()},
	}
}
