package delivery_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// Many workers never spend more than the day's budget, and all of it.
func TestTheBudgetIsShared(t *testing.T) {
	w := newFixture(t)
	b := deliverydb.NewSMSBudget(w.DB, 100, 0)
	if s, err := b.Spent(t.Context()); err != nil || s.Parts != 0 || s.RefusedAt != nil {
		t.Fatalf("at first: %+v, %v", s, err)
	}
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				_, short, err := b.Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: 2})
				if err != nil {
					t.Error(err)
				}
				if short == delivery.BudgetEnough {
					granted.Add(2)
				}
			}
		})
	}
	all.Wait()
	s, err := b.Spent(t.Context())
	if err != nil || granted.Load() != 100 || s.Parts != 100 || s.RefusedAt == nil {
		t.Fatalf("%d parts were granted; %+v, %v", granted.Load(), s, err)
	}
	var day time.Time
	w.Must(w.SQL.QueryRow(t.Context(), `insert into sms_spent (day, parts) select day - 1, 50 from sms_spent returning day`).Scan(&day))
	w.Must(b.GiveBack(t.Context(), delivery.BudgetTaking{Day: day.AddDate(0, 0, 1)}, delivery.BudgetSize{Parts: 3}))
	w.Must(b.GiveBack(t.Context(), delivery.BudgetTaking{Day: day}, delivery.BudgetSize{Parts: 20})) // of a call that began before midnight
	var before int
	if err := w.SQL.QueryRow(t.Context(), `select parts from sms_spent where day = $1`, day).Scan(&before); err != nil || before != 30 {
		t.Errorf("%d parts are spent on the day before, %v", before, err)
	}
	for _, parts := range []int64{4, 200} {
		if _, short, err := b.Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: parts}); err != nil || short != delivery.BudgetDayShort {
			t.Errorf("%d parts of 3 that are left: %v, %v", parts, short, err)
		}
	}
	if from, short, err := b.Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: 3}); err != nil || short != delivery.BudgetEnough || !from.Day.Equal(day.AddDate(0, 0, 1)) {
		t.Errorf("the rest: %v, %v", short, err)
	}
	if _, short, err := deliverydb.NewSMSBudget(w.DB, 1, 0).Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: 5}); err != nil || short != delivery.BudgetDayShort {
		t.Errorf("more than the whole budget: %v, %v", short, err)
	}
}

// TestTheMoneyIsShared: money is counted in the same statement as parts. Many workers never
// spend more than the day's budget, and a message without room in one budget is charged to
// neither.
func TestTheMoneyIsShared(t *testing.T) {
	w := newFixture(t)
	drop := w.Published(time.Hour).ID
	b := deliverydb.NewSMSBudget(w.DB, 1000, 900).WithMoney(1_000_000, "CNY")
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				switch _, short, err := b.Take(t.Context(), delivery.BudgetOwner{Drop: drop}, delivery.BudgetSize{Parts: 2, Micros: 45_000}); {
				case err != nil || short != delivery.BudgetEnough && short != delivery.BudgetMoneyShort:
					t.Error(short, err)
				case short == delivery.BudgetEnough:
					granted.Add(1)
				}
			}
		})
	}
	all.Wait()
	s, err := b.Spent(t.Context())
	if err != nil || granted.Load() != 22 || s.Parts != 44 || s.Micros != 22*45_000 || s.RefusedAt == nil {
		t.Fatalf("%d were granted; %+v, %v", granted.Load(), s, err)
	}
	if n := w.Number(`select parts from sms_spent_drops where template_id = $1`, drop); n != 44 {
		t.Errorf("the drop has spent %d parts", n)
	}
	from, short, err := b.Take(t.Context(), delivery.BudgetOwner{Drop: drop}, delivery.BudgetSize{Parts: 1, Micros: 10_000})
	if err != nil || short != delivery.BudgetEnough {
		t.Errorf("the rest: %v, %v", short, err)
	}
	w.Must(b.GiveBack(t.Context(), from, delivery.BudgetSize{Parts: 1, Micros: 10_000}))
	if _, short, err := b.Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: 2000, Micros: 1}); err != nil || short != delivery.BudgetDayShort {
		t.Errorf("too many parts: %v, %v", short, err)
	}
	if s, err := b.Spent(t.Context()); err != nil || s.Micros != 990_000 {
		t.Errorf("in the end: %+v, %v", s, err)
	}
}

func TestSerials(t *testing.T) {
	w := newFixture(t)
	s := deliverydb.NewSerials(w.DB)
	w.Must(s.Keep(t.Context(), "tencent", []feedback.Serial{{ID: "1", Reference: "a"}, {ID: "2", Reference: "b"}}))
	w.Must(s.Keep(t.Context(), "tencent", []feedback.Serial{{ID: "2", Reference: "c"}}))
	w.Must(s.Keep(t.Context(), "another", []feedback.Serial{{ID: "3", Reference: "d"}}))
	got, err := s.Find(t.Context(), "tencent", []string{"1", "2", "3", "4"})
	if err != nil || len(got) != 2 || got["1"] != "a" || got["2"] != "b" {
		t.Errorf("got %v, %v", got, err)
	}
}

