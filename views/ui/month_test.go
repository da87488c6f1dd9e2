package ui

import (
	"testing"
	"time"

	"dropbell/views/i18n"
)

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

// A month is drawn in whole weeks, which begin as the language has it.
func TestMonthIsWholeWeeks(t *testing.T) {
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		locale   string
		month    time.Time
		from, to time.Time
	}{
		{"en", day(2026, 11, 1), day(2026, 11, 1), day(2026, 12, 6)},
		{"zh-CN", day(2026, 11, 1), day(2026, 10, 26), day(2026, 12, 7)},
		{"en", day(2026, 2, 1), day(2026, 2, 1), day(2026, 3, 1)}, // four weeks exactly
		{"zh-CN", day(2027, 2, 1), day(2027, 2, 1), day(2027, 3, 1)},
	} {
		from, to := MonthSpan(languages.Match(c.locale), c.month)
		if !from.Equal(c.from) || !to.Equal(c.to) {
			t.Errorf("%s %s: %s to %s", c.locale, c.month.Format("2006-01"), from, to)
		}
	}
	for _, l := range languages.All() {
		for month := day(2024, 1, 1); month.Year() < 2032; month = month.AddDate(0, 1, 0) {
			p := MonthProps{Month: month}
			for d := month.AddDate(0, 0, -10); d.Before(month.AddDate(0, 1, 10)); d = d.AddDate(0, 0, 1) {
				p.Days = append(p.Days, MonthDay{Date: d})
			}
			weeks := p.weeks(l)
			for _, w := range weeks {
				if len(w) != 7 || w[0].Date.Weekday() != l.FirstWeekday() {
					t.Fatalf("%s %s: a week of %d days begins on %s", l.Tag, month.Format("2006-01"), len(w), w[0].Date.Weekday())
				}
			}
			if p.outside(weeks[0][6]) || p.outside(weeks[len(weeks)-1][0]) || len(weeks) > 6 {
				t.Fatalf("%s %s: %d weeks, one without a day of the month", l.Tag, month.Format("2006-01"), len(weeks))
			}
		}
	}
}

func TestParseMonth(t *testing.T) {
	today := day(2026, 11, 20)
	for in, want := range map[string]time.Time{"2027-02": day(2027, 2, 1), "": day(2026, 11, 1), "2027-13": day(2026, 11, 1), "0001-01": day(2026, 11, 1), "2027-02-03": day(2026, 11, 1)} {
		if got := ParseMonth(in, today); !got.Equal(want) {
			t.Errorf("%q: %s", in, got)
		}
	}
}
