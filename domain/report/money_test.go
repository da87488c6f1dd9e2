package report_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/money"
	"dropbell/domain/report"
	"dropbell/domain/staff"
)

func TestSums(t *testing.T) {
	s := report.Sums{Currency: "CNY", Paid: 4, PaidAmount: 24_462, PaidDiscount: 8000, Refunds: 1, RefundedAmount: 6231, RefundedDiscount: 2000}
	if s.Orders() != 3 || s.Ordered() != 18_231 || s.Discount() != 6000 || s.Revenue() != 12_231 || s.Refunded() != 4231 || s.Basket() != 6077 || s.Average() != 4077 {
		t.Errorf("%+v", s)
	}
	if n, ok := s.Return(); n != 2038 || !ok || s.DiscountShare() != 329 {
		t.Errorf("return %d %v, share %d", n, ok, s.DiscountShare())
	}
	var none report.Sums
	if _, ok := none.Return(); ok || none.Basket() != 0 || none.DiscountShare() != 0 || (report.Money{Sums: s}).PerReminder() != 0 {
		t.Error("figures of no orders")
	}
}

func TestCostOfTextMessages(t *testing.T) {
	for _, c := range []struct {
		micros   int64
		currency string
		want     money.Amount
	}{{0, "CNY", 0}, {45_000, "CNY", 5}, {1_350_000, "CNY", 135}, {1_000_001, "JPY", 2}, {1_500, "KWD", 2}} {
		if got := (delivery.SMSCost{Micros: c.micros, Currency: c.currency}).Amount(); got != c.want {
			t.Errorf("%d micros are %d %s, want %d", c.micros, got, c.currency, c.want)
		}
	}
}

// fakeHours are the orders of all shops.
type fakeHours struct {
	report.MoneyStore
	list     []report.Hour
	from, to time.Time
}

// ShopsSMS has a part for each second of the time asked for, at a cost that tells its end.
func (f *fakeHours) ShopsSMS(_ context.Context, _ []int64, from, to time.Time) (delivery.SMSCosts, error) {
	return delivery.SMSCosts{{Currency: "CNY", Parts: to.Unix() - from.Unix(), Micros: to.Unix()}}, nil
}

func (f *fakeHours) Shops(_ context.Context, _ []int64, from, to time.Time) ([]report.Hour, error) {
	f.from, f.to = from, to
	return f.list, nil
}

// In a zone the last day is today, which has begun at midnight there, and hours count in the day of the zone.
func TestEarnedByDaysOfAZone(t *testing.T) {
	zone := time.FixedZone("Beijing", 8*3600)
	now := time.Date(2026, 11, 30, 17, 8, 0, 0, time.UTC) // 1 December there
	at := func(day, hour int, paid money.Amount) report.Hour {
		return report.Hour{From: time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC), Sums: report.Sums{Currency: "CNY", Paid: 1, PaidAmount: paid}}
	}
	f := &fakeHours{list: []report.Hour{at(28, 15, 1), at(28, 16, 2), at(29, 15, 4), at(29, 16, 8), at(30, 15, 16), at(30, 16, 32), at(30, 17, 64)}}
	s := &report.Service{Money: f, Now: func() time.Time { return now }}
	o, err := s.Earned(t.Context(), staff.System(), 0, 2, zone)
	if err != nil {
		t.Fatal(err)
	}
	if today, before := o.Daily("CNY"); !slices.Equal(today, []money.Amount{24, 96}) || !slices.Equal(before, []money.Amount{1, 6}) {
		t.Errorf("by day: %v and %v", today, before)
	}
	if want := time.Date(2026, 11, 30, 0, 0, 0, 0, zone); !o.From.Equal(want) || !f.from.Equal(want.AddDate(0, 0, -2)) || !f.to.Equal(now.Truncate(time.Hour).Add(time.Hour)) {
		t.Errorf("from %v, read from %v to %v", o.From, f.from, f.to)
	}
}

// Currencies are never added, and the days before are as many as the last days.
func TestEarned(t *testing.T) {
	now := time.Date(2026, 11, 11, 12, 30, 0, 0, time.UTC)
	at := func(age time.Duration, currency string, paid int64) report.Hour {
		return report.Hour{From: now.Truncate(time.Hour).Add(-age), Sums: report.Sums{Currency: currency, Paid: paid}}
	}
	f := &fakeHours{list: []report.Hour{at(59*24*time.Hour, "CNY", 1), at(30*24*time.Hour, "JPY", 2), at(29*24*time.Hour, "CNY", 4), at(time.Hour, "JPY", 8), at(0, "CNY", 16)}}
	s := &report.Service{Money: f, Now: func() time.Time { return now }}
	o, err := s.Earned(t.Context(), staff.System(), 0, 30, nil)
	if err != nil {
		t.Fatal(err)
	}
	sms := func(to time.Time) delivery.SMSCosts {
		return delivery.SMSCosts{{Currency: "CNY", Parts: 30 * 24 * 3600, Micros: to.Unix()}}
	}
	end := now.Truncate(time.Hour).Add(time.Hour)
	want := report.Overview{Days: 30, From: end.AddDate(0, 0, -30), SMS: sms(end), SMSBefore: sms(end.AddDate(0, 0, -30)), Now: []report.Sums{{Currency: "CNY", Paid: 20}, {Currency: "JPY", Paid: 8}},
		Before: []report.Sums{{Currency: "CNY", Paid: 1}, {Currency: "JPY", Paid: 2}}, Hours: f.list[2:], HoursBefore: f.list[:2]}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The days are of 24 hours, the last one ends with the present hour.
	o = report.Overview{Days: 2, From: end.Add(-48 * time.Hour)}
	revenue := func(h report.Hour, n money.Amount) report.Hour { h.PaidAmount = n; return h }
	o.Hours = []report.Hour{revenue(at(47*time.Hour, "CNY", 1), 1), revenue(at(24*time.Hour, "CNY", 1), 2), revenue(at(23*time.Hour, "CNY", 1), 4), revenue(at(0, "CNY", 1), 8), revenue(at(0, "JPY", 1), 16)}
	o.HoursBefore = []report.Hour{revenue(at(95*time.Hour, "CNY", 1), 32), revenue(at(48*time.Hour, "CNY", 1), 64)}
	if now, before := o.Daily("CNY"); !slices.Equal(now, []money.Amount{3, 12}) || !slices.Equal(before, []money.Amount{32, 64}) {
		t.Errorf("by day: %v and %v", now, before)
	}
	if f.to.Sub(f.from) != 60*24*time.Hour || !f.to.Equal(end) {
		t.Errorf("from %s to %s", f.from, f.to)
	}
}
