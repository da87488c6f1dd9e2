package api_test

import (
	"slices"
	"testing"
	"time"
)

func testInbox(t *testing.T) {
	r := newFixture(t, nil)
	me, id := as(token(7)), r.drop(2*time.Hour)
	if a := r.want(r.call(me, "GET", "/inbox", nil), 200, ""); len(a.at("items").([]any)) != 0 || a.at("unread") != 0.0 || a.at("read_through") != nil {
		t.Fatalf("empty inbox: %s", a.Body)
	}
	r.want(r.call(me, "POST", "/reservations", reserve(id, "app", 5, "app", 10, "app", 15)), 201, "")
	var ids []string
	for slot := 3; slot > 0; slot-- {
		ids = append(ids, r.deliver(id, slot, 7).ID)
	}
	var seen []string
	for next := "?limit=2"; ; {
		a := r.want(r.call(me, "GET", "/inbox"+next, nil), 200, "")
		if a.at("unread") != 3.0 {
			t.Fatalf("unread: %s", a.Body)
		}
		for _, m := range a.at("items").([]any) {
			seen = append(seen, m.(map[string]any)["id"].(string))
		}
		before, more := a.json["next"].(string)
		if !more {
			break
		}
		next = "?limit=2&before=" + before
	}
	slices.Reverse(ids)
	if !slices.Equal(seen, ids) {
		t.Fatalf("inbox shows %v, want %v", seen, ids)
	}
	r.want(r.call(me, "POST", "/inbox/read", `{"through":"2999-01-01T00:00:00Z"}`), 200, "")
	if a := r.want(r.call(me, "GET", "/inbox", nil), 200, ""); a.at("unread") != 0.0 || a.at("items.0.read") != true {
		t.Fatalf("after reading: %s", a.Body)
	}
	later := r.drop(2 * time.Hour)
	r.want(r.call(me, "POST", "/reservations", reserve(later, "app", 5)), 201, "")
	r.deliver(later, 1, 7)
	if a := r.want(r.call(me, "GET", "/inbox", nil), 200, ""); a.at("unread") != 1.0 {
		t.Fatalf("marking the future as read hid what came later: %s", a.Body)
	}
	r.want(r.call(me, "POST", "/inbox/read", nil), 200, "")
	if a := r.want(r.call(me, "GET", "/inbox", nil), 200, ""); a.at("unread") != 0.0 {
		t.Fatalf("after reading all: %s", a.Body)
	}
	for _, first := range []string{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.5Z", "1970-01-01T00:00:00Z"} {
		if a := r.want(r.call(me, "GET", "/inbox?before="+first, nil), 200, ""); len(a.at("items").([]any)) != 0 || a.at("next") != nil {
			t.Errorf("before %s: %s", first, a.Body)
		}
	}
	for _, bad := range []string{"?before=x", "?before=0000-01-01T00:00:00Z", "?limit=0", "?limit=1e3"} {
		r.about = bad
		r.want(r.call(me, "GET", "/inbox"+bad, nil), 422, "invalid_request")
	}
	for _, bad := range []string{`{"through":"x"}`, `{"through":5}`, `{"through":"0001-01-01T00:00:00Z"}`, `{"all":true}`} {
		r.about = bad
		r.want(r.call(me, "POST", "/inbox/read", bad), 422, "invalid_request")
	}
}
