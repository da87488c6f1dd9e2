package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
		"ADMIN_EMAIL", "ada@dropbell.test", "ADMIN_PASSWORD", "correct horse battery", "CONSOLE_SECOND_FACTOR", "optional",
		"CODE_KEYS", "1:YSBrZXkgb2YgMzIgYnl0ZXMsIGZvciB0ZXN0cyBvbmU=")
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
	return c.dropBy(shop, "claim", after)
}

func (c *twoCells) dropBy(shop, obtain string, after time.Duration) string {
	c.Helper()
	opens := time.Now().UTC().Truncate(time.Second).Add(after)
	status, o := c.call("POST", "/admin/templates", 0, map[string]any{"shop_number": shop, "name": "Drop of " + shop, "kind": "amount_off", "amount_off": 100, "currency": "CNY", "target": "shop",
		"stock": 10_000, "per_user_limit": 1, "opens_at": opens, "closes_at": opens.Add(2 * time.Hour), "valid_hours": 1, "obtain": obtain})
	if status != http.StatusCreated {
		c.Fatalf("%d %v", status, o)
	}
	id := o["id"].(string)
	if status, o := c.call("POST", "/admin/templates/"+id+"/publish", 0, map[string]any{}); status != http.StatusOK {
		c.Fatalf("%d %v", status, o)
	}
	return id
}

// code makes a drop of the shop with redeem codes, and returns one of them.
func (c *twoCells) code(shop string) string {
	c.Helper()
	path := "/admin/templates/" + c.dropBy(shop, "code", time.Hour) + "/codes"
	status, batch := c.call("POST", path, 0, map[string]any{"count": 3})
	if status/100 != 2 {
		c.Fatalf("%d %v", status, batch)
	}
	c.until("the codes are not ready", func() bool {
		_, o := c.call("GET", path+"/"+batch["id"].(string), 0, nil)
		return o["state"] == "ready"
	})
	r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, c.address+"/api/v1"+path+".csv", nil)
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+stepsKey)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer answer.Body.Close()
	lines, err := csv.NewReader(answer.Body).ReadAll()
	if err != nil || len(lines) != 4 {
		c.Fatalf("%d lines, %v", len(lines), err)
	}
	return lines[1][0]
}

// TestAnEveningInTwoCells: two shops in two databases are one installation. Reminders are sent, coupons
// claimed and used, codes redeemed, and a user's lists show both shops. While one database is halted, and after it was
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
	codes := []string{c.code("10"), c.code("20")}
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
	for _, code := range codes {
		c.until("a code is not redeemed", func() bool {
			status, _ := c.call("POST", "/redemptions", 4, map[string]any{"code": code})
			return status == http.StatusCreated
		})
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
