package delivery_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/feedback"
)

// Many workers never spend more than the day's budget, and all of it.
func TestTheBudgetIsShared(t *testing.T) {
	w := newFixture(t)
	b := deliverydb.NewSMSBudget(w.DB, 100)
	if s, err := b.Spent(t.Context()); err != nil || s.Parts != 0 || s.RefusedAt != nil {
		t.Fatalf("at first: %+v, %v", s, err)
	}
	var granted atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				_, ok, err := b.Take(t.Context(), 2)
				if err != nil {
					t.Error(err)
				}
				if ok {
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
	w.Must(b.GiveBack(t.Context(), day.AddDate(0, 0, 1), 3))
	w.Must(b.GiveBack(t.Context(), day, 20)) // of a call that began before midnight
	var before int
	if err := w.SQL.QueryRow(t.Context(), `select parts from sms_spent where day = $1`, day).Scan(&before); err != nil || before != 30 {
		t.Errorf("%d parts are spent on the day before, %v", before, err)
	}
	for parts, want := range map[int64]bool{4: false, 200: false} {
		if _, ok, err := b.Take(t.Context(), parts); err != nil || ok != want {
			t.Errorf("%d parts of 3 that are left: %v, %v", parts, ok, err)
		}
	}
	if at, ok, err := b.Take(t.Context(), 3); err != nil || !ok || !at.Equal(day.AddDate(0, 0, 1)) {
		t.Errorf("the rest: %v, %v", ok, err)
	}
	if _, ok, err := deliverydb.NewSMSBudget(w.DB, 1).Take(t.Context(), 5); err != nil || ok {
		t.Errorf("more than the whole budget: %v, %v", ok, err)
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
