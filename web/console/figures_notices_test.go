package console_test

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

// plannedNotices counts the notices that coupons call for on day $1: one for each user and drop, on
// the drop's notice days before the expiry, in the shop's zone.
const plannedNotices = `(select count(distinct (c.user_id, c.template_id)) from coupons c join templates t on t.id = c.template_id
	join shops s on s.number = t.shop_number, generate_series(1, 30) k
	where t.notify_days & (1 << k) <> 0 and (c.expires_at at time zone s.timezone)::date - k = $1::date)`

// noticeSQL counts a figure of a day of the calendar. A notice that became unnecessary has no row
// any more.
var noticeSQL = map[string]string{
	"planned": `select ` + plannedNotices,
	"sent":    `select count(*) from notices where day = $1::date and status = 1`,
	"failed":  `select count(*) from notices where day = $1::date and status = 2`,
	"waiting": `select count(*) from notices where day = $1::date and status = 0`,
	"dropped": `select ` + plannedNotices + ` - (select count(*) from notices where day = $1::date)`,
}

// Every number of the calendar of notices, in the month and in the table, equals the count of
// coupons and notices: before they are sent, with coupons that were used before their day, and
// after sending, with one mailbox refusing its mail.
func TestTheCalendarOfNoticesIsWhatTheRowsSay(t *testing.T) {
	g := consoletest.New(t)
	one, two := g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour)
	days := template.ParseNoticeDays("1, 3")
	g.Exec(`update templates set notify_days = $1, notify_channels = 2`, int(days))
	g.Exec(`insert into users (id, email) select i, 'p' || i || '@example.com' from generate_series(1001, 1020) i`)
	for id := int64(1001); id <= 1012; id++ {
		g.Gives(one, id)
		if id%2 == 0 {
			g.Gives(two, id)
			g.Gives(two, id) // a second coupon of one user
		}
	}
	zone, now := consoletest.Berlin(t), g.Now()
	noon := time.Date(now.In(zone).Year(), now.In(zone).Month(), now.In(zone).Day(), 12, 0, 0, 0, zone).AddDate(0, 0, 5) // the first notice is due the day after tomorrow, also if today ends meanwhile
	g.Exec(`update coupons set expires_at = $1, issued_at = now() - interval '30 days'`, noon)
	g.Notices()
	date := func(before int) time.Time {
		return time.Date(noon.Year(), noon.Month(), noon.Day()-before, 0, 0, 0, 0, time.UTC)
	}
	b, seen := g.As(staff.Viewer), map[string]int{}
	check := func() {
		t.Helper()
		found := 0
		for _, month := range []string{date(3).Format("2006-01"), date(1).Format("2006-01")} { // one, but at the end of a month
			for _, m := range figure.FindAllStringSubmatch(b.Get("/notices?month="+month).Is(200).Body, -1) {
				parts := strings.Split(m[1], ":")
				number, _, _ := strings.Cut(strings.TrimSpace(html.UnescapeString(m[2])), " ") // "12 notices"
				got, err := strconv.ParseInt(strings.ReplaceAll(number, ",", ""), 10, 64)
				if want := g.Number(noticeSQL[parts[2]], parts[1]); err != nil || got != want {
					t.Errorf("%s is %q, the rows say %d", m[1], m[2], want)
				}
				found++
				seen[fmt.Sprint(parts[2], got > 0)]++
			}
		}
		if found < 10 {
			t.Errorf("the calendar shows %d figures", found)
		}
	}
	check()
	g.Exec(`update coupons set state = 'used' where user_id in (1002, 1003) and template_id = $1`, one.ID) // before their notice
	refuse := func(m delivery.Message) delivery.Result {
		if m.To.ID == user.ID(1004) {
			return delivery.Result{Status: delivery.Permanent, Detail: "550 no such mailbox"}
		}
		return delivery.Result{Status: delivery.Delivered}
	}
	g.SendNotices(one, date(3), refuse)
	check()
	g.SendNotices(two, date(3), refuse)
	g.SendNotices(two, date(1), refuse)
	check()
	for _, name := range []string{"planned", "sent", "failed", "waiting", "dropped"} {
		if seen[name+"true"] == 0 {
			t.Errorf("the calendar never shows any %s", name)
		}
	}
}
