package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
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
		d.Others = []shell.Another{{Name: "b", Shops: o.Stores.Templates, Answers: func() bool { return !silent.Load() }, Unread: o.Given.Unread}}
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
	b.Get("/queues").Is(200).Has(`action="/cells"`)

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

// TestListsByTimeOfAllDatabases: jobs, alerts, deliveries and recent customers of all databases are one
// list by time, with its pages and its file. A database that does not answer is named, and its rows follow
// when it is back. The bell counts the alerts of all databases, and a customer's figures are their sum.
func TestListsByTimeOfAllDatabases(t *testing.T) {
	g, o, silent := twoDatabases(t)
	b := g.As(staff.Viewer)
	var members string
	g.Must(g.SQL.QueryRow(t.Context(), `select jsonb_agg(s)::text from staff s`).Scan(&members))
	o.Exec(`insert into staff overriding system value select * from jsonb_populate_recordset(null::staff, $1::text::jsonb)`, members)
	const each = 20
	var jobs, batches []string
	for i := 2*each - 1; i >= 0; i-- { // the earliest first
		of, shop := g, 10
		if i%2 > 0 {
			of, shop = o, 20
		}
		name, at := fmt.Sprintf("Row %02d.", i), g.Now().Add(-time.Hour*time.Duration(i+1))
		of.Exec(`insert into jobs (kind, title, shop_number, needs, state, created_by, actor, created_at) values ('coupons.grant', $1, $2, 'view', 'done', 'system', '{}', $3)`, name, shop, at)
		of.Exec(`insert into alerts (kind, key, shop_number, name, count, path, raised_at) values ('sold_out', $1, $2, $1, 5, '/queues', $3)`, name, shop, at)
		batches = append(batches, fmt.Sprint(of.Number(`insert into batches (kind, owner_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
			values ('test', $1, 0, 1, 1, $2, $2, '\x00', 1) returning id`, i, at)))
		jobs = append(jobs, name)
	}
	slices.Reverse(jobs)
	slices.Reverse(batches)
	// pages returns what item finds on the pages of a list, one after another.
	pages := func(path string, item *regexp.Regexp) (got []string, n int) {
		t.Helper()
		next := regexp.MustCompile(`href="(` + path + `\?[^"]*(?:before|after)=[^"]+)"`)
		for at := path; at != ""; n++ {
			text := b.Get(at).Is(200).HasNot(`action="/cells"`).Body
			for _, m := range item.FindAllStringSubmatch(text, -1) {
				got = append(got, m[1])
			}
			at = ""
			if m := next.FindStringSubmatch(text); m != nil {
				at = html.UnescapeString(m[1])
			}
		}
		return got, n
	}
	named, batch := regexp.MustCompile(`>(Row \d\d\.)<`), regexp.MustCompile(`row-link" href="/deliveries/(\d+)"`)
	told := regexp.MustCompile(`“(Row \d\d\.)”`)
	bell := b.Get("/shops").Is(200).Body
	if !strings.Contains(bell, `class="bell-count" aria-hidden="true">40<`) {
		t.Error("the bell does not count the alerts of both databases")
	}
	for path, list := range map[string]struct {
		item *regexp.Regexp
		want []string
	}{"/jobs": {named, jobs}, "/alerts": {told, jobs}, "/deliveries": {batch, batches}} {
		if got, n := pages(path, list.item); !slices.Equal(got, list.want) || n != 2 {
			t.Errorf("%s: %d pages of %q", path, n, got)
		}
	}
	b.Get("/alerts").Is(200).Has(`href="/queues?cell=a"`, `href="/queues?cell=b"`)
	if text := b.Get("/shops").Is(200).Body; strings.Contains(text, "bell-count") {
		t.Error("the alerts that were looked at are new")
	}
	b.Get("/alerts/settings").Is(200).HasNot(`action="/cells"`)
	for _, path := range []string{"/jobs.csv", "/deliveries.csv"} {
		if rows := consoletest.RowsOf(b.Get(path).Is(200)); len(rows) != 2*each+1 {
			t.Errorf("%s has %d rows", path, len(rows))
		}
	}
	b.Post("/alerts/settings", url.Values{"kind": {"late"}}).To("/alerts/settings")
	if n := g.Number(`select count(*) from alert_readers where 'sold_out' = any(muted)`) + o.Number(`select count(*) from alert_readers where 'sold_out' = any(muted)`); n != 2 {
		t.Errorf("%d databases know which alerts the member does not want to see", n)
	}

	for _, of := range []*consoletest.Fixture{g, o} {
		of.Exec(`insert into users (id, name) values (7, 'Ann'), (8, 'Ben')`)
	}
	g.Locks(g.Gives(g.Published(10, 2*time.Hour), 7), "ORDER-1")
	second := o.Published(20, 2*time.Hour)
	o.Locks(o.Gives(second, 8), "ORDER-2")
	o.Locks(o.Gives(second, 7), "ORDER-3")
	text := b.Get("/users").Is(200).Has(`href="/users/7?cell=b"`, `href="/users/8?cell=b"`, "0 of 2", "0 of 1").HasNot(`action="/cells"`).Body
	if strings.Count(text, ">Ann<") != 1 {
		t.Error("a customer of both databases has two rows")
	}
	b.Get("/users?q=ann").Is(200).Has(`href="/users/7"`).HasNot(`action="/cells"`)
	b.Get("/users/7").Is(200).Has(`action="/cells"`)

	silent.Store(true)
	for _, path := range []string{"/jobs", "/deliveries", "/alerts", "/users"} {
		b.Get(path).Is(200).Has("do not answer: b")
	}
	for _, path := range []string{"/jobs.csv", "/deliveries.csv"} {
		b.Get(path).Is(http.StatusServiceUnavailable)
	}
	b.Get("/jobs").Is(200).Has("Row 00.", "Row 38.").HasNot("Row 01.")
	// A page that was read without a database leaves its rows to the page after it.
	o.Exec(`delete from batches`)
	g.Exec(`insert into batches (kind, owner_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
		select 'test', n, 0, 1, 1, now() - n * interval '1 day', now(), '\x00', 1 from generate_series(110, 140) n`)
	late := o.Number(`insert into batches (kind, owner_id, channel, from_user, to_user, due_at, worthless_after, due, due_count)
		values ('test', 1, 0, 1, 1, now(), now(), '\x00', 1) returning id`)
	next := regexp.MustCompile(`href="(/deliveries\?[^"]*after=[^"]+)"`).FindStringSubmatch(b.Get("/deliveries").Is(200).Body)
	silent.Store(false)
	b.Get(html.UnescapeString(next[1])).Is(200).Has(fmt.Sprintf(`"/deliveries/%d"`, late))
}

