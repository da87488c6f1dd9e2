package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/staff"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// twoDatabases are home's console g, which has the rows of a further database too, and a console o of that
// database, in which shops from 20 on are. While silent is set the further database does not answer.
func twoDatabases(t *testing.T) (g, o *consoletest.Fixture, silent *atomic.Bool) {
	silent, o = &atomic.Bool{}, consoletest.New(t)
	_, err := workdb.NewCells(o.DB).Number(t.Context(), 1, 0)
	o.Must(err)
	g = consoletest.New(t, func(d *console.Deps) {
		d.Cells, d.Cell = []string{"a", "b"}, "a"
		d.Others = []shell.Another{{Name: "b", Shops: o.Stores.Templates, Answers: func() bool { return !silent.Load() }}}
		d.ShopCell = func(shop int64) (int, bool) { return int(min(1, shop/20)), shop < 20 || !silent.Load() }
		d.Settle = func(_ context.Context, _ int64, do func(int)) error { do(1); return nil }
		d.Join(o.Given)
	})
	g.Shop(10)
	o.Shop(20)
	return g, o, silent
}

// TestFormsOfAllShops: forms for new drops, campaigns, series and recipes offer the shops of all databases,
// begin with what any database has, and are stored in the database of the shop, once. A form says which
// database does not answer.
func TestFormsOfAllShops(t *testing.T) {
	g, o, silent := twoDatabases(t)
	second := o.Published(20, 4*time.Hour)
	o.Exec(`update templates set name = 'Star night'`)
	counts := func(what string, home, further int64) {
		t.Helper()
		if a, b := g.Number(`select count(*) from `+what), o.Number(`select count(*) from `+what); a != home || b != further {
			t.Errorf("%d and %d %s, want %d and %d", a, b, what, home, further)
		}
	}
	b := g.As(staff.Admin)
	b.Get("/templates/new").Is(200).Has("Shop 10", "Shop 20").HasNot(`action="/cells"`)
	b.Get("/templates/models").Is(200).Has("Star night")
	b.Get("/templates/new?from=999").Is(http.StatusNotFound)
	copied := b.Get(fmt.Sprintf("/templates/new?from=%d", second.ID)).Is(200).Has("Star night").Form("/templates")
	if copied.Get("shop_number") != "20" {
		t.Errorf("a copy is of shop %s", copied.Get("shop_number"))
	}
	b.Post("/templates", copied).To(shell.TemplateURL(second.ID + 64))
	b.Post("/templates", copied).To(shell.TemplateURL(second.ID + 64))
	counts("templates", 0, 2)
	form := g.TypedForm(4 * time.Hour)
	b.Post("/templates/preview", form).Is(200).Has("Star night")
	b.Post("/templates", form).To("/templates/1")
	form.Set("shop_number", "20")
	form.Set("stock", "none")
	b.Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("Shop 10", "Shop 20")
	counts("templates", 1, 2)

	letter := b.Get("/campaigns/new").Is(200).Has("Shop 10", "Shop 20").Form("/campaigns")
	for name, value := range map[string]string{"name": "Letter", "shop": "20", "audience": "all", "title": "Hello", "body": "Come"} {
		letter.Set(name, value)
	}
	b.Post("/campaigns/preview", letter).Is(200)
	b.Post("/campaigns", letter).Is(http.StatusSeeOther)
	letter.Set("request_key", "another")
	letter.Set("shop", "")
	letter.Set("grant_template_id", fmt.Sprintf("Star night (#%d)", second.ID))
	b.Post("/campaigns", letter).Is(http.StatusSeeOther)
	counts("campaigns where shop_number = 20", 0, 2)
	b.Get("/campaigns/new?from=" + fmt.Sprint(o.Number(`select min(id) from campaigns`))).Is(200).Has("Letter")
	b.Get("/templates/choices?q=star").Is(200).Has("Star night")

	weekly := b.Get(fmt.Sprintf("/series/new?from=%d", second.ID)).Is(200).Form("/series")
	b.Post("/series/preview", weekly).Is(200)
	for range 2 {
		b.Post("/series", weekly).Is(http.StatusSeeOther)
	}
	counts("series", 0, 1)
	b.Get("/series").Is(200).Has("Star night")
	recipe := b.Get("/recipes?shop=20").Is(200).Has("Shop 10", "Shop 20").Form("/recipes/20/missed")
	recipe.Set("on", "1")
	b.Post("/recipes/20/missed", recipe).Is(http.StatusSeeOther)
	counts("recipes", 0, 1)
	shop := url.Values{"shop_number": {"30"}, "name": {"New"}, "timezone": {"UTC"}}
	b.Post("/shops", shop).To("/shops")
	b.Post("/shops", shop).Is(http.StatusUnprocessableEntity).Has("exists")
	counts("shops where number = 30", 0, 1)

	b.Post("/budgets", url.Values{"scope": {"shop"}, "subject": {"20"}, "currency": {"CNY"}, "amount": {"5000"}, "reason": {"the autumn"}}).To("/budgets")
	b.Post("/budgets", url.Values{"scope": {"drop"}, "subject": {fmt.Sprint(second.ID)}, "amount": {"5000"}, "reason": {"the autumn"}}).To("/budgets")
	counts("budgets", 0, 2)
	b.Get("/budgets").Is(200).Has("Shop 10", "Shop 20", "Star night")
	b.Post("/webhooks", url.Values{"shop_number": {"20"}, "url": {"https://shop.example/hooks"}, "types": {"coupon.used"}, "enabled": {"1"}, "request_key": {"once"}})
	counts("hook_endpoints", 0, 1)
	b.Get("/webhooks").Is(200).Has("https://shop.example/hooks", "Shop 20")
	b.Post("/give", url.Values{"user": {"1001"}, "template": {fmt.Sprint(second.ID)}, "reason": {"a late parcel"}, "request_key": {"once"}})
	counts("jobs", 0, 1)
	given := o.Gives(second, 1001)
	b.Get("/coupons?by=user&q=1001").Is(200).Has(fmt.Sprintf(`"/coupons/%d"`, given))
	b.Get("/coupons.csv?by=user&q=1001").Is(200).Has("Star night")
	o.Locks(given, "ORDER-1")
	b.Get("/coupons/locks").Is(200).Has("ORDER-1")
	b.Get("/grants").Is(200).HasNot(`action="/cells"`)
	for _, at := range []string{"/codes", "/notices", "/forecast", "/coupons/together?shop=20"} {
		b.Get(at).Is(200).HasNot(`action="/cells"`)
	}
	b.Get("/jobs").Is(200).Has(`action="/cells"`)

	silent.Store(true)
	for _, at := range []string{"/budgets", "/webhooks", "/grants", "/codes", "/notices", "/series", "/recipes", "/forecast", "/coupons/locks", "/campaigns/new"} {
		b.Get(at).Is(200).Has("do not answer: b")
	}
	b.Get("/templates/new").Is(200).Has("Shop 10").HasNot("Shop 20")
	b.Post("/templates", copied).Is(http.StatusServiceUnavailable)
	counts("templates", 1, 2)
}

