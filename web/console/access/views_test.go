package access_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

func view(name, query string, more ...string) url.Values {
	f := url.Values{"list": {"templates"}, "name": {name}, "query": {query}}
	for i := 0; i < len(more); i += 2 {
		f.Set(more[i], more[i+1])
	}
	return f
}

// A member saves the filters of a list as a view, opens, renames and deletes it. A shared view is
// opened by all members and changed by its owner only.
func TestSavedViews(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b, other, chief := g.As(staff.Marketer), g.As(staff.Viewer), g.As(staff.Admin)
	b.Get("/templates?state=open&shop=10").Is(200).Has("/views?list=templates&amp;state=open&amp;shop=10", "Saved views")
	b.Get("/views?list=templates&state=open&state=paused&shop=10&after=5&from=").Is(200).
		Has("No saved views yet", `value="shop=10&amp;state=open&amp;state=paused"`, "<html")
	b.Htmx().Get("/views?list=templates").Is(200).Has("set filters in the list first", `id="confirm"`).HasNot("<html")
	b.Header.Del("HX-Request")
	b.Post("/views", view(" Open now ", "state=open&shop=10&q=", "shared", "1")).To("/templates?shop=10&state=open")
	b.Get("/templates?shop=10&state=open").Is(200).Has("Saved as “Open now”.")
	b.Post("/views", view("open NOW", "state=paused", "shared", "1")).To("/templates?state=paused") // replaces it
	b.Post("/views", view("Mine", "q=tea")).To("/templates?q=tea")
	b.Get("/views?list=templates").Is(200).Has("open NOW", "Mine", "/views/1/rename")
	b.Get("/views/1").To("/templates?state=paused")
	other.Get("/views?list=templates").Is(200).Has("open NOW", "shared by The marketer").HasNot("Mine", "/views/1/rename")
	other.Get("/views/1").To("/templates?state=paused")
	for _, path := range []string{"/views/1/rename", "/views/1/delete"} {
		other.Post(path, url.Values{"name": {"stolen"}}).Is(http.StatusForbidden)
	}
	for _, path := range []string{"/views/3/rename", "/views/3/delete"} {
		other.Post(path, url.Values{"name": {"stolen"}}).Is(http.StatusNotFound)
		chief.Post(path, url.Values{"name": {"stolen"}}).Is(http.StatusNotFound)
	}
	other.Get("/views/3").Is(http.StatusNotFound)
	b.Post("/views/3/rename", url.Values{"name": {"Open Now"}}).Is(http.StatusUnprocessableEntity).Has("Another of your views has this name")
	b.Post("/views/3/rename", url.Values{"name": {" "}}).Is(http.StatusUnprocessableEntity).Has("Enter a name")
	b.Post("/views/3/rename", url.Values{"name": {"Tea"}}).To("/views?list=templates")
	b.Post("/views/3/delete", nil).To("/views?list=templates")
	b.Post("/views/3/delete", nil).Is(http.StatusNotFound)
	chief.Post("/views/1/delete", nil).To("/views?list=templates")
	b.Get("/views?list=templates").Is(200).HasNot("open NOW")
}

// Filters that a list no longer has are ignored, and the page says so. Customers are never stored.
func TestOldAndOddViews(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	m := g.Number(`select max(id) from staff`)
	g.Exec(`insert into saved_views (staff_id, list, name, query) values ($1, 'templates', 'old', 'state=open&colour=red&user=5'), ($1, 'gone', 'of no list', 'a=b'), ($1, 'jobs', 'odd', '%zz')`, m)
	b.Get("/views/1").To("/templates?state=open")
	b.Get("/templates?state=open").Is(200).Has("Some filters of the view “old” no longer exist and were ignored.")
	b.Get("/views/2").Is(http.StatusNotFound)
	b.Get("/views/3").To("/jobs")
	b.Get("/views?list=deliveries&user=ann%40example.com&state=done").Is(200).Has("Customers, and searches", `value="state=done"`).HasNot("ann@")
	b.Post("/views", url.Values{"list": {"deliveries"}, "name": {"x"}, "query": {"user=ann%40example.com"}}).Is(http.StatusUnprocessableEntity).Has("Saved views")
	for _, f := range []url.Values{view("x", "q="+strings.Repeat("y", 2000)), view(strings.Repeat("n", 61), "q=a"), view("", "q=a"), view("a\nb", "q=a")} {
		b.Post("/views", f).Is(http.StatusUnprocessableEntity)
	}
	b.Post("/views", url.Values{"list": {"../x"}, "name": {"x"}, "query": {"q=a"}}).Is(http.StatusBadRequest)
	b.Post("/views", view("x", "%zz")).Is(http.StatusBadRequest)
	b.Get("/views?list=nonsense").Is(http.StatusNotFound)
	b.Get("/views/x").Is(http.StatusNotFound)
	b.Get("/views/99999999999999999999").Is(http.StatusNotFound)
}

// Even when many views are saved at once, no member has more views than allowed, and each name
// occurs once.
func TestNoMoreViewsThanAllowed(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Viewer)
	b.Post("/views", view("View 1", "q=b"))
	var all sync.WaitGroup
	for i := range staff.MaxViews + 5 {
		all.Go(func() {
			b.Post("/views", view(fmt.Sprintf("view %d", i), "q=a"))
			b.Post("/views", view("View 1", "q=b"))
		})
	}
	all.Wait()
	if n := g.Number(`select count(*) from saved_views`); n != staff.MaxViews {
		t.Errorf("%d views", n)
	}
	b.Post("/views", view("one more", "q=a")).Is(http.StatusUnprocessableEntity).Has("You have 30 views of this list")
	b.Post("/views", view("VIEW 1", "q=c")).To("/templates?q=c") // replacing is no more
}
