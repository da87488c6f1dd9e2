package campaign_test

import (
	"fmt"
	"testing"
	"time"

	"dropbell/domain/campaign"
)

// TestDaysOfTwoDatabases: entries of a day are in the order of time, and what has no room is counted.
func TestDaysOfTwoDatabases(t *testing.T) {
	at := func(hours ...int) (list []campaign.Planned) {
		for _, h := range hours {
			list = append(list, campaign.Planned{At: time.Date(2027, 1, 1, h, 0, 0, 0, time.UTC)})
		}
		return list
	}
	days := campaign.JoinDays([]campaign.CalendarDay{{List: at(1, 4), More: 2}, {}}, []campaign.CalendarDay{{List: at(2, 3), More: 1, Many: true}, {List: at(9)}}, 3)
	got := ""
	for _, d := range days {
		for _, p := range d.List {
			got += fmt.Sprint(p.At.Hour(), " ")
		}
		got += fmt.Sprint(d.More, d.Many, "; ")
	}
	if got != "1 2 3 4 true; 9 0 false; " {
		t.Error(got)
	}
}
