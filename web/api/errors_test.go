package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/web/api"
)

func TestMalformed(t *testing.T) {
	r := newFixture(t, nil)
	me := as(token(7))
	for name, c := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":            {"", 400, "malformed_json"},
		"cut off":            {`{"template_id":"1"`, 400, "malformed_json"},
		"not JSON":           {`template_id=1`, 400, "malformed_json"},
		"NaN":                {`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":NaN}]}`, 400, "malformed_json"},
		"two values":         {`{} {}`, 400, "malformed_json"},
		"invalid UTF-8":      {"{\"template_id\":\"\xff\"}", 400, "malformed_json"},
		"a NUL byte":         {"{\"template_id\":\"1\x00\"}", 400, "malformed_json"},
		"deeply nested":      {strings.Repeat("[", 20000) + strings.Repeat("]", 20000), 400, "malformed_json"},
		"only whitespace":    {" \n ", 400, "malformed_json"},
		"too large a float":  {`{"template_id":"1","shop_number":"10","reminders":[{"channel":"app","minutes":1e999}]}`, 400, "malformed_json"},
		"10 MB":              {`{"template_id":"` + strings.Repeat("1", 10<<20) + `"}`, 413, "too_large"},
		"one byte too many":  {`{"x":"` + strings.Repeat("x", 1<<20-7) + `"}`, 413, "too_large"},
		"as large as may be": {`{"x":"` + strings.Repeat("x", 1<<20-8) + `"}`, 422, "invalid_request"},
		"escaped NUL":        {`{"template_id":"\u0000","shop_number":"10","reminders":[]}`, 422, "invalid_request"},
		"half a surrogate":   {`{"template_id":"\ud800","shop_number":"10","reminders":[]}`, 422, "invalid_request"},
	} {
		r.about = name
		a := r.want(r.call(me, "POST", "/reservations", c.body), c.status, c.code)
		if a.Body.Len() > 1500 {
			t.Fatalf("%s: the refusal echoes %d bytes", name, a.Body.Len())
		}
	}
	// Without a length the limit holds while reading.
	r.about = "10 MB in chunks"
	r.want(r.call(me, "POST", "/reservations", io.MultiReader(strings.NewReader(`{"x":"`), bytes.NewReader(make([]byte, 10<<20)))), 413, "too_large")
	for kind, status := range map[string]int{"text/plain": 415, "application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415,
		"application/xml": 415, "application/json; charset=utf-8": 422, "application/merge-patch+json": 415, "nonsense": 415} {
		r.about = kind
		code := map[int]string{415: "unsupported_media_type", 422: "invalid_request"}[status]
		r.want(r.call(as(token(7), "Content-Type", kind), "POST", "/reservations", `{}`), status, code)
	}
}

func TestNoRoute(t *testing.T) {
	r := newFixture(t, nil)
	for _, path := range []string{"", "/", "/nothing", "/reservations/1/2", "/admin", "/templates", "/coupons/1/2", "//reservations"} {
		r.about = path
		r.want(r.call(as(token(7)), "GET", path, nil), 404, "not_found")
	}
	a := r.want(r.call(as(token(7)), "PUT", "/reservations", `{}`), 405, "method_not_allowed")
	if allow := strings.Join(a.Header().Values("Allow"), ","); allow != "GET, POST" {
		t.Fatalf("Allow: %s", allow)
	}
	r.want(r.call(nil, "TRACE", "/reservations", nil), 405, "method_not_allowed")
	r.want(r.call(nil, "NONSENSE", "/reservations", nil), 405, "method_not_allowed")
}

// broken stands for a store with a defect, or for a database that does not answer.
type broken struct {
	reminder.Store
	err error
}

func (b broken) Reserve(context.Context, reminder.Change) (reminder.Decision, error) {
	if b.err == nil {
		panic("password is hunter2")
	}
	return reminder.Decision{}, b.err
}

func TestDefectsAreNotShown(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		status int
		code   string
		logged string
	}{
		"unknown error": {errors.New("pq: password of hunter2 refused"), 500, "internal", "pq: password of hunter2 refused"},
		"panic":         {nil, 500, "internal", "password is hunter2"},
		"database away": {postgres.ErrUnavailable.Because("dial tcp 10.0.0.7: hunter2"), 503, "overloaded", "hunter2"},
		"out of time":   {context.DeadlineExceeded, 503, "overloaded", "deadline"},
	} {
		r := newFixture(t, func(d *api.Deps) {
			d.Drops.Reminders = &reminder.Service{Store: broken{err: c.err}, Channels: d.Drops.Channels, Now: d.Now, Templates: oneTemplate{template.Template{
				ID: 1, Stored: template.Published, Spec: template.Spec{ShopNumber: 10, OpensAt: now().Add(time.Hour), ClosesAt: now().Add(2 * time.Hour)}}}}
		})
		r.about = name
		a := r.want(r.call(as(token(7), "X-Request-ID", "abc-1"), "POST", "/reservations", reserve("1", "app", 10)), c.status, c.code)
		if strings.Contains(a.Body.String(), "hunter2") {
			t.Fatalf("%s: shown to the caller: %s", name, a.Body)
		}
		if n := strings.Count(r.logs.String(), c.logged); n < 1 || strings.Count(r.logs.String(), "\n") != 1 {
			t.Fatalf("%s: logged %q %d times: %s", name, c.logged, n, r.logs)
		}
		if c.status == 500 && (a.at("instance") != "urn:dropbell:request:abc-1" || !strings.Contains(r.logs.String(), `"request_id":"abc-1"`)) {
			t.Fatalf("%s: the request id does not tie %s to %s", name, a.Body, r.logs)
		}
		if (c.status == 503) != (a.Header().Get("Retry-After") == "1") {
			t.Fatalf("%s: Retry-After %q", name, a.Header().Get("Retry-After"))
		}
	}
}

// A client that disconnects in the middle of a body is not logged as a defect.
func TestBodyCutShort(t *testing.T) {
	r := newFixture(t, nil)
	q := httptest.NewRequest("POST", "/api/v1/reservations", io.MultiReader(strings.NewReader(`{"a`), failing{}))
	q.Header.Set("Authorization", "Bearer "+token(7))
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	if w.Code != 400 || !strings.Contains(w.Body.String(), "malformed_json") || r.logs.Len() > 0 {
		t.Fatalf("%d %s, log %s", w.Code, w.Body, r.logs)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