// TestTheBudgetOfADropIsShared: many workers never spend more than a drop's budget on the
// drop, nor more than the day's budget on all drops. A message for which the day has no room
// is not charged to the drop.
func TestTheBudgetOfADropIsShared(t *testing.T) {
	w := newFixture(t)
	one, other := w.Published(time.Hour).ID, w.Published(time.Hour).ID
	b := deliverydb.NewSMSBudget(w.DB, 60, 50)
	var granted [2]atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		for i, drop := range []int64{one, other} {
			all.Go(func() {
				for range 10 {
					_, short, err := b.Take(t.Context(), delivery.BudgetOwner{Drop: drop}, delivery.BudgetSize{Parts: 2})
					if err != nil {
						t.Error(err)
					}
					if short == delivery.BudgetEnough {
						granted[i].Add(2)
					}
				}
			})
		}
	}
	all.Wait()
	s, err := b.Spent(t.Context())
	if a, c := granted[0].Load(), granted[1].Load(); err != nil || a+c != 60 || a > 50 || c > 50 || s.Parts != 60 {
		t.Fatalf("%d and %d parts were granted, %d are spent, %v", a, c, s.Parts, err)
	}
	for i, drop := range []int64{one, other} {
		var parts int64
		if err := w.SQL.QueryRow(t.Context(), `select parts from sms_spent_drops where template_id = $1`, drop).Scan(&parts); err != nil || parts != granted[i].Load() {
			t.Errorf("drop %d has spent %d parts of %d granted, %v", drop, parts, granted[i].Load(), err)
		}
	}
	b = deliverydb.NewSMSBudget(w.DB, 0, 50)
	if _, short, err := b.Take(t.Context(), delivery.BudgetOwner{Drop: one}, delivery.BudgetSize{Parts: 51}); err != nil || short != delivery.BudgetDropShort {
		t.Errorf("more than the whole budget: %v, %v", short, err)
	}
	over, err := b.DropsOver(t.Context())
	want := []int64{one}
	if granted[1].Load() == 50 { // the day had room for more than its whole budget
		want = append(want, other)
	}
	var got []int64
	for _, d := range over {
		got = append(got, d.TemplateID)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("over their budgets: %+v, want %v; %v", over, want, err)
	}
	from, short, err := b.Take(t.Context(), delivery.BudgetOwner{}, delivery.BudgetSize{Parts: 1000}) // a campaign's
	if err != nil || short != delivery.BudgetEnough || from.Drop != 0 {
		t.Errorf("of no drop: %v, %v", short, err)
	}
}

// TestCostsOfDropsAndCampaigns: each owner's cost is kept by hour and currency in the statement that
// charges the day, so that refused messages cost nothing, and what a provider did not take is taken off
// again, from the hour in which it was charged. The costs of all owners are the day's sum.
func TestCostsOfDropsAndCampaigns(t *testing.T) {
	w := newFixture(t)
	drop := w.Published(time.Hour).ID
	campaign := w.Number(`insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, request_key, creator, created_by)
		values ('Oolong', 2, '{"variants": []}', '{"kind": "all"}', now(), now() + interval '1 hour', 'draft', 'costs', 'staff:1', 'staff:1 Ada') returning id`)
	yuan, dollars := deliverydb.NewSMSBudget(w.DB, 0, 0).WithMoney(900_000, "CNY"), deliverydb.NewSMSBudget(w.DB, 0, 0).WithMoney(0, "USD")
	size := delivery.BudgetSize{Parts: 2, Micros: 90_000}
	var all sync.WaitGroup
	var of [2]atomic.Int64 // how many messages of the drop and of the campaign were let through
	for i, owner := range []delivery.BudgetOwner{{Drop: drop}, {Campaign: campaign}} {
		for range 4 {
			all.Go(func() {
				for range 3 {
					from, short, err := yuan.Take(t.Context(), owner, size)
					switch {
					case err != nil || short != delivery.BudgetEnough && short != delivery.BudgetMoneyShort:
						t.Error(short, err)
					case short == delivery.BudgetEnough && !from.Hour.Equal(from.Hour.Truncate(time.Hour)):
						t.Errorf("charged in the hour %v", from.Hour)
					case short == delivery.BudgetEnough:
						of[i].Add(1)
					}
				}
			})
		}
	}
	all.Wait()
	if n := of[0].Load() + of[1].Load(); n != 10 {
		t.Fatalf("%d messages for a budget of ten", n)
	}
	for _, b := range []deliverydb.SMSBudget{dollars, dollars} {
		from, _, err := b.Take(t.Context(), delivery.BudgetOwner{Campaign: campaign}, delivery.BudgetSize{Parts: 3, Micros: 30_000})
		w.Must(err)
		w.Must(b.GiveBack(t.Context(), from, delivery.BudgetSize{Parts: 2, Micros: 20_000}))
	}
	for i, table := range []string{"sms_drop_costs where template_id", "sms_campaign_costs where campaign_id"} {
		id := []int64{drop, campaign}[i]
		if n := w.Number(`select coalesce(sum(micros), 0) from `+table+` = $1 and currency = 'CNY'`, id); n != of[i].Load()*size.Micros {
			t.Errorf("%s: %d micros for %d messages", table, n, of[i].Load())
		}
	}
	if n := w.Number(`select sum(micros) from sms_campaign_costs where campaign_id = $1 and currency = 'USD' and parts = 2`, campaign); n != 20_000 {
		t.Errorf("the other currency: %d micros", n)
	}
	if n := w.Number(`select (select sum(micros) from sms_drop_costs) + (select sum(micros) from sms_campaign_costs) - (select sum(micros) from sms_spent)`); n != 0 {
		t.Errorf("owners and day differ by %d micros", n)
	}
}
