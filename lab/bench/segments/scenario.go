// Package segments measures how long an estimate of an audience's size takes with millions of
// users, how far off the estimate is, and how long the exact count takes. The aim is a median
// below 200 ms for every estimate.
//
//	go tool task bench:segments -- -n 10000000 -times 9
package segments

import (
	"context"
	"fmt"
	"math"
	"time"

	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/domain/campaign"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// aim is the greatest accepted median of an estimate.
const aim = 200 * time.Millisecond

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n := f.Int("n", 10_000_000, "users")
	times := f.Int("times", 9, "repetitions of every estimate")
	exact := f.Bool("exact", true, "count every audience as well, as the job in the background does")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *n, *times, *exact) })
}

// An audience is a set of users whose size is estimated.
type audience struct {
	name string
	rule *segment.Rule // nil = asked for as kind and id
	kind campaign.AudienceKind
	id   int64
	size int64 // of an audience without a rule
}

func bench(ctx context.Context, s *stack.Stack, n, times int, exact bool) error {
	began := time.Now()
	list, err := fill(ctx, s, n)
	if err != nil {
		return err
	}
	fmt.Printf("%d users, %d reservations, %d coupons, filled in %v\n", n, n/reservedEvery, n/couponEvery, time.Since(began).Round(time.Second))
	fmt.Printf("%-44s %9s %9s %9s %11s %11s %8s %10s\n", "audience", "first", "median", "slowest", "estimate", "margin", "off", "exact in")
	missed := 0
	for _, a := range append(rules(), list...) {
		median, err := measure(ctx, s, a, times, exact)
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		if median >= aim {
			missed++
		}
	}
	fmt.Printf("estimates with a median of %v or more: %d\n", aim, missed)
	return nil
}

// measure prints one line: the time of the first estimate, with cold caches, the median and the
// greatest time of all estimates, and their greatest error.
func measure(ctx context.Context, s *stack.Stack, a audience, times int, exact bool) (median time.Duration, err error) {
	took := make([]int64, times)
	found := make([]segment.Estimate, times)
	for i := range times {
		start := time.Now()
		if found[i], err = a.estimate(ctx, s); err != nil {
			return 0, err
		}
		took[i] = int64(time.Since(start))
	}
	truth, counted, err := a.count(ctx, s, exact)
	if err != nil {
		return 0, err
	}
	slowest, off, outside := int64(0), 0.0, 0
	for i, e := range found {
		slowest = max(slowest, took[i])
		d := math.Abs(float64(e.Members - truth))
		off = max(off, 100*d/float64(max(1, truth)))
		if d > float64(e.Margin) {
			outside++
		}
	}
	median = time.Duration(stack.Median(took))
	line := fmt.Sprintf("%-44s %9s %9s %9s %11d %11d", a.name, ms(time.Duration(took[0])), ms(median), ms(time.Duration(slowest)),
		found[0].Members, found[0].Margin)
	if truth >= 0 {
		line += fmt.Sprintf(" %7.1f%%", off)
	}
	if counted > 0 {
		line += fmt.Sprintf(" %9.1fs", counted.Seconds())
	}
	if truth >= 0 && outside > 0 && found[0].Margin > 0 {
		line += fmt.Sprintf("  %d of %d outside the margin", outside, times)
	}
	fmt.Println(line)
	return median, nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }

func (a audience) estimate(ctx context.Context, s *stack.Stack) (segment.Estimate, error) {
	if a.rule != nil {
		return audiencedb.NewSegments(s.DB).EstimateRule(ctx, *a.rule)
	}
	n, exact, err := campaignsdb.NewCampaigns(s.DB, audiencedb.NewSegments(s.DB)).Estimate(ctx, campaign.Audience{Kind: a.kind, ID: a.id})
	return segment.Estimate{Members: n, Exact: exact}, err
}

