package api_test

import (
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/web/api"
)

func TestConsents(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) {
		d.Drops.Channels = delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.WebPush)
		d.Drops.Reminders.Channels = d.Drops.Channels
	})
	me, other, id := as(token(7)), as(token(8)), r.drop(30*time.Minute)
	at := "/reservations/" + id + "/consents"
	r.want(r.call(me, "PUT", at+"/10", nil), 404, "not_reserved")
	r.want(r.call(me, "GET", at, nil), 404, "not_reserved")
	r.want(r.call(me, "POST", "/reservations", reserve(id, "webpush", 10, "webpush", 5, "app", 15)), 201, "")
	wish := map[string]any{"platform": "wechat", "token": "oABCD_efghIJKLmnop-QRSTuvwx1", "app": "wx0123456789abcdef"}
	if a := r.want(r.call(me, "PUT", "/devices", wish), 200, ""); a.at("platform") != "wechat" || a.at("app") != wish["app"] || strings.Contains(a.Body.String(), "oABCD") {
		t.Errorf("registered: %s", a.Body)
	}
	want := func(method, path, minutes string) {
		t.Helper()
		if a := r.want(r.call(me, method, path, nil), 200, ""); a.Body.String() != `{"minutes":`+minutes+"}\n" {
			t.Errorf("%s %s: %s, want %s", method, path, a.Body, minutes)
		}
	}
	want("GET", at, "[]")
	want("PUT", at+"/10", "[10]")
	want("PUT", at+"/10", "[10]") // not a second one
	want("PUT", at+"/5", "[10,5]")
	want("GET", at, "[10,5]")
	want("DELETE", at+"/10", "[5]")
	want("DELETE", at+"/10", "[5]")
	r.want(r.call(me, "DELETE", "/reservations/"+id+"?channel=webpush&minutes=5", nil), 200, "")
	want("GET", at, "[]")
	r.want(r.call(me, "PUT", at+"/15", nil), 404, "not_reserved") // over the app only
	r.want(r.call(other, "PUT", at+"/10", nil), 404, "not_reserved")
	r.want(r.call(me, "PUT", "/reservations/999999/consents/10", nil), 404, "template_not_found")
	for _, minutes := range []string{"7", "x", "0", "65"} {
		r.want(r.call(me, "PUT", at+"/"+minutes, nil), 422, "invalid_request")
	}
	_, err := r.sql.Exec(t.Context(), `update slots set due_at = now() - interval '1 second' where template_id = $1 and slot = 2`, id)
	r.must(err)
	if a := r.want(r.call(me, "PUT", at+"/10", nil), 409, "already_due"); !strings.Contains(a.Body.String(), "10 minutes") {
		t.Errorf("due: %s", a.Body)
	}
}