// TestADraftStaysInItsDatabase: the parts of the form of a draft offer the shops of its database alone, and
// name a shop of another one as an error, as saving does.
func TestADraftStaysInItsDatabase(t *testing.T) {
	g, o, _ := twoDatabases(t)
	d := g.Draft(10, 4*time.Hour)
	b := g.As(staff.Admin)
	path := shell.TemplateURL(d.ID) + "/edit"
	form := b.Get(path).Is(200).Has("Shop 10").HasNot("Shop 20").Form(path)
	b.Post("/templates/message", form).Is(200).Has("Shop 10").HasNot("Shop 20")
	form.Set("shop_number", "20")
	for _, at := range []string{"/templates/preview", "/templates/message"} {
		b.Post(at, form).Is(200).Has("does not exist; choose one of the shops").HasNot("Shop 20")
	}
	b.Post(path, form).Is(http.StatusUnprocessableEntity).Has("does not exist; choose one of the shops")
	if n := g.Number(`select count(*) from templates where shop_number = 10`) + o.Number(`select count(*) from templates`); n != 1 {
		t.Errorf("%d drops", n)
	}
	letter := b.Get("/campaigns/new").Is(200).Form("/campaigns")
	for name, value := range map[string]string{"name": "Letter", "shop": "20", "audience": "all", "title": "Hello", "body": "Come"} {
		letter.Set(name, value)
	}
	b.Post("/campaigns", letter).Is(http.StatusSeeOther)
	letter.Set("edited_id", fmt.Sprint(o.Number(`select max(id) from campaigns`)))
	b.Post("/campaigns/preview", letter).Is(200).HasNot("does not exist; choose one of the shops")
	letter.Set("shop", "10")
	b.Post("/campaigns/preview", letter).Is(200).Has("does not exist; choose one of the shops")
}
