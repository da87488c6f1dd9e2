package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/migrations"
)

// twoCells are both programs over two databases, the second of which is a server of its own.
type twoCells struct {
	*testing.T
	address string
	a, b    *pgxpool.Pool
	cells   string // CELLS
	home    *localstack.Postgres
	server  *localstack.Postgres // of cell b
}

func startCells(t *testing.T) *twoCells {
	t.Helper()
	c := &twoCells{T: t}
	for _, s := range []**localstack.Postgres{&c.home, &c.server} {
		one, err := localstack.StartPostgres(t.Context(), localstack.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = one.Stop(context.Background()) })
		if err := migrations.Up(t.Context(), one.URL()); err != nil {
			t.Fatal(err)
		}
		*s = one
	}
	server := c.server
	db, err := postgres.Open(t.Context(), server.URL(), postgres.Options{AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = workdb.NewCells(db).Number(t.Context(), 1, 0)
	db.Close()
	if err != nil {
		t.Fatal(err)
	}
	home := c.home.URL()
	c.a, c.b = c.pool(home), c.pool(server.URL())
	c.cells = "a=" + home + ",b=" + server.URL()
	c.address = serveAll(t, "DATABASE_URL", "", "CELLS", c.cells, "AUTH_JWT_SECRET", "0123456789abcdef0123456789abcdef", "LINK_SECRET", "a secret of tests with 32 bytes and more",
		"ADMIN_EMAIL", "ada@dropbell.test", "ADMIN_PASSWORD", "correct horse battery", "CONSOLE_SECOND_FACTOR", "optional")
	return c
}

func (c *twoCells) pool(url string) *pgxpool.Pool {
	c.Helper()
	p, err := pgxpool.New(context.WithoutCancel(c.Context()), url)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(p.Close)
	return p
}

// call sends a request for a user, 0 = for nobody.
func (c *twoCells) call(method, path string, user int, body any) (int, map[string]any) {
	c.Helper()
	status, o, err := c.send(method, path, user, body)
	if err != nil {
		c.Fatal(err)
	}
	return status, o
}

func (c *twoCells) send(method, path string, user int, body any) (int, map[string]any, error) {
	raw := []byte(nil)
	if body != nil {
		raw, _ = json.Marshal(body)
	}
	r, err := http.NewRequestWithContext(c.Context(), method, c.address+"/api/v1"+path, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Authorization", "Bearer "+stepsKey)
	r.Header.Set("Content-Type", "application/json")
	if user > 0 {
		r.Header.Set("X-User-ID", fmt.Sprint(user))
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	var o map[string]any
	if err = json.NewDecoder(answer.Body).Decode(&o); errors.Is(err, io.EOF) {
		err = nil // 204
	}
	return answer.StatusCode, o, err
}

// until repeats a call until it is answered so.
func (c *twoCells) until(what string, done func() bool) {
	c.Helper()
	for end := time.Now().Add(localstack.Patience(c)); !done(); {
		if time.Now().After(end) {
			c.Fatal(what)
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (c *twoCells) number(db *pgxpool.Pool, sql string, args ...any) (n int64) {
	c.Helper()
	if err := db.QueryRow(c.Context(), sql, args...).Scan(&n); err != nil {
		c.Fatal(err)
	}
	return n
}

// drop makes and publishes a drop of the shop that opens after so long.
func (c *twoCells) drop(shop string, after time.Duration) string {
	c.Helper()
	opens := time.Now().UTC().Truncate(time.Second).Add(after)
	status, o := c.call("POST", "/admin/templates", 0, map[string]any{"shop_number": shop, "name": "Drop of " + shop, "kind": "amount_off", "amount_off": 100, "currency": "CNY", "target": "shop",
		"stock": 10_000, "per_user_limit": 1, "opens_at": opens, "closes_at": opens.Add(2 * time.Hour), "valid_hours": 1, "obtain": "claim"})
	if status != http.StatusCreated {
		c.Fatalf("%d %v", status, o)
	}
	id := o["id"].(string)
	if status, o := c.call("POST", "/admin/templates/"+id+"/publish", 0, map[string]any{}); status != http.StatusOK {
		c.Fatalf("%d %v", status, o)
	}
	return id
}

// TestAnEveningInTwoCells: two shops in two databases are one installation. Reminders are sent, coupons
// claimed and used, and a user's lists show both shops. While one database is halted, and after it was
// killed, calls for drops of the other one neither wait nor fail, and a change of contacts arrives
// later.
func TestAnEveningInTwoCells(t *testing.T) {
	c := startCells(t)
	c.until("cell b does not serve", func() bool { return !strings.Contains(body(t, c.address+"/readyz"), "cell b") })
	c.until("the key has not reached cell b", func() bool { return c.number(c.b, `select count(*) from api_keys`) == 1 })
	soon := 5*time.Minute + 6*time.Second // so that reminders are due in six seconds
	first, second := c.drop("10", soon), c.drop("20", soon)
	if n := c.number(c.a, `select count(*) from templates`); n != 1 || c.number(c.b, `select count(*) from templates where shop_number = 20`) != 1 {
		t.Fatalf("%d drops in home: %s, %s", n, first, second)
	}
	for user, drop := range map[int]string{1: first, 2: second} {
		shop := map[int]string{1: "10", 2: "20"}[user]
		for _, by := range []int{user, 3} {
			status, o := c.call("POST", "/reservations", by, map[string]any{"template_id": drop, "shop_number": shop, "reminders": []map[string]any{{"channel": "app", "minutes": 5}}})
			if status != http.StatusCreated {
				t.Fatalf("%d %v", status, o)
			}
		}
	}
	if _, o := c.call("GET", "/reservations", 3, nil); len(o["reservations"].([]any)) != 2 {
		t.Errorf("reservations of a user in both cells: %v", o)
	}
	if _, o := c.call("GET", "/admin/templates", 0, nil); len(o["templates"].([]any)) != 2 {
		t.Errorf("drops of both cells: %v", o)
	}
	if _, o := c.call("GET", "/admin/shops", 0, nil); len(o["shops"].([]any)) != 2 {
		t.Errorf("shops of both cells: %v", o)
	}
	c.until("reminders of both cells are in the inbox", func() bool {
		_, o := c.call("GET", "/inbox", 3, nil)
		return len(o["items"].([]any)) == 2 && o["unread"] == 2.0
	})
	if status, _ := c.call("POST", "/inbox/read", 3, nil); status != http.StatusOK {
		t.Errorf("reading: %d", status)
	}
	if _, o := c.call("GET", "/inbox", 3, nil); o["unread"] != 0.0 {
		t.Errorf("after reading: %v", o)
	}
	for _, db := range []*pgxpool.Pool{c.a, c.b} {
		if _, err := db.Exec(t.Context(), `update templates set opens_at = date_trunc('second', now()) - interval '1 minute'`); err != nil {
			t.Fatal(err)
		}
	}
	var coupons []string
	for _, drop := range []string{first, second} {
		c.until("a claim of drop "+drop, func() bool {
			status, o := c.call("POST", "/claims", 3, map[string]any{"template_id": drop})
			if status == http.StatusCreated {
				coupons = append(coupons, o["coupon_id"].(string))
			}
			return status == http.StatusCreated
		})
	}
	if _, o := c.call("GET", "/coupons?limit=1", 3, nil); o["next"] == nil || o["coupons"].([]any)[0].(map[string]any)["coupon_id"] != coupons[1] {
		t.Errorf("the newest coupon: %v, want %s", o, coupons[1])
	} else if _, o := c.call("GET", "/coupons?limit=1&before="+o["next"].(string), 3, nil); o["coupons"].([]any)[0].(map[string]any)["coupon_id"] != coupons[0] {
		t.Errorf("the older coupon: %v", o)
	}
	for i, coupon := range coupons {
		order := map[string]any{"order_id": fmt.Sprint("A-", i), "order_amount": 6000, "currency": "CNY", "user_id": "3"}
		if status, o := c.call("POST", "/coupons/"+coupon+"/lock", 0, order); status != http.StatusOK {
			t.Errorf("lock: %d %v", status, o)
		}
		if status, o := c.call("POST", "/coupons/"+coupon+"/confirm", 0, map[string]any{"order_id": fmt.Sprint("A-", i)}); status != http.StatusOK || o["state"] != "used" {
			t.Errorf("confirm: %d %v", status, o)
		}
	}
	c.without("cell b halted", first, 1000, true, func() { c.server.Pause() })
	c.server.Resume()
	c.until("the change of contacts has not arrived", func() bool {
		return c.number(c.b, `select count(*) from users where id = 77 and opt_outs <> 0`) == 1
	})
	status, _ := c.call("DELETE", "/admin/users/3", 0, nil)
	if status >= 300 {
		t.Errorf("erasing: %d", status)
	}
	c.until("the user is erased in both cells", func() bool {
		const left = `select count(*) from reservations where user_id = 3`
		return c.number(c.a, left) == 0 && c.number(c.b, left) == 0 && c.number(c.b, `select count(*) from erased_users where user_id = 3`) == 1
	})
	c.without("home halted", second, 2000, false, func() { c.home.Pause() })
	c.home.Resume()
	c.until("home does not answer again", func() bool {
		status, _ := c.call("PUT", "/preferences", 78, map[string]any{"opt_outs": []string{"sms"}})
		return status < 300
	})
	c.without("cell b killed", first, 3000, true, func() {
		if err := c.server.Kill(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestStaffInTwoCells: a member signs in once. Lists have the drops of both databases in the order of
// their openings, with pages; while one database is halted they name it and show the others'. Other pages
// are of the database that was chosen, and pages of a drop open from any. A shop moves from one database to
// the other behind the same address, with its ids, and back.
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
	for _, path := range []string{"/", "/templates", "/shops", "/campaigns", "/reviews", "/dead-letters", "/dead-letters/list"} {
		shows(page("GET", path, nil), "ada", `action="/cells"`)
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
	shows(page("GET", "/jobs", nil), `<option value="a" selected`, `<option value="b" selected`)
	shows(page("POST", "/cells", url.Values{"cell": {"b"}, "return": {"/jobs"}}), `<option value="b" selected`, `<option value="a" selected`)
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

// without has users claim coupons of the drop of home while the other cell is away, and changes the
// contacts of one. A request may take as long as the slowest one before took, several times over.
// away is whether the cell that ends is not home. Users are counted from first.
func (c *twoCells) without(how, drop string, first int64, away bool, end func()) {
	c.Helper()
	claims := func(from int64) (slowest time.Duration, err error) {
		var all sync.WaitGroup
		var mu sync.Mutex
		for i := range int64(100) {
			all.Go(func() {
				began := time.Now()
				status, o, sent := c.send("POST", "/claims", int(from+i), map[string]any{"template_id": drop})
				mu.Lock()
				defer mu.Unlock()
				if slowest = max(slowest, time.Since(began)); sent != nil || status != http.StatusCreated {
					err = errors.Join(err, sent, fmt.Errorf("%d %v", status, o))
				}
			})
		}
		all.Wait()
		return slowest, err
	}
	usual, err := claims(first)
	if err != nil {
		c.Fatalf("before: %v", err)
	}
	end()
	for n := range int64(5) {
		took, err := claims(first + 100*(n+1))
		if err != nil {
			c.Errorf("%s: %v", how, err)
		}
		if took > 2*time.Second+5*usual {
			c.Errorf("%s: a claim of the other cell took %v, %v before", how, took, usual)
		}
		c.Logf("%s: the slowest of 100 claims took %v, before %v", how, took, usual)
	}
	if !away {
		if status, o := c.call("PUT", "/preferences", 77, map[string]any{"opt_outs": []string{"sms"}}); status != http.StatusServiceUnavailable {
			c.Errorf("%s: a change of contacts: %d %v", how, status, o)
		}
		return
	}
	if status, o := c.call("PUT", "/preferences", 77, map[string]any{"opt_outs": []string{"sms"}}); status >= 300 {
		c.Errorf("%s: a change of contacts: %d %v", how, status, o)
	}
	if status, o := c.call("GET", "/coupons", int(first), nil); status != http.StatusOK || len(o["coupons"].([]any)) != 1 {
		c.Errorf("%s: coupons of the other cell: %d %v", how, status, o)
	}
	if text := body(c.T, c.address+"/readyz"); !strings.HasPrefix(text, "ok\n") || !strings.Contains(text, "cell b: ") {
		c.Errorf("%s: /readyz says %q", how, text)
	}
}
