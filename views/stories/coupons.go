package stories

import (
	"time"

	owned "dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/views/pages"
)

// couponPages are the pages around what users own.
func couponPages() []Story {
	var all []Story
	for _, group := range [][]Story{coupons(), locks(), notices()} {
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
	list := []owned.Listed{ownedCoupon(901, owned.Unused), ownedCoupon(902, owned.Locked), ownedCoupon(903, owned.Used), ownedCoupon(904, owned.Expired), ownedCoupon(905, owned.Revoked)}
	late := ownedCoupon(906, owned.Unused)
	late.ExpiresAt = Now().Add(-time.Minute)
	at := func(minutes int) time.Time { return Now().Add(time.Duration(minutes) * time.Minute) }
	log := []owned.Operation{
		{OrderID: "2026-1120-000085", Step: owned.StepLock, Outcome: owned.RefusedRule, By: "key:3 Till", At: at(-30)},
		{OrderID: "2026-1120-000086", Step: owned.StepLock, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-28)},
		{OrderID: "2026-1120-000086", Step: owned.StepTimeout, Outcome: owned.Done, Discount: 2000, By: "system", At: at(-13)},
		{OrderID: "2026-1120-000086", Step: owned.StepConfirm, Outcome: owned.RefusedEnded, By: "key:3 Till", At: at(-12)},
		{OrderID: "2026-1120-000087", Step: owned.StepLock, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-4)},
	}
	used := append(log[:len(log):len(log)], owned.Operation{OrderID: "2026-1120-000087", Step: owned.StepConfirm, Outcome: owned.Done, Discount: 2000, By: "key:3 Till", At: at(-3)})
	revoked := []owned.Operation{{Step: owned.StepRevoke, Outcome: owned.Done, Reason: "given to the wrong person", By: "staff:1 Ada Okafor", At: at(-1)}}
	return []Story{
		{Name: "coupons/empty", Page: pages.Coupons{By: "user"}.Page()},
		{Name: "coupons/broken", Page: pages.Coupons{By: "user", Search: "moon", Broken: true}.Page()},
		{Name: "coupons/none", Page: pages.Coupons{By: "order", Search: "A-1", State: owned.Locked}.Page()},
		{Name: "coupons/one", Page: pages.Coupons{By: "coupon", Search: "901", List: list[:1]}.Page(), Role: staff.Viewer},
		{Name: "coupons/many", Page: pages.Coupons{By: "user", Search: "1001", List: append(list, late), First: "/coupons", Next: "/coupons?before=901"}.Page()},
		{Name: "coupon/unused", Page: pages.CouponDetail{Coupon: list[0], MayRelease: true, MayRevoke: true}.Page()},
		{Name: "coupon/locked", Page: pages.CouponDetail{Coupon: list[1], Log: log, MayRelease: true, MayRevoke: true}.Page()},
		{Name: "coupon/used", Page: pages.CouponDetail{Coupon: list[2], Log: used}.Page(), Role: staff.Viewer},
		{Name: "coupon/revoked", Page: pages.CouponDetail{Coupon: list[4], Log: revoked, MayRevoke: true}.Page()},
	}
}

func locks() []Story {
	everywhere := func(int64) bool { return true }
	late, long := ownedCoupon(910, owned.Locked), ownedCoupon(911, owned.Locked)
	late.LockedAt, late.LockedUntil = new(Now().Add(-15*time.Minute)), new(Now().Add(-time.Second))
	long.OrderID = "0193f1a2-7b5c-7d3e-9f4a-2b1c0d9e8f7a-retry-0042-very-long-order-id"
	return []Story{
		{Name: "locks/empty", Page: pages.Locks{MayRelease: everywhere}.Page()},
		{Name: "locks/one", Page: pages.Locks{List: []owned.Listed{ownedCoupon(902, owned.Locked)}, MayRelease: func(int64) bool { return false }}.Page(), Role: staff.Viewer},
		{Name: "locks/many", Page: pages.Locks{List: []owned.Listed{late, ownedCoupon(902, owned.Locked), long}, MayRelease: everywhere, Next: "/coupons/locks?after=1-1", First: "/coupons/locks"}.Page()},
	}
}

func notices() []Story {
	today := Now().UTC().Truncate(24 * time.Hour)
	page := pages.NoticeCalendar{Today: today, Earlier: "/notices?from=2026-10-11", Later: "/notices?from=2026-12-10"}
	many := page
	for i := -10; i < 20; i++ {
		d := owned.NoticeDay{Day: today.AddDate(0, 0, i)}
		page.Days = append(page.Days, d)
		if i%7 != 0 {
			d.Planned = int64(12_000 + 731*i)
		}
		if i < 0 && d.Planned > 0 {
			d.Failed, d.Dropped = int64(40-i), d.Planned/5
			d.Sent = d.Planned - d.Failed - d.Dropped
		}
		if i == 1 {
			d.Sent, d.Dropped = 2000, 12
		}
		many.Days = append(many.Days, d)
	}
	return []Story{
		{Name: "notices/empty", Page: page.Page()},
		{Name: "notices/many", Page: many.Page()},
	}
}
