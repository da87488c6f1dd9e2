package api_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"

	"dropbell/domain/staff"
	"dropbell/web/api"
)

func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func unsigned(header string, claims map[string]any) string {
	c, _ := json.Marshal(claims)
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc(c) + "."
}

func TestTokens(t *testing.T) {
	r := newFixture(t, nil)
	good := map[string]any{"sub": "7", "exp": in(time.Hour)}
	with := func(k string, v any) map[string]any {
		m := map[string]any{"sub": "7", "exp": in(time.Hour)}
		if m[k] = v; v == nil {
			delete(m, k)
		}
		return m
	}
	hs := func(claims map[string]any) string { return sign(jwa.HS256(), []byte(secret), claims) }
	valid := hs(good)
	tampered := strings.Split(valid, ".")
	tampered[1] = base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"8","exp":99999999999}`))
	for name, credential := range map[string]string{
		"expired":               hs(with("exp", in(-time.Minute))),
		"no exp":                hs(with("exp", nil)),
		"not valid yet":         hs(with("nbf", in(time.Hour))),
		"no sub":                hs(with("sub", nil)),
		"sub 0":                 hs(with("sub", "0")),
		"sub is a name":         hs(with("sub", "ann")),
		"sub overflows":         hs(with("sub", "9223372036854775808")),
		"wrong key":             sign(jwa.HS256(), []byte("another-secret-of-32-bytes-for-it"), good),
		"HS512 with our secret": sign(jwa.HS512(), []byte(secret), good),
		"alg none":              unsigned(`{"alg":"none"}`, good),
		"alg None":              unsigned(`{"alg":"None"}`, good),
		"alg HS256 unsigned":    unsigned(`{"alg":"HS256"}`, good),
		"no alg":                unsigned(`{}`, good),
		"claims exchanged":      strings.Join(tampered, "."),
		"cut off":               valid[:len(valid)-3],
		"not a token":           "a.b.c",
		"empty parts":           "..",
		"10 MB":                 strings.Repeat("a", 5<<20) + ".b." + strings.Repeat("c", 5<<20),
		"unknown key":           staff.NewSecret(),
		"half a key":            "dbk_",
	} {
		r.about = name
		a := r.want(r.call(as(credential), "GET", "/reservations", nil), 401, "unauthenticated")
		if !strings.HasPrefix(a.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Fatalf("%s: 401 without WWW-Authenticate", name)
		}
		if len(credential) > 20 && strings.Contains(a.Body.String(), credential) {
			t.Fatalf("%s: the credential is echoed", name)
		}
	}
	for name, h := range map[string]string{"none": "", "basic": "Basic dXNlcjpwYXNz", "no credential": "Bearer ", "no scheme": valid} {
		r.about = name
		r.want(r.call(map[string][]string{"Authorization": {h}}, "GET", "/reservations", nil), 401, "unauthenticated")
	}
	r.want(r.call(as(hs(with("exp", in(-10*time.Second)))), "GET", "/reservations", nil), 200, "") // within the leeway
	r.want(r.call(as(valid), "GET", "/reservations", nil), 200, "")
	r.want(r.call(http.Header{"Authorization": {"bearer " + valid}}, "GET", "/reservations", nil), 200, "")
	if strings.Contains(r.logs.String(), valid) {
		t.Fatal("a token is in the log")
	}
}

// A token that was verified once is remembered, but not beyond its end.
func TestRememberedTokenExpires(t *testing.T) {
	r := newFixture(t, nil)
	credential := sign(jwa.HS256(), []byte(secret), map[string]any{"sub": "7", "exp": in(time.Minute)})
	r.want(r.call(as(credential), "GET", "/reservations", nil), 200, "")
	r.late.Store(int64(2 * time.Minute))
	r.want(r.call(as(credential), "GET", "/reservations", nil), 401, "unauthenticated")
}

func testServiceKeys(t *testing.T) {
	r := newFixture(t, nil)
	past, soon := now().Add(-time.Minute), now().Add(time.Minute)
	expired := r.key(staff.Key{Scopes: staff.Scopes(), ExpiresAt: &past})
	expiring := r.key(staff.Key{Scopes: staff.Scopes(), ExpiresAt: &soon})
	r.want(r.call(as(expired), "GET", "/admin/templates", nil), 401, "unauthenticated")
	r.want(r.call(as(expiring), "GET", "/admin/templates", nil), 200, "")
	for who, h := range map[string]http.Header{
		"a user": as(token(1)), "payment": as(r.keys[staff.ScopePayment]), "act-as-user": as(r.keys[staff.ScopeActAsUser], "X-User-ID", "1"),
	} {
		r.about = who
		r.want(r.call(h, "GET", "/admin/templates", nil), 403, "forbidden")
		r.want(r.call(h, "POST", "/admin/templates", wish(time.Hour)), 403, "forbidden")
		r.want(r.call(h, "PUT", "/admin/users", `{"id":"1"}`), 403, "forbidden")
	}
	reader := as(r.keys[staff.ScopeRead])
	id := r.draft(2 * time.Hour)
	r.want(r.call(reader, "GET", "/admin/templates/"+id, nil), 200, "")
	r.want(r.call(reader, "POST", "/admin/templates", wish(time.Hour)), 403, "forbidden")
	r.want(r.call(reader, "POST", "/admin/templates/"+id+"/publish", nil), 403, "forbidden")
	r.want(r.call(reader, "PUT", "/admin/users", `{"id":"1"}`), 403, "forbidden")
	r.want(r.call(reader, "PUT", "/admin/shops/10", map[string]any{"name": "x", "timezone": "UTC"}), 403, "forbidden")
	if n := r.number(`select count(*) from api_keys where last_used_at is not null`); n != 5 {
		t.Fatalf("the use of %d keys was recorded, want 5", n)
	}
	r.late.Store(int64(2 * time.Minute))
	r.want(r.call(as(expiring), "GET", "/admin/templates", nil), 401, "unauthenticated")
}

// For every operation of the document, a key without the right to change anything is refused before
// errors in the change are reported.
func TestScopesComeFirst(t *testing.T) {
	r := newFixture(t, nil)
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		}
	}
	a := httptest.NewRecorder()
	r.ServeHTTP(a, httptest.NewRequest("GET", "/openapi.json", nil))
	r.must(json.Unmarshal(a.Body.Bytes(), &doc))
	reading := map[string]bool{"estimate-segment": true, "replay-dead-letters": true, "discard-dead-letters": true}
	tried := 0
	for path, methods := range doc.Paths {
		path = strings.TrimPrefix(path, "/api/v1")
		if !strings.HasPrefix(path, "/admin/") {
			continue
		}
		path = strings.NewReplacer("{id}", "x", "{number}", "x", "{batch}", "x", "{user_id}", "x").Replace(path)
		for method, op := range methods {
			method = strings.ToUpper(method)
			if method == "GET" || reading[op.OperationID] {
				continue
			}
			tried++
			for _, body := range []string{`{"nonsense":1}`, `{`, ``} {
				r.about = method + " " + path + " " + body
				r.want(r.call(as(r.keys[staff.ScopeRead]), method, path, body), 403, "forbidden")
				r.want(r.call(as(r.keys[staff.ScopePayment]), method, path, body), 403, "forbidden")
			}
		}
	}
	if tried < 20 {
		t.Fatalf("%d operations were tried", tried)
	}
	r.about = "reading"
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", "/admin/segments/estimate", `{"rule":{"all":[]}}`), 200, "")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", "/admin/segments/estimate", `{"nonsense":1}`), 422, "invalid_request")
	r.want(r.call(as(r.keys[staff.ScopeRead]), "POST", "/admin/dead-letters/replay", `{"filter":{},"dry_run":true}`), 200, "")
}

func TestRevokedKey(t *testing.T) {
	r := newFixture(t, nil)
	r.want(r.call(r.admin(), "GET", "/admin/templates", nil), 200, "")
	r.exec(`update api_keys set revoked_at = now()`)
	for deadline := time.Now().Add(20 * time.Second); ; {
		if a := r.call(r.admin(), "GET", "/admin/templates", nil); a.Code == 401 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a revoked key still works after 20 s")
		}
	}
}

// Guessing is slowed down, and only guessing.
func TestGuessing(t *testing.T) {
	r := newFixture(t, nil)
	var last answer
	for range 70 {
		last = r.call(as(staff.NewSecret()), "GET", "/reservations", nil)
	}
	r.want(last, 429, "rate_limited")
	if last.Header().Get("Retry-After") == "" {
		t.Fatal("429 without Retry-After")
	}
	r.want(r.call(as(token(1)), "GET", "/reservations", nil), 200, "")
	r.want(r.call(nil, "GET", "/reservations", nil), 401, "unauthenticated")
}

func testRateLimit(t *testing.T) {
	begun, late := now(), atomic.Int64{} // a clock that stands still, however long the requests take
	r := newFixture(t, func(d *api.Deps) {
		d.UserLimit, d.KeyLimit = 3, 0
		d.Now = func() time.Time { return begun.Add(time.Duration(late.Load())) }
	})
	for i := range 3 {
		a := r.want(r.call(as(token(1)), "GET", "/reservations", nil), 200, "")
		if got := a.Header().Get("RateLimit-Remaining"); got != []string{"2", "1", "0"}[i] || a.Header().Get("RateLimit-Limit") != "3" {
			t.Fatalf("after %d: %v", i+1, a.Header())
		}
	}
	a := r.want(r.call(as(token(1)), "GET", "/reservations", nil), 429, "rate_limited")
	if s := a.Header().Get("Retry-After"); s != "20" {
		t.Fatalf("Retry-After %q of 3 a minute, want 20", s)
	}
	r.want(r.call(as(token(2)), "GET", "/reservations", nil), 200, "")
	for range 10 {
		r.want(r.call(as(r.keys[staff.ScopeActAsUser], "X-User-ID", "1"), "GET", "/reservations", nil), 200, "")
	}
	late.Store(int64(20 * time.Second))
	r.want(r.call(as(token(1)), "GET", "/reservations", nil), 200, "")
	r.want(r.call(as(token(1)), "GET", "/reservations", nil), 429, "rate_limited")
	for range 3 {
		r.want(r.call(nil, "GET", "/templates/1", nil), 404, "template_not_found")
	}
	r.want(r.call(nil, "GET", "/templates/1", nil), 429, "rate_limited")
}
