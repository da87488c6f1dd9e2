package audience_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// Suppressed addresses are listed for staff, masked for staff who see contacts masked. Staff of all
// shops who manage users add, release and download them.
func TestSuppressions(t *testing.T) {
	g := consoletest.New(t)
	whole, viewer, limited := g.As(staff.Marketer), g.As(staff.Viewer), g.As(staff.Marketer, 10)
	whole.Get("/suppressions").Is(200).Has("No address is suppressed", "no mail is sent to", `href="/suppressions/new"`).HasNot("/suppressions.csv")
	g.Exec(`insert into users (id, name, email) values (7, 'Ann', 'Mia@example.com'), (8, 'Bob', 'bob@example.com')`)
	g.Exec(`insert into suppressions (address, reason, provider, cause, since, released_at) values
		('mia@example.com', 'bounced', 'ses', '550 <mia@example.com> unknown <b>', now() + interval '1 day', null), ('bob@example.com', 'bounced', 'ses', '', now(), now())`)
	g.Exec(`insert into suppressions (address, reason) select 'u' || n || '@shop.example', 'complained' from generate_series(10, 39) n`)

	whole.Get("/users").Is(200).Has(`href="/suppressions"`)
	first := whole.Get("/suppressions").Is(200).Has("mia@example.com", "Amazon SES: 550", "unknown &lt;b&gt;", "Bounced", "Marked as spam", `href="/suppressions.csv"`,
		"/suppressions/release?address=mia%40example.com").HasNot("bob@example.com")
	second := whole.Get(nextPage(t, first)).Is(200).Has("First page", "@shop.example").HasNot("mia@", "Next page")
	if n := strings.Count(first.Body, `href="/suppressions/release?`) + strings.Count(second.Body, `href="/suppressions/release?`); n != 31 {
		t.Errorf("%d addresses on two pages", n)
	}
	whole.Get("/suppressions?reason=bounced").Is(200).Has("mia@example.com").HasNot("@shop.example")
	whole.Get("/suppressions?reason=staff").Is(200).Has("No such address is suppressed")
	whole.Get("/suppressions?q=+MIA%40example.com+").Is(200).Has("mia@example.com", "/suppressions.csv?q=").HasNot("@shop.example")
	whole.Get("/suppressions?q=mia%40example.com&reason=complained").Is(200).Has("No such address is suppressed")
	for _, odd := range []string{"q=mia", "q=%25", "q=" + strings.Repeat("x", 9000), "q=bob%40example.com"} {
		whole.Get("/suppressions?" + odd).Is(200).Has("No such address is suppressed")
	}
	whole.Get("/suppressions?reason=nonsense").Is(200).Has("The filter cannot be read")
	for _, after := range []string{"x", "-1.1", "9223372036854775807.9223372036854775807", "1.x", "1"} {
		whole.Get("/suppressions?after=" + after).Is(200)
	}

	// The user's page leads to the address.
	whole.Get("/users/7").Is(200).Has("Suppressed: Bounced", `href="/suppressions?q=mia%40example.com"`)
	whole.Get("/users/8").Is(200).HasNot("Suppressed:")

	for name, b := range map[string]*consoletest.Browser{"viewer": viewer, "limited": limited} {
		t.Run(name, func(t *testing.T) {
			b.Get("/suppressions").Is(200).Has("m…@e…", "Addresses are masked").HasNot("mia@", "@shop.example", "/release", "/suppressions/new", ".csv")
			b.Get(nextPage(t, b.Get("/suppressions"))).Is(200).Has("u…@s…").HasNot("@shop.example")
			b.Get("/suppressions?q=mia%40example").Is(200).Has("No such address is suppressed")
			b.Get("/suppressions?q=mia%40example.com").Is(200).Has("m…@e…")
			b.Get("/users/7").Is(200).Has("Suppressed: Bounced", `href="/suppressions"`).HasNot("mia%40", "mia@")
			for _, path := range []string{"/suppressions.csv", "/suppressions/new", "/suppressions/release?address=mia%40example.com"} {
				b.Get(path).Is(http.StatusForbidden)
			}
			b.Post("/suppressions/new", url.Values{"address": {"eve@example.com"}}).Is(http.StatusForbidden)
			b.Post("/suppressions/release", url.Values{"address": {"mia@example.com"}}).Is(http.StatusForbidden)
		})
	}

	if rows := whole.File("/suppressions.csv", 31); rows[0][1] != "reason" || rows[1][0] != "mia@example.com" || rows[1][2] != "ses" {
		t.Errorf("%q", rows[:2])
	}
	whole.File("/suppressions.csv?reason=complained", 30)
	whole.File("/suppressions.csv?q=Mia%40example.com", 1)
	whole.File("/suppressions.csv?q=nobody%40example.com", 0)
	whole.Get("/suppressions.csv?reason=nonsense").Is(http.StatusUnprocessableEntity)
	if n := g.Number(`select count(*) from audit where action = 'suppression.export'`); n != 4 {
		t.Errorf("%d downloads are recorded", n)
	}

	whole.Get("/suppressions/new").Is(200).Has(`name="address"`, `name="cause"`)
	whole.Post("/suppressions/new", url.Values{"address": {"eve@"}, "cause": {"asked by phone"}}).Is(422).Has(`value="eve@"`, `value="asked by phone"`, "must be an e-mail address")
	whole.Post("/suppressions/new", url.Values{"address": {"eve@example.com"}, "cause": {strings.Repeat("月", 201)}}).Is(422).Has(`value="eve@example.com"`, "must have at most 200 characters")
	form := url.Values{"address": {" Eve@Example.com "}, "cause": {"asked by phone"}}
	whole.Post("/suppressions/new", form).To("/suppressions")
	whole.Get("/suppressions?q=eve%40example.com").Is(200).Has("The address is suppressed.", "asked by phone", "By staff")
	whole.Post("/suppressions/new", form).To("/suppressions")
	whole.Get("/suppressions").Is(200).Has("was suppressed already")

	whole.Get("/suppressions/release?address=mia%40example.com").Is(200).Has("Release mia@example.com?", "Mails are sent to this address again.", `value="mia@example.com"`)
	whole.Post("/suppressions/release", url.Values{"address": {"mia@example.com"}}).To("/suppressions")
	whole.Get("/suppressions").Is(200).Has("The address is released.").HasNot("mia@")
	whole.Post("/suppressions/release", url.Values{"address": {"mia@example.com"}}).To("/suppressions")
	whole.Get("/suppressions").Is(200).Has("This address is not suppressed.")
	whole.Get("/suppressions/release?address=mia%40example.com").To("/suppressions")
	whole.Post("/suppressions/release", url.Values{"address": {"x"}}).Is(http.StatusUnprocessableEntity)
	whole.Get("/users/7").Is(200).HasNot("Suppressed:")
	if n := g.Number(`select count(*) from audit where object_kind = 'suppression' and action in ('suppression.add', 'suppression.release') and actor like 'staff:%'`); n != 2 {
		t.Errorf("%d changes are recorded", n)
	}
	whole.Get("/audit").Is(200).Has("eve@example.com", "mail address")
	viewer.Get("/audit").Is(200).HasNot("eve@", "mia@")
}

// nextPage returns the address of the next page of a list.
func nextPage(t *testing.T, a consoletest.Answer) string {
	t.Helper()
	_, rest, found := strings.Cut(a.Body, `href="/suppressions?after=`)
	after, _, ended := strings.Cut(rest, `"`)
	if !found || !ended {
		t.Fatalf("%s: no next page", a.What)
	}
	return "/suppressions?after=" + after
}
