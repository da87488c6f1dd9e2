package delivery_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestDeliveryPages(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Get("/deliveries").Is(200).Has("Nothing was sent yet")
	d := g.Published(10, 2*time.Hour)
	g.Fired(d, 2*shell.PageSize+3, 30)
	b.Get("/deliveries").Is(200).Has("Reminder 5 min before", "Moon cake night", "53 batches", "1,431 of 1,590 sent, 159 skipped", "/deliveries.csv").HasNot("Next page")
	seen, next := 0, "/deliveries?channel=app&slot=1&kind=reminder&state=done&outcome=skipped"
	for next != "" {
		a := b.Get(next).Is(200)
		seen, next = seen+strings.Count(a.Body, ">Batch #"), consoletest.NextPage(a)
	}
	if seen != 2*shell.PageSize+3 {
		t.Errorf("%d batches on all pages", seen)
	}
	b.Get("/deliveries?outcome=dead").Is(200).Has("No matches")
	b.Get("/deliveries?user=40").Is(200).Has("Customer 40", "Skipped", `/deliveries/65"`).HasNot(`/deliveries/1"`)
	b.Get("/deliveries?user=40&outcome=sent").Is(200).Has("No matches")
	b.Get("/deliveries?user=ada&template=0&from=soon").Is(200).Has("The filter cannot be read", "nothing has this name", "must be a date and time such as 2026-11-20 20:00", `value="ada"`)
	for _, odd := range []string{"slot=99", "channel=x", "state=x", "outcome=x", "kind=x", "outcome=sent&state=x"} {
		b.Get("/deliveries?"+odd).Is(200).Has("The filter cannot be read", "choose one", `aria-invalid="true"`).HasNot("1,431 of 1,590", "/deliveries.csv")
		b.Get("/deliveries.csv?" + odd).Is(http.StatusUnprocessableEntity)
	}
	b.Get("/deliveries?slot=&channel=&state=&outcome=&kind=&after=x").Is(200).Has("1,431 of 1,590 sent")
	b.Get("/deliveries/65?outcome=x").Is(200).Has("The filter cannot be read", "choose one").HasNot("Customer 40")
	b.Get("/deliveries/65/recipients.csv?outcome=x").Is(http.StatusUnprocessableEntity)
	b.Get("/deliveries?user=%EF%BC%94%EF%BC%90").Is(200).Has(`/deliveries/65"`).HasNot(`/deliveries/1"`)
	// The rig's console shows Shanghai's time, where the slot is due at this hour.
	due := d.OpensAt.Add(-5 * time.Minute)
	shanghai := due.In(g.DefaultZone).Format("2006-01-02T15:04")
	b.Get("/deliveries?from=" + shanghai).Is(200).Has("1,431 of 1,590")
	b.Get("/deliveries?to=" + shanghai).Is(200).Has("No matches")
	g.As(staff.Viewer).Htmx().Get("/deliveries?user=40").Is(200).Has("Skipped").HasNot("<html")

	b.Get("/deliveries/65").Is(200).Has("Batch #65", "27 of 30 sent", "31 – 60", fmt.Sprintf("/templates/%d/users/31", d.ID), "Next page")
	b.Get("/deliveries/65?outcome=skipped").Is(200).Has("Customer 40", "Customer 50", "Customer 60", "opted out").HasNot("Customer 41", "Next page")
	b.Get("/deliveries/65?user=40").Is(200).Has("Customer 40").HasNot("Customer 50")
	b.Get("/deliveries/65?user=7").Is(200).Has("No recipient matches")
	b.Get("/deliveries/65?user=x").Is(200).Has("nothing has this name")
	last := consoletest.NextPage(b.Get("/deliveries/65"))
	b.Get(last).Is(200).Has("Customer 60", "First page").HasNot("Customer 31", "Next page")
	for _, path := range []string{"/deliveries/99", "/deliveries/0", "/deliveries/x", "/deliveries/99/recipients.csv"} {
		b.Get(path).Is(http.StatusNotFound)
	}
	limited := g.As(staff.Admin, 11)
	limited.Get("/deliveries").Is(200).Has("Nothing was sent yet")
	limited.Get("/deliveries/65").Is(http.StatusForbidden)
	limited.Get("/deliveries/65/recipients.csv").Is(http.StatusForbidden)
	if rows := consoletest.RowsOf(limited.Get("/deliveries.csv").Is(200)); len(rows) != 1 {
		t.Errorf("%d rows of another shop", len(rows)-1)
	}

	rows := consoletest.RowsOf(b.Get("/deliveries/65/recipients.csv?outcome=skipped").Is(200))
	if len(rows) != 4 || rows[1][0] != "40" || rows[1][1] != string(delivery.Skipped) || rows[1][2] != delivery.ReasonOptedOut {
		t.Errorf("%q", rows)
	}
	rows = consoletest.RowsOf(b.Get("/deliveries.csv?outcome=skipped&user=40").Is(200))
	if len(rows) != 2 || rows[1][0] != "65" || rows[1][slices.Index(rows[0], "user_outcome")] != "skipped" || rows[1][6] != "5" {
		t.Errorf("%q", rows)
	}
	b.Get("/deliveries.csv?user=ada").Is(http.StatusUnprocessableEntity)
}

