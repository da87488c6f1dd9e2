package main

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
)

// TestStaffInTwoCells: a member signs in once. Lists have the drops of both databases in the order of
// their openings, with pages; while one database is halted they name it and show the others'. Forms offer
// the shops of both. Pages about one database are of the one that was chosen, and pages of a drop open from
// any. A shop moves from one database to the other behind the same address, with its ids, and back.
func TestStaffInTwoCells(t *testing.T) {
	c := startCells(t)
	c.until("the key has not reached cell b", func() bool { return c.number(c.b, `select count(*) from api_keys`) == 1 })
	first, second := c.drop("10", 3*time.Hour), c.drop("20", 3*time.Hour)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	ask := func(method, path string, form url.Values) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, c.address+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		if method == http.MethodPost {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		answer, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	page := func(method, path string, form url.Values) string {
		t.Helper()
		status, text := ask(method, path, form)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %d\n%s", method, path, status, text)
		}
		return text
	}
	page("POST", "/signin", url.Values{"email": {"ada@dropbell.test"}, "password": {"correct horse battery"}})
	shows := func(text string, want, not string) {
		t.Helper()
		if !strings.Contains(text, want) || strings.Contains(text, not) {
			t.Errorf("%q is not shown, or %q is:\n%s", want, not, text)
		}
	}
	for _, path := range []string{"/", "/templates", "/shops", "/campaigns", "/reviews", "/dead-letters", "/dead-letters/list", "/series", "/results", "/search", "/jobs", "/alerts", "/alerts/settings", "/deliveries", "/users"} {
		shows(page("GET", path, nil), "ada", `action="/cells"`)
	}
	for path, want := range map[string]string{"/templates/new": `value="20"`, "/campaigns/new?shop=10": `value="20"`, "/recipes": `value="20"`, "/audit": "/templates/" + second, "/budgets": `value="20"`} {
		shows(page("GET", path, nil), want, "do not answer")
	}
	for _, drop := range []string{first, second} {
		shows(page("POST", "/search", url.Values{"q": {"drop of"}}), "/templates/"+drop, "do not answer")
	}
	page("POST", "/shops", url.Values{"shop_number": {"30"}, "name": {"New"}, "timezone": {"UTC"}})
	if status, text := ask("POST", "/shops", url.Values{"shop_number": {"30"}, "name": {"New"}, "timezone": {"UTC"}}); status != http.StatusUnprocessableEntity {
		t.Errorf("a shop is made twice: %d %s", status, text)
	}
	const made = `select count(*) from shops where number = 30`
	if n := c.number(c.a, made) + c.number(c.b, made); n != 1 {
		t.Errorf("a new shop is in %d databases", n)
	}
	c.mergedDrops(page)
	for text, want := range map[string]string{page("GET", "/", nil): "Drop of 10", page("GET", "/shops", nil): "#10", page("GET", "/templates.csv", nil): "Drop of 10"} {
		shows(text, want, "do not answer")
		shows(text, strings.ReplaceAll(want, "10", "20"), "do not answer")
	}
	ids := url.Values{"step": {"pause"}, "id": {first, second}}
	shows(page("GET", "/templates/bulk?"+ids.Encode(), nil), "Pause 2 ", "do not answer")
	ids.Set("request_key", "once")
	for range 2 {
		page("POST", "/templates/bulk", ids)
	}
	c.until("the drops of both databases are paused by a job in each", func() bool {
		const paused = `select count(*) from templates where state = 'paused'`
		return c.number(c.a, paused) == 1 && c.number(c.b, paused) == 1 && c.number(c.a, `select count(*) from jobs`) == 1 && c.number(c.b, `select count(*) from jobs`) == 1
	})
	ids.Set("step", "resume")
	ids.Set("request_key", "again")
	page("POST", "/templates/bulk", ids)
	c.until("the drops of both databases go on", func() bool {
		const over = `select count(*) from jobs where state = 'done'`
		return c.number(c.a, over) == 2 && c.number(c.b, over) == 2
	})
	shows(page("GET", "/queues", nil), `<option value="a" selected`, `<option value="b" selected`)
	shows(page("POST", "/cells", url.Values{"cell": {"b"}, "return": {"/queues"}}), `<option value="b" selected`, `<option value="a" selected`)
	shows(page("GET", "/templates/"+first, nil), "Drop of 10", "Drop of 20")
	shows(page("GET", "/templates/"+second, nil), "Drop of 20", "Drop of 10")
	c.server.Pause()
	for _, path := range []string{"/templates", "/"} {
		began := time.Now()
		shows(page("GET", path, nil), "Drop of 10", "Drop of 20")
		shows(page("GET", path, nil), "do not answer: b", "Drop of 20")
		if took := time.Since(began); took > localstack.Patience(t)/2 {
			t.Errorf("%s took %v", path, took)
		}
	}
	if status, text := ask("GET", "/templates.csv", nil); status != http.StatusServiceUnavailable {
		t.Errorf("a file without a database: %d %s", status, text)
	}
	c.server.Resume()
	c.until("the list has the rows of cell b again", func() bool {
		text := page("GET", "/templates", nil)
		return strings.Contains(text, "Drop of 20") && !strings.Contains(text, "do not answer")
	})

	var out journal
	if err := command(t.Context(), []string{"worker", "move", "10", "b"}, environment("CELLS", c.cells), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	c.until("the drop that has moved is not found", func() bool {
		status, o := c.call("GET", "/admin/templates/"+first, 0, nil)
		return status == http.StatusOK && o["name"] == "Drop of 10"
	})
	if status, o := c.call("POST", "/reservations", 5, map[string]any{"template_id": first, "shop_number": "10", "reminders": []map[string]any{{"channel": "app", "minutes": 5}}}); status != http.StatusCreated {
		t.Errorf("reserving after the move: %d %v", status, o)
	}
	if n := c.number(c.b, `select count(*) from reservations where user_id = 5`); n != 1 || c.number(c.a, `select count(*) from templates`) != 0 {
		t.Errorf("%d reservations in cell b", n)
	}
	c.until("a new drop of the shop is not made where the shop is", func() bool {
		c.drop("10", 3*time.Hour)
		return c.number(c.a, `select count(*) from templates`) == 0
	})
	if err := command(t.Context(), []string{"worker", "move", "10", "a"}, environment("CELLS", c.cells), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	c.until("the drop that has come back is not found", func() bool {
		status, o := c.call("POST", "/reservations", 6, map[string]any{"template_id": first, "shop_number": "10", "reminders": []map[string]any{{"channel": "app", "minutes": 5}}})
		return status == http.StatusCreated && o != nil
	})
	if n := c.number(c.a, `select count(*) from reservations where user_id in (5, 6)`); n != 2 || c.number(c.b, `select count(*) from templates where shop_number = 10`) != 0 {
		t.Errorf("%d reservations came back to cell a", n)
	}
	c.until("a new drop of the shop is not made in the cell that it came back to", func() bool {
		c.drop("10", 3*time.Hour)
		return c.number(c.b, `select count(*) from templates where shop_number = 10`) == 0
	})
}

// mergedDrops adds drafts to both shops, whose openings alternate, and follows the pages of the list.
func (c *twoCells) mergedDrops(page func(method, path string, form url.Values) string) {
	c.Helper()
	opens := time.Now().UTC().Truncate(time.Second).Add(24 * time.Hour)
	var want []string
	for i := range 30 {
		name, shop := fmt.Sprintf("Draft %02d", i), []string{"10", "20"}[i%2]
		status, o := c.call("POST", "/admin/templates", 0, map[string]any{"shop_number": shop, "name": name, "kind": "amount_off", "amount_off": 100, "currency": "CNY", "target": "shop",
			"stock": 1, "per_user_limit": 1, "opens_at": opens.Add(time.Duration(i) * time.Minute), "closes_at": opens.Add(2 * time.Hour), "valid_hours": 1, "obtain": "claim"})
		if status != http.StatusCreated {
			c.Fatalf("%d %v", status, o)
		}
		want = append(want, name)
	}
	named, next := regexp.MustCompile(`>(Draft \d\d)<`), regexp.MustCompile(`href="(/templates\?[^"]*after=[^"]+)"`)
	for _, sort := range []string{"soonest", "latest", "ahead"} {
		var got []string
		pages := 0
		for path := "/templates?state=draft&sort=" + sort; path != "" && pages < 9; pages++ {
			text := page("GET", path, nil)
			for _, m := range named.FindAllStringSubmatch(text, -1) {
				got = append(got, m[1])
			}
			path = ""
			if m := next.FindStringSubmatch(text); m != nil {
				path = html.UnescapeString(m[1])
			}
		}
		if sort == "latest" {
			slices.Reverse(got)
		}
		if !slices.Equal(got, want) || pages != 2 {
			c.Errorf("%s: %d pages of %q", sort, pages, got)
		}
	}
}
