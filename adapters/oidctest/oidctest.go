// Package oidctest is an identity provider in the test's own process. It signs with RS256, and
// tests can make it misbehave. Only tests import it.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"
)

// The provider's only client.
const (
	ClientID     = "console"
	ClientSecret = "only the console knows"
)

// Provider is the identity provider.
type Provider struct {
	*testing.T
	server *httptest.Server
	key    *rsa.PrivateKey // published
	signs  *rsa.PrivateKey
	now    func() time.Time

	mu     sync.Mutex
	claims map[string]any
	info   map[string]any // the userinfo endpoint's claims; nil = there is none
	down   map[string]bool
	codes  map[string]url.Values
	keyID  string
	asked  map[string]int
}

// New starts a provider that vouches for the verified address lin@example.com.
func New(t *testing.T, now func() time.Time) *Provider {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{T: t, key: key, signs: key, now: now, keyID: "one", down: map[string]bool{}, codes: map[string]url.Values{}, asked: map[string]int{},
		claims: map[string]any{"sub": "subject-1", "email": "lin@example.com", "email_verified": true}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /realm/.well-known/openid-configuration", p.discovery)
	mux.HandleFunc("GET /realm/keys", p.keys)
	mux.HandleFunc("POST /realm/token", p.token)
	mux.HandleFunc("GET /realm/userinfo", p.userinfo)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.asked[r.URL.Path]++
		down := p.down[r.URL.Path] || p.down[""]
		p.mu.Unlock()
		if down {
			http.Error(w, "try later", http.StatusServiceUnavailable)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// Issuer is the provider's name and address.
func (p *Provider) Issuer() string { return p.server.URL + "/realm" }

// Says sets one claim of every id_token from now on; nil takes it away.
func (p *Provider) Says(claim string, value any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims[claim] = value
	if value == nil {
		delete(p.claims, claim)
	}
}

// Knows gives the provider a userinfo endpoint that returns info. Call Knows before the first
// attempt, because discovery returns the endpoint's address.
func (p *Provider) Knows(info map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.info = info
}

// Down breaks one path below the issuer ("/token"), or mends it; "" = all.
func (p *Provider) Down(path string, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if path != "" {
		path = "/realm" + path
	}
	p.down[path] = down
}

// Rotate makes a new key, with which the provider signs from now on. A key that is not published
// imitates a forger.
func (p *Provider) Rotate(publish bool) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.Fatal(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signs = key
	if publish {
		p.key, p.keyID = key, p.keyID+"+"
	}
}

// Asked returns how often a path below the issuer was called.
func (p *Provider) Asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked["/realm"+path]
}

// Agree does what a person's browser does at the provider. to is the authorization address; the
// result is the address of the redirect back.
func (p *Provider) Agree(to string) *url.URL {
	p.Helper()
	u, err := url.Parse(to)
	if err != nil {
		p.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{"client_id": ClientID, "response_type": "code", "code_challenge_method": "S256", "scope": "openid email"} {
		if q.Get(name) != want {
			p.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if q.Get("nonce") == "" || q.Get("state") == "" || q.Get("code_challenge") == "" || u.Path != "/realm/authorize" {
		p.Errorf("the browser is sent to %s", to)
	}
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil {
		p.Fatal(err)
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = q
	p.mu.Unlock()
	back.RawQuery = url.Values{"state": {q.Get("state")}, "code": {code}}.Encode()
	return back
}

func (p *Provider) discovery(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	about := map[string]any{"issuer": p.Issuer(), "authorization_endpoint": p.Issuer() + "/authorize",
		"token_endpoint": p.Issuer() + "/token", "jwks_uri": p.Issuer() + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "HS256"}}
	if p.info != nil {
		about["userinfo_endpoint"] = p.Issuer() + "/userinfo"
	}
	answer(w, http.StatusOK, about)
}

// userinfo answers the bearer of an access token.
func (p *Provider) userinfo(w http.ResponseWriter, r *http.Request) {
	if len(r.Header.Get("Authorization")) <= len("Bearer ") {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, p.info)
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": p.keyID,
		"n": text(p.key.N.Bytes()), "e": text(big.NewInt(int64(p.key.E)).Bytes())}}})
}

// token accepts each code once, from the right client, with the code verifier of the browser
// that began the attempt.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret) // RFC 6749, 2.3.1
	if id != ClientID || secret != ClientSecret {
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client"})
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	begun, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if !known || text(sum[:]) != begun.Get("code_challenge") || r.PostFormValue("redirect_uri") != begun.Get("redirect_uri") {
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.Issuer(), "aud": ClientID, "iat": p.now().Unix(), "exp": p.now().Add(5 * time.Minute).Unix(), "nonce": begun.Get("nonce")}
	if begun.Get("max_age") != "" { // OpenID Connect Core 1.0, 2
		claims["auth_time"] = p.now().Unix()
	}
	maps.Copy(claims, p.claims)
	answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300, "id_token": p.sign(claims)})
}

func (p *Provider) sign(claims map[string]any) string {
	head, err := json.Marshal(map[string]string{"alg": "RS256", "typ": "JWT", "kid": p.keyID})
	if err != nil {
		p.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		p.Fatal(err)
	}
	signed := text(head) + "." + text(body)
	sum := sha256.Sum256([]byte(signed))
	sig, err := rsa.SignPKCS1v15(rand.Reader, p.signs, crypto.SHA256, sum[:])
	if err != nil {
		p.Fatal(err)
	}
	return signed + "." + text(sig)
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