// TestPagesOfAllDatabases: search, results and the audit log have what all databases have, in one order,
// and name a database that does not answer; files are refused then.
func TestPagesOfAllDatabases(t *testing.T) {
	g, o, silent := twoDatabases(t)
	var names []string
	for i := range 16 {
		of, shop := g, int64(10)
		if i%2 > 0 {
			of, shop = o, 20
		}
		d, opened := of.Published(shop, 2*time.Hour), g.Now().Truncate(time.Second).Add(-time.Hour*time.Duration(20-i))
		names = append(names, fmt.Sprintf("Drop %02d", i))
		of.Exec(`update templates set name = $2, opens_at = $3, closes_at = $4 where id = $1`, d.ID, names[i], opened, opened.Add(time.Minute))
		of.Exec(`update audit set reason = $2 where object_id = $1::bigint::text and action = 'template.publish'`, d.ID, "Reason of "+names[i])
		of.Exec(`update audit set at = $2 where object_id = $1::bigint::text`, d.ID, opened)
	}
	inOrder := func(text, prefix string) (n int) {
		t.Helper()
		last := -1
		for i := len(names) - 1; i >= 0; i-- {
			if at := strings.Index(text, prefix+names[i]); at > last {
				last, n = at, n+1
			} else if at >= 0 {
				t.Errorf("%s is not in its place", names[i])
			}
		}
		return n
	}
	b := g.As(staff.Admin)
	if n := inOrder(b.Get("/results").Is(200).Body, ""); n != len(names) {
		t.Errorf("%d drops among the results", n)
	}
	if n := inOrder(b.Get("/results.csv").Is(200).Body, ""); n != len(names) {
		t.Errorf("%d drops in the file of results", n)
	}
	b.Get("/money.csv").Is(200)
	b.Post("/search", url.Values{"q": {"drop 0"}}).Is(200).Has("Drop 08", "Drop 09")
	b.Post("/search", url.Values{"q": {"drop 07"}}).Is(200).Has("Drop 07", "/templates/"+fmt.Sprint(o.Number(`select id from templates where name = 'Drop 07'`)))
	b.Get("/search/choices/drops?field=x&x=drop+07").Is(200).Has("Drop 07")
	b.Post("/search", url.Values{"recent": {fmt.Sprintf("templates/%d", o.Number(`select id from templates where name = 'Drop 07'`))}}).Is(200).Has("Drop 07")

	pages, read := 0, ""
	next := regexp.MustCompile(`<a class="button" href="(/audit[^"]+)"`)
	for at := "/audit?kind=template"; at != ""; pages++ {
		text := b.Get(at).Is(200).Body
		read, at = read+text, ""
		if m := next.FindStringSubmatch(text); m != nil {
			at = html.UnescapeString(m[1])
		}
	}
	if n := inOrder(read, "Reason of "); pages != 2 || n != len(names) {
		t.Errorf("%d pages of the audit log have %d drops", pages, n)
	}
	if n := inOrder(b.Get("/audit?q=reason+of").Is(200).Body, "Reason of "); n != len(names) {
		t.Errorf("a search for a text finds %d drops", n)
	}
	for _, at := range []string{"/audit.csv?kind=template", "/audit.csv?q=reason+of"} {
		if n := inOrder(b.Get(at).Is(200).Body, "Reason of "); n != len(names) {
			t.Errorf("%s has %d drops", at, n)
		}
	}
	silent.Store(true)
	for _, at := range []string{"/audit", "/audit?q=reason+of"} {
		b.Get(at).Is(200).Has("do not answer: b", "Drop 00").HasNot("Drop 01")
	}
	b.Get("/results").Is(200).Has("do not answer: b", "Drop 00").HasNot("Drop 01")
	b.Post("/search", url.Values{"q": {"drop 0"}}).Is(200).Has("Drop 08").HasNot("Drop 09")
	for _, at := range []string{"/audit.csv", "/audit.csv?q=reason+of", "/results.csv", "/money.csv"} {
		b.Get(at).Is(http.StatusServiceUnavailable)
	}
}
