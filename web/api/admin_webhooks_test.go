package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event/hook"
)

func webhookWish(more ...any) map[string]any {
	wish := map[string]any{"shop_number": "10", "url": "https://shop.example.com/hooks", "types": []string{"drop.opened", "coupon.used"}}
	for i := 0; i+1 < len(more); i += 2 {
		wish[more[i].(string)] = more[i+1]
	}
	return wish
}

// opens stores an event of the shop and returns its id.
func (r *fixture) opens(events *workdb.HookEvents) {
	r.Helper()
	_, err := events.Handle(context.Background(), uuid.Must(uuid.NewV7()).String(), []hook.Event{{Type: hook.DropOpened, Subject: "drop/1", Shop: 10, At: now(), Items: 1,
		Data: hook.DropData{TemplateID: 1, OpensAt: now()}}})
	r.must(err)
}

// testWebhooks registers an endpoint, whose secret is shown once and never stored in plain text,
// changes it, and reads, replays and removes its deliveries.
func testWebhooks(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC') on conflict do nothing`)
	events := workdb.NewHookEvents(r.db)
	t.Cleanup(events.Close)
	a := r.want(r.call(r.admin("Idempotency-Key", "one"), "POST", "/admin/webhooks", webhookWish()), 201, "")
	id, secret := a.at("id").(string), a.at("secret").(string)
	if !strings.HasPrefix(secret, "whsec_") || a.at("state") != "unused" || a.at("version") != 1.0 || a.at("types.0") != "drop.opened" {
		t.Fatalf("created %s", a.Body)
	}
	if n := r.number(`select count(*) from idempotency_keys where strpos(convert_from(body, 'UTF8'), $1) > 0`, secret); n != 0 {
		t.Error("the secret is kept with the key of its request")
	}
	r.want(r.call(r.admin("Idempotency-Key", "one"), "POST", "/admin/webhooks", webhookWish()), 409, "webhook_repeated")
	for _, wrong := range []map[string]any{webhookWish("url", "http://shop.example.com/"), webhookWish("url", "https://127.0.0.1/"), webhookWish("url", "https://10.0.0.1/x"),
		webhookWish("url", "https://localhost/"), webhookWish("url", "https://[::1]/"), webhookWish("url", "https://u:p@shop.example.com/"), webhookWish("url", ""), webhookWish("url", "https://"),
		webhookWish("url", "ftp://x"), webhookWish("url", "https://169.254.169.254/latest"), webhookWish("types", []string{"drop.exploded"}), webhookWish("types", []string{"endpoint.test"}),
		webhookWish("description", "a\u0000b"), webhookWish("description", strings.Repeat("x", 201)), webhookWish("shop_number", "99"), webhookWish("shop_number", "0")} {
		r.want(r.call(r.admin(), "POST", "/admin/webhooks", wrong), 422, "invalid_request")
	}
	path := "/admin/webhooks/" + id
	if a := r.want(r.call(as(r.keys["read"]), "GET", path, nil), 200, ""); a.at("secret") != nil || a.Header().Get("ETag") != `"1"` {
		t.Errorf("shown again: %s", a.Body)
	}
	r.want(r.call(as(r.keys["read"]), "POST", path+"/test", nil), 403, "forbidden")
	r.want(r.call(r.admin(), "PATCH", path, `{"enabled":false}`), 428, "precondition_required")
	r.want(r.call(r.admin("If-Match", `"1"`), "PATCH", path, `{"enabled":false}`), 200, "")
	r.want(r.call(r.admin("If-Match", `"1"`), "PATCH", path, `{"enabled":true}`), 409, "stale_version")
	r.want(r.call(r.admin(), "POST", path+"/test", nil), 409, "webhook_disabled")
	r.want(r.call(r.admin(), "POST", path+"/replay", map[string]any{"since": now()}), 409, "webhook_disabled")
	if a := r.want(r.call(r.admin("If-Match", `"2"`), "PATCH", path, `{"url":"HTTPS://Other.Example.com/H?Q=Ü","description":"Orders","types":[],"enabled":true}`), 200, ""); a.at("url") != "https://other.example.com/H?Q=Ü" {
		t.Errorf("the address is stored as %v", a.at("url"))
	}
	r.want(r.call(r.admin(), "POST", path+"/rotate", nil), 428, "precondition_required")
	a = r.want(r.call(r.admin("If-Match", `"3"`), "POST", path+"/rotate", nil), 200, "")
	if a.at("secret") == secret || a.at("secret") == nil || a.at("old_secret_until") == nil {
		t.Errorf("rotated: %s", a.Body)
	}
	r.want(r.call(r.admin("If-Match", `"3"`), "POST", path+"/rotate", nil), 409, "stale_version")

	r.opens(events)
	test := r.want(r.call(r.admin(), "POST", path+"/test", nil), 202, "").at("delivery_id").(string)
	a = r.want(r.call(r.admin(), "GET", path+"/deliveries?limit=1", nil), 200, "")
	if a.at("deliveries.0.id") != test || a.at("deliveries.0.cause") != "test" || a.at("next") == nil {
		t.Errorf("deliveries: %s", a.Body)
	}
	a = r.want(r.call(r.admin(), "GET", path+"/deliveries?state=waiting&before="+a.at("next").(string), nil), 200, "")
	opened := a.at("deliveries.0.id").(string)
	if a.at("deliveries.0.type") != "drop.opened" {
		t.Errorf("the second page: %s", a.Body)
	}
	r.exec(`update hook_deliveries set state = 'failed', attempts = 10, done_at = now()`)
	r.exec(`insert into hook_attempts (delivery_id, attempt, at, took_ms, status, error, response) select id, 10, now(), 7, 500, 'HTTP 500', 'oh no' from hook_deliveries`)
	a = r.want(r.call(r.admin(), "GET", path+"/deliveries/"+opened, nil), 200, "")
	if a.at("event.type") != "drop.opened" || a.at("tries.0.response") != "oh no" || a.at("status") != 500.0 {
		t.Errorf("details: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/deliveries/"+opened+"/replay", nil), 204, "")
	if n := r.number(`select count(*) from hook_deliveries where cause = 'replay' and state = 'waiting'`); n != 1 {
		t.Errorf("%d replayed", n)
	}
	r.exec(`delete from hook_deliveries where cause = 'replay'`)
	if a := r.want(r.call(r.admin(), "POST", path+"/replay", map[string]any{"since": now().Add(-time.Hour)}), 202, ""); a.at("deliveries") != 1.0 {
		t.Errorf("replayed: %s", a.Body)
	}
	r.want(r.call(r.admin(), "POST", path+"/replay", `{"since":"yesterday"}`), 422, "invalid_request")
	r.want(r.call(r.admin(), "GET", path+"/deliveries/999999", nil), 404, "delivery_not_found")
	r.want(r.call(r.admin(), "POST", path+"/deliveries/999999/replay", nil), 404, "delivery_not_found")
	r.want(r.call(r.admin(), "POST", "/admin/webhooks/999999/deliveries/1/replay", nil), 404, "webhook_not_found")
	if a := r.want(r.call(r.admin(), "GET", "/admin/webhooks?shop=10", nil), 200, ""); a.at("webhooks.0.id") != id || a.at("webhooks.0.secret") != nil {
		t.Errorf("listed: %s", a.Body)
	}
	for range hook.MaxEndpoints - 1 {
		r.want(r.call(r.admin(), "POST", "/admin/webhooks", webhookWish("enabled", false)), 201, "")
	}
	r.want(r.call(r.admin(), "POST", "/admin/webhooks", webhookWish()), 409, "too_many_webhooks")
	r.want(r.call(r.admin(), "DELETE", path, nil), 204, "")
	r.want(r.call(r.admin(), "GET", path, nil), 404, "webhook_not_found")
	r.want(r.call(r.admin(), "DELETE", path, nil), 404, "webhook_not_found")
}