// count returns the exact number of users and the time of counting, in the ranges of the job
// that counts. The number is -1 if exact is not set.
func (a audience) count(ctx context.Context, s *stack.Stack, exact bool) (n int64, took time.Duration, err error) {
	if a.rule == nil {
		return a.size, 0, nil
	}
	if !exact {
		return -1, 0, nil
	}
	start, after := time.Now(), user.ID(0)
	for {
		members, _, last, err := audiencedb.NewSegments(s.DB).CountRange(ctx, *a.rule, after, segment.CountRange)
		if err != nil || last == 0 {
			return n, time.Since(start), err
		}
		n, after = n+members, last
	}
}

// rules returns audiences defined by rules, from a rule that reads the user's row alone to a
// rule that reads all tables.
func rules() []audience {
	some := segment.Leaf
	all := func(rules ...segment.Rule) segment.Rule { return segment.Rule{Match: segment.All, Rules: rules} }
	list := []struct {
		name string
		rule segment.Rule
	}{
		{"attribute is (1 in 10)", some(segment.Attribute, "tier", segment.Is, "gold")},
		{"attribute above a number (1 in 1,000)", some(segment.Attribute, "points", segment.Above, "998")},
		{"language, and a mail address", all(some(segment.Locale, "", segment.OneOf, "zh"), some(segment.Contact, "", segment.Has, "email"))},
		{"reserved a template", some(segment.Reserved, "", segment.Template, "1")},
		{"reserved but not claimed", some(segment.ReservedNotClaimed, "", segment.Template, "1", "2")},
		{"holds a coupon of two templates", some(segment.Coupon, "", segment.Holds, "1", "2")},
		{"never had a coupon of a template", some(segment.Coupon, "", segment.NeverHad, "1")},
		{"claimed nothing for 30 days", some(segment.Claimed, "", segment.NotWithinDays, "30")},
		{"nested: gold, (holds or reserved), not opted out", all(some(segment.Attribute, "tier", segment.Is, "gold"),
			segment.Rule{Match: segment.Any, Rules: []segment.Rule{some(segment.Coupon, "", segment.Holds, "1"), some(segment.Reserved, "", segment.Template, "2"),
				all(some(segment.Created, "", segment.WithinDays, "30"), some(segment.ReservedNotClaimed, "", segment.Template, "3"))}},
			segment.Rule{Match: segment.None, Rules: []segment.Rule{some(segment.OptedOut, "", segment.Is, "email")}})},
		{"nobody", some(segment.Attribute, "tier", segment.Is, "platinum")},
	}
	audiences := make([]audience, len(list))
	for i, l := range list {
		audiences[i] = audience{name: l.name, rule: &l.rule}
	}
	return audiences
}

// otherAudiences are the audiences without a rule.
func otherAudiences(ctx context.Context, s *stack.Stack, n int) ([]audience, error) {
	segments := audiencedb.NewSegments(s.DB)
	entry := staff.Entry{Actor: staff.System(), Action: "segment.create", ObjectKind: "segment"}
	g, err := segments.CreateSegment(ctx, segment.Segment{Name: "List", Kind: segment.ByList, Rule: segment.Everybody(), CreatedBy: "bench"}, "", entry)
	if err != nil {
		return nil, err
	}
	ids := make([]user.ID, n/listedEvery)
	for i := range ids {
		ids[i] = user.ID(i*listedEvery + 1)
	}
	if _, err := segments.AddMembers(ctx, g.ID, ids); err != nil {
		return nil, err
	}
	var reservers, holders int64
	if err := s.SQL.QueryRow(ctx, `select (select count(*) from reservations where template_id = 1),
		(select count(distinct user_id) from coupons where template_id = 1 and state in ('unused', 'locked'))`).Scan(&reservers, &holders); err != nil {
		return nil, err
	}
	return []audience{
		{name: fmt.Sprintf("list of %d", len(ids)), kind: campaign.List, id: g.ID, size: int64(len(ids))},
		{name: "all users", kind: campaign.Everybody, size: int64(n)},
		{name: "reservers of a template", kind: campaign.Reserved, id: 1, size: reservers},
		{name: "holders of a template's coupons", kind: campaign.Holds, id: 1, size: holders},
	}, nil
}
