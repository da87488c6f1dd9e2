package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// Malformed input of a page must not lead to an error of the server.
func TestMalformedInput(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Admin)
	g.Shop(10)
	b.Get("/templates?q=%00").Is(http.StatusBadRequest).Has("Invalid request")
	b.Get("/users?q=%ff").Is(http.StatusBadRequest)
	b.Get("/templates?%zz=1").Is(http.StatusBadRequest)
	b.Post("/shops", url.Values{"name": {"a\x00b"}}).Is(http.StatusBadRequest)
	b.Post("/templates", url.Values{"name": {strings.Repeat("x", shell.MaxForm)}}).Is(http.StatusBadRequest)
	b.Get("/users/%ff").Is(http.StatusBadRequest)
	b.Get("/nowhere").Is(http.StatusNotFound).Has("Page not found")
	b.Do(http.MethodPut, "/templates", nil).Is(http.StatusNotFound)
	g.Browser().Get("/nowhere").Is(http.StatusNotFound)
}

func TestStateNamesAgreeWithTheStore(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	for _, s := range template.States() {
		a := b.Get("/templates?state=" + string(s)).Is(200)
		if strings.Contains(a.Body, "Moon cake night") != (s == template.Scheduled) {
			t.Errorf("a scheduled template and the filter %s: %v", s, strings.Contains(a.Body, "Moon cake night"))
		}
	}
}

// An unreadable field of a filter is named, and nothing is selected instead of everything: by the
// list, by its file, and by a step for all its rows.
func TestFiltersThatCannotBeRead(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator)
	b.Post("/campaigns", consoletest.CampaignForm()).Is(http.StatusSeeOther)
	for list, filters := range map[string][]string{
		"/templates": {"from=0002-01-01", "to=2026-99-99", "shop=ten", "shop=-1", "state=open&state=opened", "q=moon&from=x"},
		"/campaigns": {"from=0002-01-01", "to=x", "state=nonsense"},
		"/audit":     {"from=0002-01-01", "to=9999-12-31", "shop=x", "kind=template&shop=0"},
	} {
		for _, f := range filters {
			b.Get(list+"?"+f).Is(200).Has("The filter cannot be read").HasNot(d.Name+"<", "Spring &lt;b&gt;<", `form="bulk"`, list+".csv", `class="audit-when`)
			b.Header.Set("HX-Request", "true")
			b.Get(list+"?"+f).Is(200).Has("The filter cannot be read").HasNot("<h1", d.Name+"<", list+".csv")
			b.Header.Del("HX-Request")
			b.Get(list + ".csv?" + f).Is(http.StatusUnprocessableEntity)
		}
		b.Get(list + "?from=&to=&shop=&state=").Is(200).HasNot("cannot be read").Has(list + ".csv")
	}
	b.Get("/templates?from=0002-01-01").Has("From: must be a date such as 2026-11-20", `value="0002-01-01"`)
	b.Get("/templates?state=opened").Has("State: choose one")
	all := url.Values{"all": {"1"}, "step": {"cancel"}, "from": {"0002-01-01"}, "q": {"moon"}, "request_key": {"k"}, "reason": {"r"}}
	b.Get("/templates/bulk?" + all.Encode()).To("/templates?from=0002-01-01&q=moon")
	b.Get("/templates?from=0002-01-01&q=moon").Is(200).Has("so no drop was selected", "From: must be a date such as 2026-11-20")
	b.Post("/templates/bulk", all).To("/templates?from=0002-01-01&q=moon")
	if n := g.Number(`select count(*) from jobs`); n != 0 {
		t.Errorf("%d jobs", n)
	}
}
