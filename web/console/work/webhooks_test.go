package work_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/event/hook"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// TestWebhookPages registers an endpoint, whose secret is shown once, and follows its deliveries: a
// test, a failure with its answer, a replay, and its removal.
func TestWebhookPages(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC'), (11, 'Coffee House', 'UTC') on conflict (number) do update set name = excluded.name`)
	b, viewer := g.As(staff.Operator), g.As(staff.Viewer)
	b.Get("/webhooks").Is(200).Has("No endpoints yet", "Add an endpoint")
	viewer.Get("/webhooks").Is(200).HasNot("Add an endpoint")
	viewer.Get("/webhooks/new").Is(403)
	b.Get("/webhooks/types").Is(200).Has("drop.sold_out", "The last coupon of a drop was issued", "&#34;subject&#34;: &#34;drop/9007199254740993&#34;")
	empty := b.Get("/webhooks/new").Is(200).Has("Tea House", "coupon.used")
	for _, name := range hook.Fields.Names() {
		empty.Has(`name="` + name + `"`)
	}
	wrong := url.Values{"shop_number": {"10"}, "url": {"ftp://x"}, "types": {"coupon.used", "nonsense"}, "enabled": {"1"}}
	b.Post("/webhooks", wrong).Is(422).Has("must be an https address", "must be among the events")
	form := url.Values{"shop_number": {"10"}, "url": {"https://shop.example/hooks"}, "description": {"Orders <1>"}, "types": {"coupon.used", "drop.opened"}, "enabled": {"1"}, "request_key": {"k1"}}
	b.Post("/webhooks", form).To("/webhooks/1")
	b.Post("/webhooks", form).To("/webhooks") // sent twice
	page := b.Get("/webhooks/1").Is(200).Has("Orders &lt;1&gt;", "whsec_", "shown only once", "Nothing sent yet", "coupon.used")
	if again := b.Get("/webhooks/1").Is(200).HasNot("shown only once"); !strings.Contains(page.Body, "whsec_") || strings.Contains(again.Body, "whsec_") {
		t.Error("the secret is shown twice")
	}
	if n := g.Number(`select count(*) from hook_endpoints`); n != 1 {
		t.Errorf("%d endpoints", n)
	}
	viewer.Get("/webhooks/1").Is(200).Has("shop.example").HasNot("/webhooks/1/test", "Rotate secret", "/webhooks/1/edit")
	viewer.Post("/webhooks/1/test", nil).Is(403)

	b.Post("/webhooks/1/test", nil).To("/webhooks/1")
	b.Get("/webhooks/1").Is(200).Has("on its way", "endpoint.test", "Not sent yet")
	events := workdb.NewHookEvents(g.DB)
	t.Cleanup(events.Close)
	_, err := events.Handle(context.Background(), uuid.Must(uuid.NewV7()).String(), []hook.Event{{Type: hook.DropOpened, Subject: "drop/1", Shop: 10, At: time.Now(), Items: 1, Data: hook.DropData{TemplateID: 1}}})
	g.Must(err)
	g.Exec(`insert into hook_attempts (delivery_id, attempt, at, took_ms, status, error, response) select max(id), 1, now(), 85, 500, 'HTTP 500', '<b>oh no</b>' from hook_deliveries`)
	g.Exec(`update hook_deliveries set attempts = 1, state = 'failed', done_at = now() where id = (select max(id) from hook_deliveries)`)
	id := g.Number(`select max(id) from hook_deliveries`)
	b.Get("/webhooks/1?state=failed").Is(200).Has("drop.opened", "HTTP 500").HasNot("endpoint.test")
	delivery := fmt.Sprintf("/webhooks/1/deliveries/%d", id)
	b.Get(delivery).Is(200).Has("&lt;b&gt;oh no", "85 ms", "&#34;type&#34;: &#34;drop.opened&#34;", "msg_")
	viewer.Get(delivery).Is(200).HasNot("Send again")
	b.Get("/webhooks/1?state=delivered").Is(200).Has("No such delivery", `href="/webhooks/1"`)
	b.Get("/webhooks/1/deliveries/999").Is(404)
	b.Get("/webhooks/1/deliveries/x").Is(404)
	b.Post(delivery+"/replay", nil).To("/webhooks/1")
	if n := g.Number(`select count(*) from hook_deliveries where cause = 'replay'`); n != 1 {
		t.Errorf("%d replayed", n)
	}
	b.Get("/webhooks/1/replay").Is(200).Has("Hours")
	b.Post("/webhooks/1/replay", url.Values{"hours": {"many"}}).Is(422).Has("number of hours")
	b.Post("/webhooks/1/replay", url.Values{"hours": {"2"}}).To("/webhooks/1")

	version := b.Get("/webhooks/1/edit").Is(200).Has("shop.example").Field("version")
	edit := url.Values{"version": {version}, "url": {"https://other.example/hooks"}, "enabled": {"1"}}
	b.Post("/webhooks/1", edit).To("/webhooks/1")
	b.Post("/webhooks/1", url.Values{"version": {version}, "url": {"https://third.example/"}}).To("/webhooks/1")
	b.Get("/webhooks/1").Is(200).Has("other.example", "in the meantime").HasNot("third.example")
	rotate := b.Get("/webhooks/1/rotate").Is(200).Has("Make a new secret?").Field("version")
	b.Post("/webhooks/1/rotate", url.Values{"version": {rotate}}).To("/webhooks/1")
	b.Get("/webhooks/1").Is(200).Has("whsec_", "The old secret signs until")

	g.Published(10, 2*time.Hour)
	g.Exec(`update hook_endpoints set enabled = false, disabled_reason = 'failing', disabled_at = now()`)
	b.Get("/").Is(200).Has("was disabled: every attempt failed for five days", "/webhooks/1")
	b.Get("/webhooks/1").Is(200).Has("Disabled: every attempt failed")
	b.Post("/webhooks/1/test", nil).To("/webhooks/1")
	b.Get("/webhooks/1").Is(200).Has("The endpoint is disabled.")
	b.Get("/webhooks/1/remove").Is(200).Has("Remove the endpoint?")
	b.Post("/webhooks/1/remove", nil).To("/webhooks")
	b.Get("/webhooks/1").Is(404)
	b.Get("/audit?kind=webhook").Is(200).Has("made a new secret for", "webhook endpoint 1")
	b.Header.Set("Accept-Language", "zh-CN")
	b.Get("/webhooks").Is(200).Has("还没有端点")
}

