package drops

import "testing"

// Bars of coupons are scaled to the stock of their own drop, like the share next to the bar. Bars
// of reminders of both drops have one scale.
func TestScalesOfAJourney(t *testing.T) {
	now, before := Journey{Booked: 100, Sent: 90, Stock: 300, Claimed: 100, Used: 10}, Journey{Booked: 400, Sent: 390, Stock: 50, Claimed: 50}
	for i, want := range [][2]int64{{400, 400}, {400, 400}, {400, 400}, {300, 50}, {300, 50}} {
		if n, then := now.scales(i, &before); n != want[0] || then != want[1] {
			t.Errorf("step %d: %d and %d, want %v", i, n, then, want)
		}
	}
	if n, then := (Journey{}).scales(3, nil); n != 1 || then != 1 {
		t.Errorf("without stock: %d and %d", n, then)
	}
}
