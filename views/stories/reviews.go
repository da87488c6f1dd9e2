package stories

import (
	"time"

	"dropbell/domain/review"
	"dropbell/domain/staff"
	couponpages "dropbell/views/pages/coupons"
	pageparts "dropbell/views/pages/parts"
)

// reviews are the pages about groups of claims.
func reviews() []Story {
	at := func(d time.Duration) *time.Time { return new(Now().Add(d)) }
	v := review.Review{ID: 1, TemplateID: 1, ShopNumber: 10, DropName: "Moon cake night: ¥20 off everything at Harbour Tea House", Timezone: "Asia/Shanghai",
		Rules:   []review.Rule{review.AtOnce, review.BeforeAnybody, review.NothingOpened},
		Facts:   review.Facts{Claims: 214, Networks: 1, Agents: 5, From: 3, To: 9, Nothing: 214},
		Coupons: 214, State: review.Open, ChangedAt: Now().Add(-time.Hour), CreatedAt: Now().Add(-time.Hour)}
	proposed := v
	proposed.ID, proposed.State, proposed.Proposed, proposed.Proposer, proposed.Reason, proposed.Actor = 2, review.Proposed, review.Suspend, "staff:2 Lin Mei", "a script in one data centre", "staff:2 Lin Mei"
	working := v
	working.ID, working.State, working.Suspended, working.SuspendedAt, working.Actor, working.Reason = 3, review.Suspending, 120, at(-time.Second), "staff:1 Ada Okafor", "a script in one data centre"
	suspended := working
	suspended.ID, suspended.State, suspended.Suspended, suspended.Kept, suspended.Appeals = 4, review.Suspended, 211, 3, 1
	farm := review.Review{ID: 5, TemplateID: 1, ShopNumber: 10, DropName: v.DropName, Timezone: v.Timezone, Rules: []review.Rule{review.SharedPhone, review.SharedPush, review.SharedHousehold, review.ByProgram, review.PassesInARow},
		Facts: review.Facts{Claims: 800, Networks: 640, Agents: 41, From: 31, To: 18_204, Nothing: 402}, Coupons: 800, State: review.Returned, Returned: 800, ChangedAt: Now()}
	list := []review.Review{v, proposed, working, suspended, farm}
	for i, s := range []review.State{review.Returning, review.Restoring, review.Restored, review.LetBe} {
		other := v
		other.ID, other.State = int64(6+i), s
		list = append(list, other)
	}
	right := make([]review.Accuracy, 0, len(review.Rules()))
	for i, r := range review.Rules() {
		right = append(right, review.Accuracy{Rule: r, Groups: int64(9 - i), Suspended: int64(2400 - 300*i), Restored: int64(i)})
	}
	members := []review.Member{{CouponID: 901, UserID: 1001, State: "suspended", Appeal: "I pressed the button in the app, at home, with my mother watching.", AppealedAt: at(-time.Minute)},
		{CouponID: 902, UserID: 1002, State: "kept"}, {CouponID: 903, UserID: 1003, State: "found"}, {CouponID: 904, UserID: 1004, State: "returned"},
		{CouponID: 905, UserID: 1005, State: "restored", Appeal: "It was me.", AppealedAt: at(-time.Hour), Answer: "restored", AnsweredAt: at(-time.Minute)}}
	run := &review.Run{TemplateID: 1, DropName: v.DropName, ShopNumber: 10, Timezone: v.Timezone, Claims: 2_000_000, Found: 2_950, LeftOut: 8_000_000, RanAt: Now()}
	steps := []review.Step{review.Suspend, review.Leave}
	return []Story{
		{Name: "reviews/empty", Page: couponpages.Reviews{Accuracies: right}.Page()},
		{Name: "reviews/none", Page: couponpages.Reviews{TemplateID: 1, Run: run, Accuracies: right}.Page()},
		{Name: "reviews/many", Page: couponpages.Reviews{List: list, Shown: "all", Accuracies: right, Paged: pageparts.Paged{First: "/reviews", Next: "/reviews?after=1-1"}}.Page()},
		{Name: "reviews/of-ten-million", Page: couponpages.Reviews{List: list[:2], TemplateID: 1, Run: run, Accuracies: right}.Page()},
		{Name: "reviews/viewer", Page: couponpages.Reviews{List: list[:1], Accuracies: right}.Page(), Role: staff.Viewer},
		{Name: "review/open", Page: couponpages.ReviewDetail{Review: v, Members: members, May: steps, Paged: pageparts.Paged{Next: "/reviews/1?after=905"}}.Page()},
		{Name: "review/proposed", Page: couponpages.ReviewDetail{Review: proposed, Members: members[2:3], May: []review.Step{review.Approve, review.Decline}}.Page()},
		{Name: "review/working", Page: couponpages.ReviewDetail{Review: working, Members: members[:2]}.Page()},
		{Name: "review/suspended", Page: couponpages.ReviewDetail{Review: suspended, Members: members, May: []review.Step{review.Return, review.Restore}}.Page()},
		{Name: "review/farm", Page: couponpages.ReviewDetail{Review: farm, Members: members[3:4]}.Page()},
		{Name: "review/no-appeals", Page: couponpages.ReviewDetail{Review: suspended, Appealed: true}.Page()},
		{Name: "review/viewer", Page: couponpages.ReviewDetail{Review: suspended, Members: members}.Page(), Role: staff.Viewer},
	}
}
