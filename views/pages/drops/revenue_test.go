package drops

import (
	"testing"
	"time"

	"dropbell/domain/money"
	"dropbell/domain/report"
)

// TestRevenueCharts: bars are of the shop's hours and days, times without orders have bars too, and the
// bars add up to the hours that have a place.
func TestRevenueCharts(t *testing.T) {
	zone := time.FixedZone("", 8*3600)
	at := func(hours int, paid, refunded money.Amount) report.Hour {
		return report.Hour{From: time.Date(2026, 11, 11, 12, 0, 0, 0, time.UTC).Add(time.Duration(hours) * time.Hour),
			Sums: report.Sums{Currency: "CNY", Paid: 1, PaidAmount: paid, Refunds: 1, RefundedAmount: refunded}}
	}
	if list := revenueCharts(nil, zone); list != nil {
		t.Errorf("%d charts without orders", len(list))
	}
	list := revenueCharts([]report.Hour{at(0, 900, 100), at(3, 500, 0)}, zone)
	if len(list) != 1 || list[0].key != "hours" || len(list[0].bars) != 4 || list[0].bars[0].Revenue() != 800 || list[0].bars[1].Paid != 0 || list[0].left != 0 {
		t.Errorf("one evening: %+v", list)
	}
	list = revenueCharts([]report.Hour{at(0, 900, 0), at(3, 500, 0), at(4, 100, 700), at(60, 50, 0)}, zone) // 4 hours later is midnight
	if len(list) != 2 {
		t.Fatalf("%d charts", len(list))
	}
	days, hours := list[0], list[1]
	if len(days.bars) != 4 || days.bars[0].Revenue() != 1400 || days.bars[1].Revenue() != -600 || days.bars[3].Revenue() != 50 || days.left != 0 {
		t.Errorf("days: %+v", days.bars)
	}
	if h, _, _ := days.bars[1].from.Clock(); h != 0 {
		t.Errorf("a day begins at %v", days.bars[1].from)
	}
	if len(hours.bars) != mostHours || hours.left != 61-mostHours || len(hours.withOrders()) != 3 {
		t.Errorf("%d hours, %d left: %+v", len(hours.bars), hours.left, hours.withOrders())
	}
}
