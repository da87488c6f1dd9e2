package api_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"

	"dropbell/musttest"
	"dropbell/web/api"
	"dropbell/web/api/pipeline"
)

// keyServer serves a key set that can be changed, or fail. If odd is set, its text is served as one
// more key.
type keyServer struct {
	*httptest.Server
	set  atomic.Pointer[jwk.Set]
	odd  atomic.Pointer[string]
	down atomic.Bool
	hits atomic.Int64
}

func newKeyServer(t *testing.T) *keyServer {
	s := &keyServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.hits.Add(1)
		if s.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		body, _ := json.Marshal(*s.set.Load())
		if odd := s.odd.Load(); odd != nil {
			comma := ","
			if (*s.set.Load()).Len() == 0 {
				comma = ""
			}
			body = []byte(strings.Replace(string(body), "[", "["+*odd+comma, 1))
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *keyServer) publish(t *testing.T, private map[string]any) {
	set := jwk.NewSet()
	for id, raw := range private {
		key, err := jwk.Import(raw)
		musttest.OK(t, err)
		_ = key.Set(jwk.KeyIDKey, id)
		if raw, ok := raw.([]byte); !ok || raw == nil {
			if key, err = jwk.PublicKeyOf(key); err != nil {
				t.Fatal(err)
			}
		}
		_ = set.AddKey(key)
	}
	s.set.Store(&set)
}

func named(t *testing.T, id string, raw any) jwk.Key {
	key, err := jwk.Import(raw)
	musttest.OK(t, err)
	_ = key.Set(jwk.KeyIDKey, id)
	return key
}

// twoRSAKeys returns the same two keys to all tests: making a key takes seconds under the race
// detector.
var twoRSAKeys = sync.OnceValues(func() (one, other *rsa.PrivateKey) {
	for _, key := range []**rsa.PrivateKey{&one, &other} {
		var err error
		if *key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			panic(err)
		}
	}
	return one, other
})

func TestKeySet(t *testing.T) {
	rsaKey, stranger := twoRSAKeys()
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	server := newKeyServer(t)
	server.publish(t, map[string]any{"r": rsaKey, "e": ecKey, "s": []byte(secret)})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newFixture(t, func(d *api.Deps) {
		tokens, err := pipeline.NewTokens(ctx, pipeline.TokenOptions{JWKSURL: server.URL, Issuer: "shop", Audience: "dropbell", Now: d.Now, Log: d.Log})
		musttest.OK(t, err)
		d.Tokens = tokens
	})
	good := map[string]any{"sub": "7", "exp": in(time.Hour), "iss": "shop", "aud": []string{"dropbell"}}
	r.want(r.call(as(sign(jwa.RS256(), named(t, "r", rsaKey), good)), "GET", "/reservations", nil), 200, "")
	r.want(r.call(as(sign(jwa.PS256(), named(t, "r", rsaKey), good)), "GET", "/reservations", nil), 200, "")
	r.want(r.call(as(sign(jwa.ES256(), named(t, "e", ecKey), good)), "GET", "/reservations", nil), 200, "")

	der, _ := x509.MarshalPKIXPublicKey(&rsaKey.PublicKey)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	for name, credential := range map[string]string{
		"public key as HMAC secret": sign(jwa.HS256(), public, good),
		"public DER as HMAC secret": sign(jwa.HS256(), der, good),
		"symmetric key of the set":  sign(jwa.HS256(), named(t, "s", []byte(secret)), good),
		"another's key":             sign(jwa.RS256(), named(t, "r", stranger), good),
		"alg none":                  unsigned(`{"alg":"none","kid":"r"}`, good),
		"another issuer":            sign(jwa.RS256(), named(t, "r", rsaKey), map[string]any{"sub": "7", "exp": in(time.Hour), "iss": "x", "aud": "dropbell"}),
		"another audience":          sign(jwa.RS256(), named(t, "r", rsaKey), map[string]any{"sub": "7", "exp": in(time.Hour), "iss": "shop", "aud": "x"}),
		"no audience":               sign(jwa.RS256(), named(t, "r", rsaKey), map[string]any{"sub": "7", "exp": in(time.Hour), "iss": "shop"}),
	} {
		r.about = name
		r.want(r.call(as(credential), "GET", "/reservations", nil), 401, "unauthenticated")
	}
	if n := server.hits.Load(); n > 3 {
		t.Fatalf("strangers' tokens made %d requests to the key server", n)
	}

	fresh := stranger
	server.publish(t, map[string]any{"n": fresh})
	r.late.Store(int64(time.Minute)) // past the pause between refreshes
	rotated := sign(jwa.RS256(), named(t, "n", fresh), map[string]any{"sub": "9", "exp": in(time.Hour), "iss": "shop", "aud": "dropbell"})
	r.want(r.call(as(rotated), "GET", "/reservations", nil), 200, "")
}

