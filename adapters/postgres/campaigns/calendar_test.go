package campaigns_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/campaign"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// names lists the names of the entries on the day of the date.
func names(days []campaign.CalendarDay, date string) string {
	for _, d := range days {
		if d.Date.Format(time.DateOnly) == date {
			var list []string
			for _, p := range d.List {
				list = append(list, p.Name)
			}
			return strings.Join(list, ",")
		}
	}
	return "no such day"
}

// TestCalendarDaysAreTheShops: entries at one instant are on the day that each shop has at that
// instant, on the nights when clocks change too.
func TestCalendarDaysAreTheShops(t *testing.T) {
	s := newCampaignFixture(t)
	s.Exec(`insert into shops (number, name, timezone) values (10, 'Shanghai', 'Asia/Shanghai'), (11, 'Los Angeles', 'America/Los_Angeles')`)
	instant := func(at string) time.Time {
		i, err := time.Parse("2006-01-02 15:04Z07:00", at)
		s.Must(err)
		return i
	}
	start := func(name string, shop int64, at string) {
		c := pgtest.Row{"name": name, "starts_at": instant(at), "ends_at": instant(at).Add(time.Hour), "state": "scheduled"}
		if shop != 0 {
			c["shop_number"] = shop
		}
		s.Insert("campaigns", c)
	}
	open := func(name string, state template.State, shop int64, at string) {
		s.Drop(pgtest.Drop{Name: name, State: state, Shop: shop, OpensAt: instant(at)})
	}
	start("east", 10, "2031-11-01 07:30Z")  // 15:30 on the 1st
	start("west", 11, "2031-11-01 06:59Z")  // 23:59 on October 31st
	start("west2", 11, "2031-11-01 07:00Z") // midnight
	start("nobody", 0, "2031-11-01 23:30Z")
	// Clocks go back on November 2nd in Los Angeles: it lasts 25 hours.
	start("long night", 11, "2031-11-03 07:59Z")
	start("after it", 11, "2031-11-03 08:00Z")
	start("next month", 10, "2031-11-30 16:00Z")
	open("drop", "published", 10, "2031-11-01 07:30Z")
	open("cancelled", "cancelled", 10, "2031-11-01 07:30Z")
	open("over", "published", 10, "2021-11-01 07:30Z")
	s.Exec(`update templates set closes_at = '2099-01-01', valid_until = '2021-11-02' where name = 'over'`)
	past := campaign.CalendarQuery{From: time.Date(2021, 11, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2021, 11, 2, 0, 0, 0, 0, time.UTC), Zone: time.UTC, PerDay: 4}
	if days, err := s.service.Calendar(t.Context(), staff.System(), past); err != nil || days[0].List[0].DropState != template.Closed {
		t.Errorf("whose coupons have expired: %+v, %v", days, err)
	}
	berlin, _ := time.LoadLocation("Europe/Berlin")
	q := campaign.CalendarQuery{From: time.Date(2031, 10, 27, 0, 0, 0, 0, time.UTC), To: time.Date(2031, 12, 1, 0, 0, 0, 0, time.UTC), Zone: berlin, PerDay: 4}
	days, err := s.service.Calendar(t.Context(), staff.System(), q)
	s.Must(err)
	for date, want := range map[string]string{"2031-10-31": "west", "2031-11-01": "west2,drop,east", "2031-11-02": "nobody,long night",
		"2031-11-03": "after it", "2031-11-30": "", "2031-10-27": "", "2031-12-01": "no such day"} {
		if got := names(days, date); got != want {
			t.Errorf("%s: %q, want %q", date, got, want)
		}
	}
	for _, d := range days {
		for _, p := range d.List {
			if p.Drop && p.DropState != template.Scheduled || !p.Drop && p.State != campaign.Scheduled {
				t.Errorf("%s is %q %q", p.Name, p.DropState, p.State)
			}
		}
	}
	for _, c := range []struct {
		by    []int64
		asked []int64
		want  string
	}{{nil, []int64{10}, "drop,east"}, {[]int64{11}, nil, "west2"}, {[]int64{11}, []int64{10}, ""}, {[]int64{10, 11}, nil, "west2,drop,east"}} {
		q.Shops = c.asked
		days, err := s.service.Calendar(t.Context(), staff.Actor{Role: staff.Viewer, Shops: c.by}, q)
		if got := names(days, "2031-11-01"); err != nil || got != c.want {
			t.Errorf("limited to %v, asked for %v: %q %v, want %q", c.by, c.asked, got, err, c.want)
		}
	}
}

// A full month costs as much as it shows: of each day only as many rows are read.
func TestCalendarOfAFullMonth(t *testing.T) {
	s := newCampaignFixture(t)
	s.Shops(10, 11)
	s.Fill("campaigns", "generate_series(0, 9999) i", pgtest.Row{"name": pgtest.SQL("'c' || i"), "shop_number": pgtest.SQL("10 + i % 2"),
		"starts_at": pgtest.SQL("'2031-01-01'::timestamptz + i * interval '1 hour'"), "ends_at": pgtest.SQL("'2033-01-01'")})
	s.Fill("campaigns", "generate_series(1, 5000) i", pgtest.Row{"name": pgtest.SQL("'full' || i"), "shop_number": 10,
		"starts_at": pgtest.SQL("'2031-06-15 12:00Z'"), "ends_at": pgtest.SQL("'2033-01-01'")})
	s.Exec(`analyze campaigns`)
	q := campaign.CalendarQuery{From: time.Date(2031, 6, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2031, 7, 6, 0, 0, 0, 0, time.UTC), Zone: time.UTC, PerDay: 4}
	days, err := s.service.Calendar(t.Context(), staff.System(), q)
	s.Must(err)
	for i, d := range days {
		if d.Many != (i == 14) || i != 14 && (len(d.List) != 4 || d.More != 20) || i == 14 && d.More != 100 {
			t.Errorf("%s: %d listed, %d more, many: %v", d.Date.Format(time.DateOnly), len(d.List), d.More, d.Many)
		}
	}
	// The number of rows fetched is bounded, also of the day with five thousand.
	for _, shops := range [][]int64{nil, {10}} {
		found, err := s.campaigns.Planned(t.Context(), oneZone(q), shops, 104)
		s.Must(err)
		if len(found) > 34*24+104 || len(found) < 34*12+104 {
			t.Errorf("%d rows", len(found))
		}
	}
	if !slices.IsSortedFunc(days[14].List, func(a, b campaign.Planned) int { return a.At.Compare(b.At) }) {
		t.Error("a day is not in order")
	}
}

// oneZone are the days of the query in UTC.
func oneZone(q campaign.CalendarQuery) []campaign.Span {
	var list []campaign.Span
	for d := q.From; d.Before(q.To); d = d.AddDate(0, 0, 1) {
		list = append(list, campaign.Span{Day: len(list), Zone: "UTC", From: d, To: d.AddDate(0, 0, 1)})
	}
	return list
}
