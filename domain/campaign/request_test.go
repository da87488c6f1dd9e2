package campaign

import (
	"math"
	"slices"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// All differences in messages and recipients are told apart.
func TestDifferencesNameEveryField(t *testing.T) {
	base := Snapshot{Spec: Spec{Shop: 10, Name: "Spring", Channel: delivery.App, Audience: Audience{Kind: Segment, ID: 3}, GrantTemplate: 1,
		StartsAt: time.Unix(100, 0), EndsAt: time.Unix(200, 0), RatePerSecond: 5,
		Content: delivery.Copy{Variants: []delivery.Variant{{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "a", Body: "b"}}},
			{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "c", Body: "d"}}}}, HoldOut: 10}},
		Rule: &FrozenRule{SegmentID: 3, Version: 1, Kind: segment.ByRules, Rule: segment.Everybody()}}
	texts := func(change func(v []delivery.Variant)) func(*Snapshot) {
		return func(s *Snapshot) {
			list := []delivery.Variant{{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "a", Body: "b"}}},
				{Percent: 50, Texts: map[string]delivery.Text{"": {Title: "c", Body: "d"}}}}
			change(list)
			s.Content.Variants = list
		}
	}
	for _, c := range []struct {
		change func(*Snapshot)
		want   []string
	}{
		{func(*Snapshot) {}, nil},
		{func(s *Snapshot) { s.Name = "x" }, []string{"name"}},
		{func(s *Snapshot) { s.Shop = 11 }, []string{"shop_number"}},
		{func(s *Snapshot) { s.Channel = delivery.SMS }, []string{"channel"}},
		{func(s *Snapshot) { s.Audience.ID = 4 }, []string{"audience"}},
		{func(s *Snapshot) { s.Audience = Audience{Kind: Named, Users: []user.ID{1}} }, []string{"audience"}},
		{func(s *Snapshot) { s.GrantTemplate = 0 }, []string{"grant_template_id"}},
		{func(s *Snapshot) { s.StartsAt = s.StartsAt.UTC() }, nil},
		{func(s *Snapshot) { s.StartsAt = s.StartsAt.Add(time.Microsecond) }, []string{"starts_at"}},
		{func(s *Snapshot) { s.EndsAt = s.EndsAt.Add(1) }, []string{"ends_at"}},
		{func(s *Snapshot) { s.RatePerSecond = 0 }, []string{"rate_per_second"}},
		{func(s *Snapshot) { s.Content.HoldOut = 0 }, []string{"hold_out_percent"}},
		{texts(func(v []delivery.Variant) { v[0].Texts[""] = delivery.Text{Title: "A", Body: "b"} }), []string{"title"}},
		{texts(func(v []delivery.Variant) { v[0].Texts["zh-CN"] = delivery.Text{Title: "x", Body: "y"} }), []string{"title.zh-CN", "body.zh-CN"}},
		{texts(func(v []delivery.Variant) { v[1].Texts[""] = delivery.Text{Title: "c", Body: "D"} }), []string{"variant_b.body"}},
		{texts(func(v []delivery.Variant) { v[0].Percent, v[1].Percent = 40, 60 }), []string{"percent"}},
		{func(s *Snapshot) { s.Content.Variants = s.Content.Variants[:1] }, []string{"variant_b.title", "variant_b.body", "percent"}},
		{func(s *Snapshot) {
			s.Rule = &FrozenRule{SegmentID: 3, Version: 2, Name: "new name", Kind: segment.ByRules, Rule: segment.Rule{Match: segment.All, Rules: []segment.Rule{}}}
		}, nil},
		{func(s *Snapshot) {
			s.Rule = &FrozenRule{SegmentID: 3, Version: 2, Kind: segment.ByRules, Rule: segment.Rule{Match: segment.Any}}
		}, []string{"rule"}},
		{func(s *Snapshot) { s.Rule = nil }, []string{"rule"}},
	} {
		other := base
		c.change(&other)
		if got := base.Differences(other); !slices.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
		if got := other.Differences(base); !slices.Equal(got, c.want) {
			t.Errorf("the other way: %v, want %v", got, c.want)
		}
	}
}

func TestCostOf(t *testing.T) {
	fixed := template.Template{Spec: template.Spec{Kind: template.ThresholdOff, AmountOff: 2000, Threshold: 9000, Currency: "CNY", Stock: 100}, Issued: 40}
	percent := template.Template{Spec: template.Spec{Kind: template.PercentOff, PercentOff: 20, MaxOff: 3000, Currency: "JPY", Stock: 1 << 60}}
	for _, c := range []struct {
		t     template.Template
		users int64
		want  Cost
	}{
		{fixed, 10, Cost{10, 20_000, "CNY"}}, {fixed, 1000, Cost{60, 120_000, "CNY"}}, {fixed, 0, Cost{0, 0, "CNY"}},
		{percent, 7, Cost{7, 21_000, "JPY"}}, {percent, 1 << 58, Cost{1 << 58, math.MaxInt64, "JPY"}},
	} {
		if got := CostOf(c.t, c.users); got != c.want {
			t.Errorf("%d users: %+v, want %+v", c.users, got, c.want)
		}
	}
	if got := (Spec{RatePerSecond: 500}).Takes(1_204_000); got != 2408*time.Second {
		t.Errorf("takes %v", got)
	}
	if got := (Spec{}).Takes(10) + (Spec{RatePerSecond: 1}).Takes(0); got != 0 {
		t.Errorf("takes %v", got)
	}
}

// Days are as long as they are in their zone, and follow each other without gaps.
func TestSpansFollowTheZones(t *testing.T) {
	q := CalendarQuery{From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 4, 5, 0, 0, 0, 0, time.UTC), Zone: time.UTC, PerDay: 4}
	spans := q.spans([]string{"Europe/Berlin", "Asia/Shanghai"})
	if len(spans) != 3*35 {
		t.Fatalf("%d spans", len(spans))
	}
	lengths := map[time.Duration]int{}
	for i, s := range spans {
		lengths[s.To.Sub(s.From)]++
		if i > 0 && spans[i-1].Zone == s.Zone && (!spans[i-1].To.Equal(s.From) || spans[i-1].Day+1 != s.Day) {
			t.Errorf("a gap before %+v", s)
		}
	}
	if lengths[23*time.Hour] != 1 || lengths[24*time.Hour] != 3*35-1 {
		t.Errorf("lengths %v", lengths)
	}
	if n := len(CalendarQuery{From: q.From, To: q.To, Shops: []int64{1}, Zone: time.UTC}.spans([]string{"UTC"})); n != 35 {
		t.Errorf("%d spans of one shop", n)
	}
}

func TestArrangeFillsDays(t *testing.T) {
	q := CalendarQuery{From: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC), Zone: time.UTC, PerDay: 2}
	at := q.From.Add(10 * time.Hour)
	days := q.arrange([]PlannedOn{{1, Planned{ID: 3, At: at.Add(time.Hour)}}, {1, Planned{ID: 2, At: at}}, {1, Planned{ID: 7, At: at, Drop: true}},
		{2, Planned{ID: 5, At: at}}}, 5)
	if len(days) != 3 || len(days[0].List) != 0 || days[1].More != 1 || days[1].Many || !days[1].List[0].Drop || days[1].List[1].ID != 2 || days[2].More != 0 {
		t.Errorf("%+v", days)
	}
	var full []PlannedOn
	for i := range 5 {
		full = append(full, PlannedOn{0, Planned{ID: int64(i), At: at}})
	}
	if days := q.arrange(full, 5); days[0].More != 3 || !days[0].Many {
		t.Errorf("a full day: %+v", days[0])
	}
}
