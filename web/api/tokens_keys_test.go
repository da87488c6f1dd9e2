package api_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"dropbell/musttest"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	musttest.OK(t, err)
	return key
}

// withKeys returns a fixture that trusts the keys of server. change is applied to the options
// first.
func withKeys(t *testing.T, server *keyServer, change func(*pipeline.TokenOptions)) *fixture {
	t.Helper()
	return newFixture(t, func(d *api.Deps) {
		o := pipeline.TokenOptions{JWKSURL: server.URL, Now: d.Now, Log: d.Log}
		if change != nil {
			change(&o)
		}
		tokens, err := pipeline.NewTokens(t.Context(), o)
		musttest.OK(t, err)
		d.Tokens = tokens
	})
}

// signHead signs claims under a header with more than alg.
func signHead(t *testing.T, key jwk.Key, header, claims map[string]any) string {
	t.Helper()
	payload := jwt.New()
	for name, value := range claims {
		musttest.OK(t, payload.Set(name, value))
	}
	head := jws.NewHeaders()
	for name, value := range header {
		musttest.OK(t, head.Set(name, value))
	}
	signed, err := jwt.Sign(payload, jwt.WithKey(jwa.ES256(), key, jws.WithProtectedHeaders(head)))
	musttest.OK(t, err)
	return string(signed)
}

// A verified and cached token ends with its key: once a key set was fetched without the key, or
// with another key under its id.
func TestTokenEndsWithItsKey(t *testing.T) {
	old, kept, fresh := ecKey(t), ecKey(t), ecKey(t)
	claims := map[string]any{"sub": "7", "exp": in(time.Hour)}
	for name, after := range map[string]map[string]any{
		"withdrawn":                 {"kept": kept, "fresh": fresh},
		"another key under its id":  {"kept": kept, "fresh": fresh, "old": ecKey(t)},
		"all others withdrawn, too": {"fresh": fresh},
	} {
		t.Run(name, func(t *testing.T) {
			server := newKeyServer(t)
			server.publish(t, map[string]any{"old": old, "kept": kept})
			r := withKeys(t, server, nil)
			withOld, withKept := as(sign(jwa.ES256(), named(t, "old", old), claims)), as(sign(jwa.ES256(), named(t, "kept", kept), claims))
			for range 2 { // the second time from memory
				r.want(r.call(withOld, "GET", "/reservations", nil), 200, "")
				r.want(r.call(withKept, "GET", "/reservations", nil), 200, "")
			}
			server.publish(t, after)
			r.late.Store(int64(time.Minute)) // past the pause between refreshes
			r.want(r.call(as(sign(jwa.ES256(), named(t, "fresh", fresh), claims)), "GET", "/reservations", nil), 200, "")
			r.want(r.call(withOld, "GET", "/reservations", nil), 401, "unauthenticated")
			if _, ok := after["kept"]; ok {
				hits := server.hits.Load()
				r.want(r.call(withKept, "GET", "/reservations", nil), 200, "")
				if server.hits.Load() != hits {
					t.Error("a key that stayed was asked for again")
				}
			}
		})
	}
}

// A set without keys withdraws all keys. While the server cannot be reached, or sends an invalid
// answer, the last set stays valid.
func TestKeySetBecomesEmpty(t *testing.T) {
	key := ecKey(t)
	server := newKeyServer(t)
	server.publish(t, map[string]any{"k": key})
	r := withKeys(t, server, nil)
	claims := map[string]any{"sub": "7", "exp": in(time.Hour)}
	good := as(sign(jwa.ES256(), named(t, "k", key), claims))
	unknown := as(sign(jwa.ES256(), named(t, "x", ecKey(t)), claims)) // makes it fetch the set again
	r.want(r.call(good, "GET", "/reservations", nil), 200, "")
	server.down.Store(true)
	r.late.Store(int64(time.Minute))
	r.want(r.call(unknown, "GET", "/reservations", nil), 503, "overloaded")
	r.want(r.call(good, "GET", "/reservations", nil), 200, "")
	server.down.Store(false)
	server.publish(t, nil)
	r.late.Store(int64(2 * time.Minute))
	r.want(r.call(unknown, "GET", "/reservations", nil), 503, "overloaded")
	r.want(r.call(good, "GET", "/reservations", nil), 503, "overloaded")
}

// A stream that a withdrawn key has opened ends at a heartbeat.
func TestStreamEndsWithItsKey(t *testing.T) {
	old, fresh := ecKey(t), ecKey(t)
	server := newKeyServer(t)
	server.publish(t, map[string]any{"old": old})
	r := withKeys(t, server, nil)
	r.hub.Heartbeat = 10 * time.Millisecond
	site := httptest.NewServer(r)
	defer site.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	q, _ := http.NewRequestWithContext(ctx, "GET", site.URL+"/api/v1/inbox/stream", nil)
	claims := map[string]any{"sub": "7", "exp": in(time.Hour)}
	q.Header = as(sign(jwa.ES256(), named(t, "old", old), claims))
	answer, err := http.DefaultClient.Do(q)
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v %v", answer, err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "still here") {
	}
	server.publish(t, map[string]any{"fresh": fresh})
	r.late.Store(int64(time.Minute))
	r.want(r.call(as(sign(jwa.ES256(), named(t, "fresh", fresh), claims)), "GET", "/reservations", nil), 200, "")
	for lines.Scan() {
	}
	if ctx.Err() != nil {
		t.Fatal("the stream goes on")
	}
}

