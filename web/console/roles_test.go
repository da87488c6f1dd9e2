package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestEveryRouteAsEverybody(t *testing.T) {
	g := consoletest.NewSignOn(t).Fixture // so that single sign-on is there
	g.Published(10, 2*60*60*1e9)
	people := map[staff.Role]*consoletest.Browser{"": g.Browser()}
	for _, role := range staff.Roles() {
		people[role] = g.As(role)
	}
	for _, rt := range g.Routes() {
		if strings.HasSuffix(rt.Pattern, "/live") {
			continue // never ends; see the tests of streams
		}
		for role, b := range people {
			if rt.Pattern == "/signout" {
				continue
			}
			a := b.Do(rt.Method, consoletest.SamplePath(rt.Pattern, "99999"), consoletest.FormFor(rt.Method))
			allowed := rt.Open || role != "" && staff.Actor{Role: role}.Can(rt.Needs, 0)
			switch {
			case a.Status >= 500:
				t.Errorf("%s as %q: %d %s", a.What, role, a.Status, a.Text())
			case allowed && (a.Status == http.StatusForbidden || a.Status == http.StatusUnauthorized):
				t.Errorf("%s as %q is refused: %d", a.What, role, a.Status)
			case !allowed && role != "" && a.Status != http.StatusForbidden:
				t.Errorf("%s as %q: %d, want 403", a.What, role, a.Status)
			case !allowed && role == "" && (a.Status != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/signin")):
				t.Errorf("%s as nobody: %d to %q, want the sign-in", a.What, a.Status, a.Header.Get("Location"))
			}
		}
	}
}

func TestQueuesAreForOperatorsToChange(t *testing.T) {
	g := consoletest.New(t)
	g.Browser().Get("/monitor/queues").To("/signin?return=%2Fmonitor%2Fqueues")
	viewer, operator := g.As(staff.Viewer), g.As(staff.Operator)
	// As a page of its own the dashboard would have no way back.
	page := viewer.Get("/queues/dashboard").Is(200).Has(`src="/monitor/queues"`, "Overview")
	if csp := page.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "; frame-src 'self'") {
		t.Errorf("the page may not show it: %s", csp)
	}
	viewer.Get("/queues/dashboard?at=queues/deliver-sms").Is(200).Has(`src="/monitor/queues/queues/deliver-sms"`)
	viewer.Get("/queues/dashboard?at=../../account").Is(200).Has(`src="/monitor/queues/account"`)
	viewer.Header.Set("Sec-Fetch-Dest", "document")
	viewer.Get("/monitor/queues").To("/queues/dashboard")
	viewer.Get("/monitor/queues/queues/deliver-sms").To("/queues/dashboard?at=queues%2Fdeliver-sms")
	viewer.Header.Del("Sec-Fetch-Dest")
	viewer.Get("/monitor/queues").Is(200).Has("writable=false")
	viewer.Do(http.MethodDelete, "/monitor/queues/api/queues/x", nil).Is(http.StatusForbidden)
	operator.Do(http.MethodDelete, "/monitor/queues/api/queues/x", nil).Is(200).Has("writable=true")
}

// A member in charge of one shop sees and changes nothing of another.
func TestLimitedToShops(t *testing.T) {
	g := consoletest.New(t)
	mine, theirs := g.Published(10, 2*60*60*1e9), g.Published(11, 3*60*60*1e9)
	g.Book(mine, 1001, 0, 5)
	g.Book(theirs, 1001, 0, 10)
	b := g.As(staff.Marketer, 10)

	b.Get("/templates").Is(200).Has(shell.TemplateURL(mine.ID)).HasNot(shell.TemplateURL(theirs.ID))
	b.Get("/templates?shop=11").Is(200).HasNot(shell.TemplateURL(theirs.ID))
	b.Get("/").Is(200).Has(shell.TemplateURL(mine.ID)).HasNot(shell.TemplateURL(theirs.ID))
	b.Get("/audit").Is(200).Has("#" + "1").HasNot("/templates/65\"")
	b.Get("/users/1001").Is(200).Has(shell.TemplateURL(mine.ID)).HasNot(shell.TemplateURL(theirs.ID))
	b.Get("/shops").Is(200).Has("Shop 10").HasNot("Shop 11")
	for _, path := range []string{"", "/edit", "/move", "/stock", "/pause", "/cockpit/live"} {
		b.Get(shell.TemplateURL(theirs.ID) + path).Is(http.StatusForbidden)
	}
	for _, path := range []string{"/edit", "/move", "/stock", "/pause", "/cancel"} {
		b.Post(shell.TemplateURL(theirs.ID)+path, nil).Is(http.StatusForbidden)
	}
	b.Get("/templates/new?from=65").Is(http.StatusForbidden)
	b.Get("/shops/11").Is(http.StatusNotFound)
	b.Post("/shops/11", url.Values{"name": {"Stolen"}, "timezone": {"UTC"}}).Is(http.StatusNotFound)
	b.Post("/shops", url.Values{"shop_number": {"12"}, "name": {"New"}, "timezone": {"UTC"}}).Is(http.StatusForbidden)
	form := url.Values{"name": {"x"}, "shop_number": {"11"}}
	b.Post("/templates", form).Is(http.StatusUnprocessableEntity).Has("does not exist; choose one of the shops")
}

// Members limited to some shops cannot open pages that give access to everything or that concern
// objects of no shop, and no page links to them.
func TestLimitedToShopsStaysLimited(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Exec(`insert into dead_messages (message_id, topic, handler, reason, payload) values ('m1', 'template.moved.v1', 'timers', 'r', '{"template":"1"}')`)
	chief, limited := g.As(staff.Admin), g.As(staff.Admin, 10)
	n := 0
	for _, rt := range g.Routes() {
		if !rt.Everywhere {
			continue
		}
		n++
		limited.Do(rt.Method, consoletest.SamplePath(rt.Pattern, "1"), consoletest.FormFor(rt.Method)).Is(http.StatusForbidden).Has("your access is limited to some")
	}
	if n < 14 {
		t.Errorf("%d routes are kept from them", n)
	}
	if g.Number(`select count(*) from dead_messages where requeued_at is null and discarded_at is null`) != 1 ||
		g.Number(`select count(*) from api_keys`) != 0 || g.Number(`select count(*) from staff where shops <> '{}'`) != 1 {
		t.Error("something was changed")
	}
	for path, page := range map[string]string{`href="/staff"`: "/shops", `href="/keys"`: "/shops", `href="/dead-messages"`: "/deliveries"} {
		chief.Get(page).Is(200).Has(path)
		limited.Get(page).Is(200).HasNot(path)
		limited.Get("/").Is(200).HasNot(path)
		limited.Get("/account").Is(200).HasNot(path)
	}
	limited.Get("/shops/10").Is(200).Has("limits") // of the own shop
}