// TestWebhooksOfOtherShops: endpoints of other shops do not exist for members who are limited to
// shops.
func TestWebhooksOfOtherShops(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into shops (number, name, timezone) values (10, 'Tea House', 'UTC'), (11, 'Coffee House', 'UTC') on conflict do nothing`)
	for _, shop := range []int64{10, 11} {
		_, _, err := g.Hooks().Create(t.Context(), staff.System(), shop, hook.Input{URL: fmt.Sprintf("https://shop%d.example/", shop), Enabled: true}, "")
		g.Must(err)
	}
	g.Published(11, 2*time.Hour)
	g.Exec(`update hook_endpoints set enabled = false, disabled_reason = 'gone'`)
	b := g.As(staff.Operator, 11)
	b.Get("/webhooks").Is(200).Has("shop11.example").HasNot("shop10.example")
	b.Get("/").Is(200).Has("shop11.example").HasNot("shop10.example")
	for _, path := range []string{"/webhooks/1", "/webhooks/1/edit", "/webhooks/1/rotate", "/webhooks/1/replay", "/webhooks/1/deliveries/1"} {
		b.Get(path).Is(404)
	}
	for _, path := range []string{"/webhooks/1", "/webhooks/1/test", "/webhooks/1/remove", "/webhooks/1/rotate", "/webhooks/1/deliveries/1/replay"} {
		b.Post(path, url.Values{"url": {"https://mine.example/"}, "hours": {"1"}}).Is(404)
	}
	b.Post("/webhooks", url.Values{"shop_number": {"10"}, "url": {"https://mine.example/"}, "enabled": {"1"}}).Is(403)
	if n := g.Number(`select count(*) from hook_endpoints where url like '%mine%'`); n != 0 {
		t.Error("changed")
	}
}