// Files have every row of all pages, and only rows that the viewer may see.
func TestExports(t *testing.T) {
	g := consoletest.New(t)
	const many = shell.ExportPage + 7
	d := g.Published(10, 2*time.Hour)
	g.Shop(11)
	g.Exec(`insert into templates (shop_number, name, kind, currency, target, stock, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
		select 10 + n % 2, '=Drop ' || n, 'amount_off', 'CNY', 'shop', 1, 1, date_trunc('second', now()) + (n / 3) * interval '1 minute', now() + interval '1 day', 1, 'claim', 'durable', 'draft'
		from generate_series(1, $1) n`, 2*many)
	g.Exec(`insert into users (id, name, email, opt_outs) select n, '@user ' || n, 'user' || n || '@example.com', 5 from generate_series(1, $1) n`, many)
	g.Exec(`insert into audit (actor, action, object_kind, object_id, shop_number, reason) select 'staff:9 Zoë', 'template.move', 'template', n, 10 + n % 2, 'because of rain ' || n from generate_series(1, $1) n`, 2*many)
	g.Fired(d, 1, 1000)
	g.Exec(`update exceptions set outcome = 'dead', detail = '-2+3' `)
	b, limited := g.As(staff.Marketer), g.As(staff.Viewer, 11)
	count := func(b *consoletest.Browser, path string, want int) [][]string {
		t.Helper()
		rows := consoletest.RowsOf(b.Get(path).Is(200))
		if len(rows)-1 != want {
			t.Errorf("%s: %d rows, want %d", path, len(rows)-1, want)
		}
		return rows
	}
	rows := count(b, "/templates.csv", 2*many+1)
	if !strings.HasPrefix(rows[1][3], "'=Drop") {
		t.Errorf("a formula: %q", rows[1])
	}
	count(b, "/templates.csv?state=draft&shop=10&sort=latest&after=1_1", many)
	count(limited, "/templates.csv", many)
	rows = count(b, "/users.csv?q=%40user", many)
	if rows[1][1] != "'@user 1" || rows[1][6] != "' app sms" && rows[1][6] != " app sms" {
		t.Errorf("%q", rows[1])
	}
	if n := len(consoletest.RowsOf(b.Get("/audit.csv?action=user.export").Is(200))); n != 2 {
		t.Errorf("%d records of one export of contacts", n-1)
	}
	b.Get("/users.csv").To("/users")
	limited.Get("/users.csv?q=a").Is(http.StatusForbidden)
	limited.Get("/users?q=%40user").Is(200).HasNot("/users.csv")
	b.Get("/users?q=%40user").Is(200).Has("/users.csv?q=%40user")
	count(b, "/audit.csv?action=template.move", 2*many)
	count(b, "/audit.csv?q=RAIN+101", 6) // 101, and 1010 to 1014
	count(limited, "/audit.csv?action=template.move", many)
	rows = count(b, "/dead-letters.csv?channel=app", 100)
	if rows[1][6] != "'-2+3" {
		t.Errorf("%q", rows[1])
	}
	count(limited, "/dead-letters.csv", 0)
	count(b, "/dead-letters.csv?user=20", 1)
	b.Get("/dead-letters.csv?user=x").Is(http.StatusUnprocessableEntity)
}
