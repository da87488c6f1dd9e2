package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/shell"
)

// Reading a page must not answer what nobody can store or show.
func TestMalformedInput(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Admin)
	g.shop(10)
	b.get("/templates?q=%00").is(http.StatusBadRequest).has("Invalid request")
	b.get("/users?q=%ff").is(http.StatusBadRequest)
	b.get("/templates?%zz=1").is(http.StatusBadRequest)
	b.post("/shops", url.Values{"name": {"a\x00b"}}).is(http.StatusBadRequest)
	b.post("/templates", url.Values{"name": {strings.Repeat("x", shell.MaxForm)}}).is(http.StatusBadRequest)
	b.get("/users/%ff").is(http.StatusBadRequest)
	b.get("/nowhere").is(http.StatusNotFound).has("Page not found")
	b.do(http.MethodPut, "/templates", nil).is(http.StatusNotFound)
	g.browser().get("/nowhere").is(http.StatusNotFound)
}

func TestStateNamesAgreeWithTheStore(t *testing.T) {
	g := newRig(t)
	g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	for _, s := range template.States() {
		a := b.get("/templates?state=" + string(s)).is(200)
		if strings.Contains(a.body, "Moon cake night") != (s == template.Scheduled) {
			t.Errorf("a scheduled template and the filter %s: %v", s, strings.Contains(a.body, "Moon cake night"))
		}
	}
}

// What cannot be read of a filter is said, and nothing is selected instead of
// everything: not by the list, not by its file, not by a step for all of it.
func TestFiltersThatCannotBeRead(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Operator)
	b.post("/campaigns", campaignForm()).is(http.StatusSeeOther)
	for list, filters := range map[string][]string{
		"/templates": {"from=0002-01-01", "to=2026-99-99", "shop=ten", "shop=-1", "state=open&state=opened", "q=moon&from=x"},
		"/campaigns": {"from=0002-01-01", "to=x", "state=nonsense"},
		"/audit":     {"from=0002-01-01", "to=9999-12-31", "shop=x", "kind=template&shop=0"},
	} {
		for _, f := range filters {
			b.get(list+"?"+f).is(200).has("The filter cannot be read").hasNot(d.Name+"<", "Spring &lt;b&gt;<", `form="bulk"`, list+".csv", `class="audit-when`)
			b.header.Set("HX-Request", "true")
			b.get(list+"?"+f).is(200).has("The filter cannot be read").hasNot("<h1", d.Name+"<", list+".csv")
			b.header.Del("HX-Request")
			b.get(list + ".csv?" + f).is(http.StatusUnprocessableEntity)
		}
		b.get(list + "?from=&to=&shop=&state=").is(200).hasNot("cannot be read").has(list + ".csv")
	}
	b.get("/templates?from=0002-01-01").has("From: is not a date", `value="0002-01-01"`)
	b.get("/templates?state=opened").has("State: choose one")
	all := url.Values{"all": {"1"}, "step": {"cancel"}, "from": {"0002-01-01"}, "q": {"moon"}, "request_key": {"k"}, "reason": {"r"}}
	b.get("/templates/bulk?" + all.Encode()).to("/templates?from=0002-01-01&q=moon")
	b.get("/templates?from=0002-01-01&q=moon").is(200).has("so nothing was selected", "From: is not a date")
	b.post("/templates/bulk", all).to("/templates?from=0002-01-01&q=moon")
	if n := g.number(`select count(*) from jobs`); n != 0 {
		t.Errorf("%d jobs", n)
	}
}
