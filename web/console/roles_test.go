package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"dropbell/domain/staff"
)

// samplePath fills a route's pattern with an id that exists or does not; both
// must be refused to who may not know.
func samplePath(pattern, id string) string {
	step := "pause"
	if strings.Contains(pattern, "requeue") {
		step = "requeue"
	}
	if strings.Contains(pattern, "release") {
		step = "release"
	}
	if strings.Contains(pattern, "takeback") {
		step = "takeback"
	}
	i := strings.Index(pattern, "{step")
	if i >= 0 {
		pattern = pattern[:i] + step
	}
	return strings.NewReplacer("{id}", id, "{batch}", id, "{channel}", "email").Replace(pattern)
}

func TestEveryRouteAsEverybody(t *testing.T) {
	g := newDoor(t).rig // so that single sign-on is there
	g.published(10, 2*60*60*1e9)
	people := map[staff.Role]*browser{"": g.browser()}
	for _, role := range staff.Roles() {
		people[role] = g.as(role)
	}
	for _, rt := range g.table {
		if strings.HasSuffix(rt.Pattern, "/live") {
			continue // never ends; see the tests of streams
		}
		for role, b := range people {
			if rt.Pattern == "/signout" {
				continue
			}
			a := b.do(rt.Method, samplePath(rt.Pattern, "99999"), formFor(rt.Method))
			allowed := rt.Open || role != "" && staff.Actor{Role: role}.Can(rt.Needs, 0)
			switch {
			case a.status >= 500:
				t.Errorf("%s as %q: %d %s", a.what, role, a.status, a.text())
			case allowed && (a.status == http.StatusForbidden || a.status == http.StatusUnauthorized):
				t.Errorf("%s as %q is refused: %d", a.what, role, a.status)
			case !allowed && role != "" && a.status != http.StatusForbidden:
				t.Errorf("%s as %q: %d, want 403", a.what, role, a.status)
			case !allowed && role == "" && (a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/signin")):
				t.Errorf("%s as nobody: %d to %q, want the sign-in", a.what, a.status, a.header.Get("Location"))
			}
		}
	}
}

func formFor(method string) url.Values {
	if method == http.MethodPost {
		return url.Values{}
	}
	return nil
}

func TestQueuesAreForOperatorsToChange(t *testing.T) {
	g := newRig(t)
	g.browser().get("/monitor/queues").to("/signin?return=%2Fmonitor%2Fqueues")
	viewer, operator := g.as(staff.Viewer), g.as(staff.Operator)
	// As a page of its own the dashboard would have no way back.
	page := viewer.get("/queues").is(200).has(`src="/monitor/queues"`, "Overview")
	if csp := page.header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "; frame-src 'self'") {
		t.Errorf("the page may not show it: %s", csp)
	}
	viewer.get("/queues?at=queues/deliver-sms").is(200).has(`src="/monitor/queues/queues/deliver-sms"`)
	viewer.get("/queues?at=../../account").is(200).has(`src="/monitor/queues/account"`)
	viewer.header.Set("Sec-Fetch-Dest", "document")
	viewer.get("/monitor/queues").to("/queues")
	viewer.get("/monitor/queues/queues/deliver-sms").to("/queues?at=queues%2Fdeliver-sms")
	viewer.header.Del("Sec-Fetch-Dest")
	viewer.get("/monitor/queues").is(200).has("writable=false")
	viewer.do(http.MethodDelete, "/monitor/queues/api/queues/x", nil).is(http.StatusForbidden)
	operator.do(http.MethodDelete, "/monitor/queues/api/queues/x", nil).is(200).has("writable=true")
}

// Who is in charge of one shop sees and changes nothing of another.
func TestLimitedToShops(t *testing.T) {
	g := newRig(t)
	mine, theirs := g.published(10, 2*60*60*1e9), g.published(11, 3*60*60*1e9)
	g.book(mine, 1001, 0, 5)
	g.book(theirs, 1001, 0, 10)
	b := g.as(staff.Marketer, 10)

	b.get("/templates").is(200).has(templateURL(mine.ID)).hasNot(templateURL(theirs.ID))
	b.get("/templates?shop=11").is(200).hasNot(templateURL(theirs.ID))
	b.get("/").is(200).has(templateURL(mine.ID)).hasNot(templateURL(theirs.ID))
	b.get("/audit").is(200).has("#" + "1").hasNot("/templates/2\"")
	b.get("/users/1001").is(200).has(templateURL(mine.ID)).hasNot(templateURL(theirs.ID))
	b.get("/shops").is(200).has("Shop 10").hasNot("Shop 11")
	for _, path := range []string{"", "/edit", "/move", "/stock", "/pause", "/cockpit/live"} {
		b.get(templateURL(theirs.ID) + path).is(http.StatusForbidden)
	}
	for _, path := range []string{"/edit", "/move", "/stock", "/pause", "/cancel"} {
		b.post(templateURL(theirs.ID)+path, nil).is(http.StatusForbidden)
	}
	b.get("/templates/new?from=2").is(http.StatusForbidden)
	b.get("/shops/11").is(http.StatusNotFound)
	b.post("/shops/11", url.Values{"name": {"Stolen"}, "timezone": {"UTC"}}).is(http.StatusNotFound)
	b.post("/shops", url.Values{"shop_number": {"12"}, "name": {"New"}, "timezone": {"UTC"}}).is(http.StatusForbidden)
	form := url.Values{"name": {"x"}, "shop_number": {"11"}}
	b.post("/templates", form).is(http.StatusUnprocessableEntity).has("there is no such shop")
}

// What gives access to everything, or touches what belongs to no shop, is not
// for those who are in charge of some, and no page leads them there.
func TestLimitedToShopsStaysLimited(t *testing.T) {
	g := newRig(t)
	g.shop(10)
	g.exec(`insert into dead_messages (message_id, topic, handler, reason, payload) values ('m1', 'template.moved.v1', 'timers', 'r', '{"template":"1"}')`)
	chief, limited := g.as(staff.Admin), g.as(staff.Admin, 10)
	n := 0
	for _, rt := range g.table {
		if !rt.Everywhere {
			continue
		}
		n++
		limited.do(rt.Method, samplePath(rt.Pattern, "1"), formFor(rt.Method)).is(http.StatusForbidden).has("your access is limited to some")
	}
	if n < 14 {
		t.Errorf("%d routes are kept from them", n)
	}
	if g.number(`select count(*) from dead_messages where requeued_at is null and discarded_at is null`) != 1 ||
		g.number(`select count(*) from api_keys`) != 0 || g.number(`select count(*) from staff where shops <> '{}'`) != 1 {
		t.Error("something was changed")
	}
	for _, path := range []string{`href="/staff"`, `href="/keys"`, `href="/dead-messages"`} {
		chief.get("/").is(200).has(path)
		limited.get("/").is(200).hasNot(path)
		limited.get("/account").is(200).hasNot(path)
	}
	limited.get("/shops/10").is(200).has("limits") // of the own shop
}