// testEventsOfAShop: events are read from a position on, by type, and are kept for a reader
// although there is no endpoint.
func testEventsOfAShop(t *testing.T) {
	r := newFixture(t, nil)
	r.exec(`insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC') on conflict do nothing`)
	events := workdb.NewHookEvents(r.db)
	t.Cleanup(events.Close)
	a := r.want(r.call(r.admin(), "GET", "/admin/events?shop=10", nil), 200, "")
	next := a.at("next").(string)
	if next != "0" {
		t.Errorf("before any event: %s", a.Body)
	}
	for range 3 {
		r.opens(events)
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/events?shop=10&limit=2&after="+next, nil), 200, "")
	var first struct{ Type string }
	if err := json.Unmarshal([]byte(a.at("events.0.payload").(string)), &first); err != nil || first.Type != "drop.opened" || a.at("events.1.id") != "msg_"+a.at("next").(string) {
		t.Errorf("%v: %s", err, a.Body)
	}
	a = r.want(r.call(r.admin(), "GET", "/admin/events?shop=10&types=drop.opened,coupon.used&after="+a.at("next").(string), nil), 200, "")
	if a.at("events.0.type") != "drop.opened" || a.at("events.1") != nil {
		t.Errorf("the rest: %s", a.Body)
	}
	if a := r.want(r.call(r.admin(), "GET", "/admin/events?shop=10&types=coupon.used&after=0", nil), 200, ""); a.at("events.0") != nil || a.at("next") != "0" {
		t.Errorf("of another type: %s", a.Body)
	}
	// A reader that waits is answered when an event comes.
	r.exec(`delete from hook_events`)
	r.want(r.call(r.admin(), "GET", "/admin/events?shop=10&after=0", nil), 200, "") // of every type
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	answered := make(chan string, 1)
	go func() {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/admin/events?shop=10&wait=10&after=0", nil)
		q.Header = r.admin()
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		answered <- fmt.Sprint(string(body), err)
	}()
	r.opens(events)
	if body := <-answered; !strings.Contains(body, "drop.opened") {
		t.Errorf("a reader that waits: %s", body)
	}
	for _, query := range []string{"", "?shop=x", "?shop=10&after=0&wait=11", "?shop=10&wait=x", "?shop=10&after=x", "?shop=10&types=x", "?shop=99", "?shop=10&limit=101"} {
		r.want(r.call(r.admin(), "GET", "/admin/events"+query, nil), 422, "invalid_request")
	}
	r.want(r.call(as(r.keys["read"]), "GET", "/admin/events?shop=10", nil), 403, "forbidden")
	if n := r.number(`select count(*) from hook_listeners where listener like 'key:%'`); n != 1 {
		t.Error(fmt.Sprint(n, " listeners"))
	}
}
