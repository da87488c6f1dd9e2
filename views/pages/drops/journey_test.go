package drops

import "testing"

// Bars of coupons are scaled to the stock of their own drop, like the share next to the bar. Bars
// of reminders of both drops have one scale.
func TestScalesOfAJourney(t *testing.T) {
	now, before := Journey{Booked: 100, Sent: 90, Stock: 300, Claimed: 100, Used: 10}, Journey{Booked: 400, Sent: 390, Stock: 50, Claimed: 50}
	for figure, want := range map[string][2]int64{"reminders:booked": {400, 400}, "reminders:sent": {400, 400}, "links:opened": {400, 400}, "coupons:issued": {300, 50}, "tally:used": {300, 50}} {
		if n, then := now.scales(figure, &before); n != want[0] || then != want[1] {
			t.Errorf("%s: %d and %d, want %v", figure, n, then, want)
		}
	}
	if n, then := (Journey{}).scales("tally:used", nil); n != 1 || then != 1 {
		t.Errorf("without stock: %d and %d", n, then)
	}
}