// Unusable keys do not prevent the use of the others.
func TestKeySetWithUnusableKeys(t *testing.T) {
	rsaKey, _ := twoRSAKeys()
	ecKey, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	_, edKey, _ := ed25519.GenerateKey(rand.Reader)
	fresh, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	// 1024 bits: the key is too short, and a log must not hold it.
	short := base64.RawURLEncoding.EncodeToString(rsaKey.N.Bytes()[:128])
	x := base64.RawURLEncoding.EncodeToString(make([]byte, 31)) + "AQ"
	claims := map[string]any{"sub": "7", "exp": in(time.Hour)}
	for name, odd := range map[string]string{
		"unknown kind":  `{"kty":"weird","kid":"w"}`,
		"unknown curve": `{"kty":"EC","kid":"w","crv":"secp256k1","x":"` + x + `","y":"` + x + `"}`,
		"no point":      `{"kty":"EC","kid":"w","crv":"P-256","x":"` + x + `","y":"` + x + `"}`,
		"short":         `{"kty":"RSA","kid":"w","e":"AQAB","n":"` + short + `"}`,
		"not base64":    `{"kty":"RSA","kid":"w","e":"AQAB","n":"!!!"}`,
		"no object":     `7`,
		"empty":         `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			server := newKeyServer(t)
			server.odd.Store(&odd)
			server.publish(t, map[string]any{"r": rsaKey, "e": ecKey, "d": edKey})
			r := newFixture(t, func(d *api.Deps) {
				var err error
				if d.Tokens, err = pipeline.NewTokens(t.Context(), pipeline.TokenOptions{JWKSURL: server.URL, Now: d.Now, Log: d.Log}); err != nil {
					t.Fatal(err)
				}
			})
			ask := func(status int, code string, alg jwa.SignatureAlgorithm, id string, key any) {
				t.Helper()
				r.want(r.call(as(sign(alg, named(t, id, key), claims)), "GET", "/reservations", nil), status, code)
			}
			ask(200, "", jwa.RS256(), "r", rsaKey)
			ask(200, "", jwa.ES256(), "e", ecKey)
			ask(200, "", jwa.EdDSA(), "d", edKey)
			if log := r.logs.String(); strings.Count(log, "were skipped") != 1 || !strings.Contains(log, `"skipped":1,"used":3`) || strings.Contains(log, short[:20]) {
				t.Errorf("the log says %s", log)
			}
			server.publish(t, map[string]any{"n": fresh})
			r.late.Store(int64(time.Minute))
			ask(200, "", jwa.ES256(), "n", fresh)

			server.publish(t, nil)
			other := newFixture(t, func(d *api.Deps) {
				d.Tokens, _ = pipeline.NewTokens(t.Context(), pipeline.TokenOptions{JWKSURL: server.URL, Now: d.Now, Log: d.Log})
			})
			r = other
			ask(503, "overloaded", jwa.ES256(), "n", fresh)
		})
	}
}

func TestKeyServerDown(t *testing.T) {
	key, _ := twoRSAKeys()
	server := newKeyServer(t)
	server.publish(t, map[string]any{"r": key})
	server.down.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := newFixture(t, func(d *api.Deps) {
		d.Tokens, _ = pipeline.NewTokens(ctx, pipeline.TokenOptions{JWKSURL: server.URL, Now: d.Now, Log: d.Log})
	})
	who := as(sign(jwa.RS256(), named(t, "r", key), map[string]any{"sub": "7", "exp": in(time.Hour)}))
	a := r.want(r.call(who, "GET", "/reservations", nil), 503, "overloaded")
	if a.Header().Get("Retry-After") == "" || strings.Contains(a.Body.String(), server.URL) {
		t.Fatalf("503 says %v %s", a.Header(), a.Body)
	}
	server.down.Store(false)
	r.late.Store(int64(time.Minute))
	r.want(r.call(who, "GET", "/reservations", nil), 200, "")
}
