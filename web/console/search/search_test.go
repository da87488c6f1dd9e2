package search_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/redeemcode"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// searched returns the answer of the search page to a member.
func searched(b *consoletest.Browser, text string) consoletest.Answer {
	b.Helper()
	return b.Post("/search", url.Values{"q": {text}}).Is(http.StatusOK)
}

// sameNames returns a fixture in which objects of every kind have similar names.
func sameNames(t *testing.T) (g *consoletest.Fixture, mine, theirs string, coupons [2]int64) {
	g = consoletest.New(t)
	a, b := g.Published(10, 2*time.Hour), g.Published(11, 3*time.Hour)
	g.Exec(`update templates set name = 'Moon ' || shop_number; update shops set name = 'Moon shop ' || number`)
	for _, shop := range []int64{10, 11} {
		g.Exec(`insert into campaigns (name, shop_number, channel, content, audience, starts_at, ends_at, state, creator, created_by)
			values ('Moon letter ' || $1::bigint, $1, 1, '{}', '{"kind": "everybody"}', now(), now() + interval '1 hour', 'draft', 'staff:1', 'staff:1')`, shop)
	}
	g.Exec(`insert into users (id, name, email, phone) values (1001, 'Moon Li', 'li@moon.example', '+8613800000001')`)
	coupons = [2]int64{g.Gives(a, 1001), g.Gives(b, 1001)}
	g.Locks(coupons[0], "MOON-1")
	g.Locks(coupons[1], "MOON-2")
	return g, shell.TemplateURL(a.ID), shell.TemplateURL(b.ID), coupons
}

func TestSearchFindsEveryKind(t *testing.T) {
	g, mine, theirs, coupons := sameNames(t)
	b := g.As(staff.Admin)
	searched(b, "moon").Has(mine, theirs, "Moon shop 10", "/shops/11", "Moon letter 10", "/campaigns/65", "/users/1001", "li@moon.example")
	searched(b, "MOON-2").Has(fmt.Sprintf("/coupons/%d", coupons[1]), "Order MOON-2").HasNot(fmt.Sprintf(`"/coupons/%d"`, coupons[0]))
	searched(b, fmt.Sprint(coupons[0])).Has(fmt.Sprintf(`"/coupons/%d"`, coupons[0]))
	searched(b, "#1").Has(`"/templates/1"`, `"/campaigns/1"`, `"/users/1"`, "No profile with this number")
	searched(b, "１００１").Has(`"/users/1001"`, "Moon Li")
	searched(b, "li@moo").Has(`"/users/1001"`)
	searched(b, "new drop").Has(`"/templates/new"`)
	searched(b, "zzz").Has("Nothing found for “zzz”")
	searched(b, "M").Has("at least two characters").HasNot("/users/1001")
	b.Get("/search").Is(200).Has("New drop", "Calendar", "Sign out", "/account")
	b.Get("/search?q=moon").Is(200).HasNot("Moon shop") // the searched text stays out of addresses
}

// A member finds no more than the pages would show.
func TestSearchKeepsToRights(t *testing.T) {
	g, mine, theirs, coupons := sameNames(t)
	b := g.As(staff.Marketer, 10)
	searched(b, "moon").Has(mine, "Moon shop 10", "Moon letter 10", `"/users/1001"`, "Your role sees masked contacts").
		HasNot(theirs, "Moon shop 11", "Moon letter 11", "li@moon.example", "+8613800000001")
	searched(b, "65").HasNot(`"/templates/65"`, `"/campaigns/65"`, fmt.Sprintf(`"/coupons/%d"`, coupons[1]))
	searched(b, "MOON-2").HasNot("/coupons/", "Order MOON-2")
	searched(b, "li@moo").HasNot(`"/users/1001"`)
	searched(b, "LI@moon.example").Has(`"/users/1001"`).HasNot(">li@moon.example<")
	recent := b.Post("/search", url.Values{"recent": {strings.TrimPrefix(theirs, "/") + " " + strings.TrimPrefix(mine, "/") +
		fmt.Sprintf(" coupons/%d users/1001 campaigns/2 campaigns/999 templates/-1 templates/x what/1 ", coupons[1])}}).Is(200)
	recent.Has(mine, `"/users/1001"`).HasNot(theirs, "/campaigns/2", "/coupons/1", "/coupons/2", "li@moon.example")
	b.Get("/search").Is(200).Has("New drop").HasNot("/staff", "/keys", "/shops/new")
	viewer := g.As(staff.Viewer)
	viewer.Get("/search").Is(200).HasNot("New drop", "New campaign", "/users/import", "/templates/new")
	searched(viewer, "new").HasNot("/templates/new", "/campaigns/new")
	g.Browser().Post("/search", url.Values{"q": {"moon"}}).Is(http.StatusSeeOther)
}

// A redeem code leads to its batch, and after its use to its coupon, for staff of its shop.
func TestSearchFindsCodes(t *testing.T) {
	g := consoletest.New(t)
	d := g.ByCode(g.Published(10, 5*time.Hour))
	b := g.As(staff.Marketer)
	page := shell.TemplateURL(d.ID) + "/codes"
	b.Post(page, url.Values{"count": {"5"}, "request_key": {"k1"}}).Is(303)
	g.MakeCodes()
	code, err := consoletest.CodeKeys(t).Code(1, redeemcode.Serial(g.Number(`select first_serial from code_batches`)))
	g.Must(err)
	searched(b, strings.ToLower(code.Text())).Has(`"`+page+`"`, "Redeem code of batch 1")
	searched(g.As(staff.Marketer, 11), code.Text()).HasNot(page, "Redeem code of")
	g.Exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		select 1, 1001, 5, 'code', first_serial::text, now(), now() + interval '1 day' from code_batches where id = 1`)
	searched(b, code.Text()).Has(`"/coupons/1"`, "became coupon #1")
}

func TestHostileSearches(t *testing.T) {
	g, _, _, _ := sameNames(t)
	b := g.As(staff.Admin)
	for _, text := range []string{"%", "_", `\`, "'", `"><script>alert(1)</script>`, strings.Repeat("月", 200), strings.Repeat("x", 5000),
		"99999999999999999999999999", "-1", "0", "#", "\u202e", "\u0000"[:0], "a\tb", "select 1; --", "🎑", "ß", "İ"} {
		a := searched(b, text)
		if strings.Contains(a.Body, "<script>alert") {
			t.Errorf("%q is not escaped", text)
		}
		b.Htmx().Post("/search", url.Values{"q": {text}, "recent": {text}}).Is(200)
	}
	b.Post("/search", url.Values{"q": {"\x00"}}).Is(http.StatusBadRequest)
	b.Post("/search", url.Values{"q": {"\xff"}}).Is(http.StatusBadRequest)
}

// If the database does not answer the query for one kind in time, the results of the other kinds
// are shown.
func TestSearchDoesNotWaitForOneKind(t *testing.T) {
	g, mine, _, _ := sameNames(t)
	tx, err := g.SQL.Begin(t.Context())
	g.Must(err)
	defer func() { _ = tx.Rollback(t.Context()) }()
	_, err = tx.Exec(t.Context(), `lock table users in access exclusive mode`)
	g.Must(err)
	searched(g.As(staff.Admin), "moon").Has(mine, "Moon letter 10", "took too long").HasNot("/users/1001")
}
