package coupon_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"dropbell/domain/coupon"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func at(s string) time.Time {
	t, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		panic(err)
	}
	return t
}

func TestNoticesOfACoupon(t *testing.T) {
	for _, c := range []struct {
		name            string
		issued, expires string // UTC
		days            template.NoticeDays
		zone            string
		quiet           user.QuietHours
		want            string // day, days, due in UTC
	}{
		{"three and one day before", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(1, 3), "UTC", user.QuietHours{},
			"11-07 3 11-07 10:00, 11-09 1 11-09 10:00"},
		{"the last day", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(0), "UTC", user.QuietHours{}, "11-10 0 11-10 10:00"},
		{"the last day ends before ten", "2026-11-01 00:00", "2026-11-10 09:00", template.NoticeDaysOf(0, 1), "UTC", user.QuietHours{}, "11-09 1 11-09 10:00"},
		{"midnight ends the day before", "2026-11-01 00:00", "2026-11-10 00:00", template.NoticeDaysOf(0), "UTC", user.QuietHours{}, "11-09 0 11-09 10:00"},
		{"in the reader's zone", "2026-11-01 00:00", "2026-11-09 17:00", template.NoticeDaysOf(1), "Asia/Shanghai", user.QuietHours{}, "11-09 1 11-09 02:00"},
		{"issued too late", "2026-11-09 11:00", "2026-11-10 15:00", template.NoticeDaysOf(1, 0), "UTC", user.QuietHours{}, "11-10 0 11-10 10:00"},
		{"quiet hours end later", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(1), "UTC", user.QuietHours{From: 22 * 60, To: 11*60 + 30}, "11-09 1 11-09 11:30"},
		{"quiet hours around noon", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(1), "UTC", user.QuietHours{From: 9 * 60, To: 14 * 60}, "11-09 1 11-09 14:00"},
		{"quiet until the next morning", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(1), "UTC", user.QuietHours{From: 9 * 60, To: 8 * 60}, "11-09 1 11-10 08:00"},
		{"quiet beyond the expiry", "2026-11-01 00:00", "2026-11-10 12:00", template.NoticeDaysOf(0), "UTC", user.QuietHours{From: 9 * 60, To: 13 * 60}, ""},
		{"clocks are put forward", "2026-03-01 00:00", "2026-03-29 20:00", template.NoticeDaysOf(0, 1), "Europe/Berlin", user.QuietHours{}, "03-28 1 03-28 09:00, 03-29 0 03-29 08:00"},
		{"quiet until an hour that does not exist", "2027-03-01 00:00", "2027-03-15 00:00", template.NoticeDaysOf(1), "America/New_York", user.QuietHours{From: 9 * 60, To: 2*60 + 30},
			"03-13 1 03-14 07:00"},
		{"an unknown zone is UTC", "2026-11-01 00:00", "2026-11-10 15:00", template.NoticeDaysOf(1), "Mars/Base", user.QuietHours{}, "11-09 1 11-09 10:00"},
		{"none", "2026-11-01 00:00", "2026-11-10 15:00", 0, "UTC", user.QuietHours{}, ""},
	} {
		f := coupon.Fresh{ID: 1, TemplateID: 2, UserID: 3, IssuedAt: at(c.issued), ExpiresAt: at(c.expires), Days: c.days, Timezone: c.zone, Quiet: c.quiet}
		got := ""
		for i, n := range f.Notices() {
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s %d %s", n.Day.Format("01-02"), n.Days, n.DueAt.Format("01-02 15:04"))
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNoticesProperties: in every zone and with all quiet hours a notice comes while
// the coupon is valid, not in quiet hours, and once per user, template, day.
func TestNoticesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fresh []coupon.Fresh
		for range rapid.IntRange(1, 5).Draw(t, "coupons") {
			issued := at("2026-03-20 00:00").Add(time.Duration(rapid.IntRange(0, 30*24*60).Draw(t, "issued")) * time.Minute)
			fresh = append(fresh, coupon.Fresh{TemplateID: int64(rapid.IntRange(1, 2).Draw(t, "template")), UserID: 7, IssuedAt: issued,
				ExpiresAt: issued.Add(time.Duration(rapid.IntRange(1, 40*24*60).Draw(t, "valid")) * time.Minute),
				Days:      template.NoticeDays(rapid.Uint32Range(0, 1<<31-1).Draw(t, "days")),
				Timezone:  rapid.SampledFrom([]string{"UTC", "Asia/Shanghai", "America/New_York", "Pacific/Apia", "Europe/Berlin"}).Draw(t, "zone"),
				Quiet:     user.QuietHours{From: rapid.IntRange(0, 1439).Draw(t, "from"), To: rapid.IntRange(0, 1439).Draw(t, "to")}})
		}
		for _, f := range fresh {
			zone := user.User{Timezone: f.Timezone}.Zone()
			for _, n := range f.Notices() {
				if n.DueAt.Before(f.IssuedAt) || !n.DueAt.Before(f.ExpiresAt) || f.Quiet.Contains(n.DueAt, zone) || f.Days&(1<<n.Days) == 0 {
					t.Fatalf("%+v of %+v", n, f)
				}
			}
		}
		seen := map[string]bool{}
		for _, n := range coupon.Plan(fresh) {
			key := fmt.Sprint(n.UserID, n.TemplateID, n.Day)
			if seen[key] {
				t.Fatalf("twice: %+v", n)
			}
			seen[key] = true
		}
	})
}