func TestTokensOfAnIdentityProvider(t *testing.T) {
	key := ecKey(t)
	server := newKeyServer(t)
	server.publish(t, map[string]any{"k": key})
	r := withKeys(t, server, func(o *pipeline.TokenOptions) { o.Issuer, o.Audience, o.MaxAge = "shop", "dropbell", 24*time.Hour })
	open := withKeys(t, server, func(o *pipeline.TokenOptions) { o.MaxAge = 24 * time.Hour })
	type set = map[string]any
	for name, c := range map[string]struct {
		header, claims set
		status         int
		anywhere       bool // refused without issuer and audience, too
	}{
		"no typ":                     {nil, nil, 200, false},
		"JWT":                        {set{"typ": "JWT"}, nil, 200, false},
		"at+jwt":                     {set{"typ": "at+jwt"}, nil, 200, false},
		"application/at+jwt":         {set{"typ": "application/AT+JWT"}, set{"nonce": "n"}, 200, false},
		"several audiences":          {nil, set{"aud": []string{"x", "dropbell"}}, 200, false},
		"Bearer of Keycloak":         {set{"typ": "JWT"}, set{"typ": "Bearer", "nonce": "n"}, 200, false},
		"access of Cognito":          {nil, set{"token_use": "access"}, 200, false},
		"log-out token":              {set{"typ": "logout+jwt"}, nil, 401, false},
		"nonce":                      {set{"typ": "JWT"}, set{"nonce": "n"}, 401, false},
		"at_hash":                    {nil, set{"at_hash": "h"}, 401, false},
		"ID of Keycloak":             {set{"typ": "JWT"}, set{"typ": "ID"}, 401, false},
		"id of Cognito":              {nil, set{"token_use": "id"}, 401, false},
		"another audience":           {nil, set{"aud": "x"}, 401, false},
		"another issuer":             {nil, set{"iss": "x"}, 401, false},
		"crit":                       {set{"crit": []string{"exp"}, "exp": 1}, nil, 401, true},
		"crit of nobody":             {set{"crit": []string{"x-mfa"}, "x-mfa": true}, nil, 401, true},
		"crit that is empty":         {set{"crit": []string{}}, nil, 401, true},
		"issued yesterday":           {nil, set{"iat": in(-25 * time.Hour)}, 401, true},
		"no iat, for a day":          {nil, set{"iat": nil}, 200, false},
		"no iat, for two days":       {nil, set{"iat": nil, "exp": in(48 * time.Hour)}, 401, true},
		"issued now, for a year":     {nil, set{"exp": in(365 * 24 * time.Hour)}, 200, false},
		"issued in the far past":     {nil, set{"iat": 1}, 401, true},
		"typ is a number in claims":  {nil, set{"typ": 7}, 200, false},
		"nonce within another claim": {nil, set{"x": set{"nonce": 1}}, 200, false},
	} {
		claims := set{"sub": "7", "exp": in(time.Hour), "iat": in(0), "iss": "shop", "aud": "dropbell"}
		for k, v := range c.claims {
			if claims[k] = v; v == nil {
				delete(claims, k)
			}
		}
		credential := as(signHead(t, named(t, "k", key), c.header, claims))
		r.about, open.about = name, name+", neither issuer nor audience"
		want := map[int]string{401: "unauthenticated"}
		r.want(r.call(credential, "GET", "/reservations", nil), c.status, want[c.status])
		if c.anywhere {
			open.want(open.call(credential, "GET", "/reservations", nil), 401, "unauthenticated")
		} else {
			open.want(open.call(credential, "GET", "/reservations", nil), 200, "")
		}
	}
}

// Tokens made with the shared secret: without iat they last until exp, however distant. With iat
// they last no longer than the maximum age, cached or not.
func TestAgeOfSharedSecretTokens(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) {
		var err error
		if d.Tokens, err = pipeline.NewTokens(t.Context(), pipeline.TokenOptions{Secret: secret, MaxAge: 24 * time.Hour, Now: d.Now, Log: d.Log}); err != nil {
			t.Fatal(err)
		}
	})
	year := in(365 * 24 * time.Hour)
	hs := func(claims map[string]any) http.Header { return as(sign(jwa.HS256(), []byte(secret), claims)) }
	undated, dated := hs(map[string]any{"sub": "7", "exp": year}), hs(map[string]any{"sub": "7", "exp": year, "iat": in(0)})
	r.want(r.call(undated, "GET", "/reservations", nil), 200, "")
	r.want(r.call(dated, "GET", "/reservations", nil), 200, "")
	r.want(r.call(hs(map[string]any{"sub": "7", "exp": year, "iat": in(-25 * time.Hour)}), "GET", "/reservations", nil), 401, "unauthenticated")
	r.late.Store(int64(25 * time.Hour))
	r.want(r.call(undated, "GET", "/reservations", nil), 200, "")
	r.want(r.call(dated, "GET", "/reservations", nil), 401, "unauthenticated")
}
