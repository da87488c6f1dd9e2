package wallettest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
)

// access is the token that the imitation issues.
const access = "ya29.imitated"

// Google imitates the Google Wallet API: the token endpoint of a service account, links
// that save a pass, and changes of saved offers.
type Google struct {
	URL, Issuer string
	// Account is the JSON file of the service account.
	Account []byte

	server *httptest.Server
	key    *rsa.PrivateKey

	mu      sync.Mutex
	objects map[string]map[string]any
	fails   []answer
	after   string
	// Calls counts changes that were asked for.
	calls int
}

// NewGoogle starts an imitation; close it with Close.
func NewGoogle(issuer string) (*Google, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	g := &Google{Issuer: issuer, key: key, objects: map[string]map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", g.token)
	mux.HandleFunc("PATCH /walletobjects/v1/offerObject/{id}", g.patch)
	g.server = httptest.NewServer(mux)
	g.URL = g.server.URL
	g.Account, err = json.Marshal(map[string]string{"type": "service_account", "project_id": "shop", "private_key_id": "k1", "client_email": "passes@shop.example",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), "token_uri": g.URL + "/token"})
	return g, err
}

// Close stops it.
func (g *Google) Close() { g.server.Close() }

func (g *Google) verified(token string) ([]byte, error) {
	return jws.Verify([]byte(token), jws.WithKey(jwa.RS256(), &g.key.PublicKey))
}

func (g *Google) token(w http.ResponseWriter, r *http.Request) {
	payload, err := g.verified(r.FormValue("assertion"))
	var claims struct {
		Scope string `json:"scope"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil || !strings.Contains(claims.Scope, "wallet_object.issuer") {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant"}`))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"access_token":"` + access + `","token_type":"Bearer","expires_in":3600}`))
}

// Fail makes the next changes be answered so, one each.
func (g *Google) Fail(retryAfter string, statuses ...int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.after = retryAfter
	for _, status := range statuses {
		g.fails = append(g.fails, answer{status: status})
	}
}

func (g *Google) patch(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls++
	refuse := func(status int) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"code":` + http.StatusText(status) + `}}`))
	}
	if len(g.fails) > 0 {
		status := g.fails[0].status
		g.fails = g.fails[1:]
		w.Header().Set("Retry-After", g.after)
		refuse(status)
		return
	}
	object := g.objects[r.PathValue("id")]
	var change map[string]any
	switch {
	case r.Header.Get("Authorization") != "Bearer "+access:
		refuse(http.StatusUnauthorized)
	case object == nil:
		refuse(http.StatusNotFound)
	case json.NewDecoder(r.Body).Decode(&change) != nil:
		refuse(http.StatusBadRequest)
	default:
		object["state"] = change["state"]
		_ = json.NewEncoder(w).Encode(object)
	}
}

// Save does what Google does when the owner follows the link: it verifies the signed
// pass and stores its offer.
func (g *Google) Save(link string) (class, object map[string]any, err error) {
	token, ok := strings.CutPrefix(link, "https://pay.google.com/gp/v/save/")
	if !ok {
		return nil, nil, errors.New("not the address that saves passes")
	}
	payload, err := g.verified(token)
	if err != nil {
		return nil, nil, err
	}
	var claims struct {
		Issuer   string `json:"iss"`
		Audience string `json:"aud"`
		Type     string `json:"typ"`
		Payload  struct {
			Classes []map[string]any `json:"offerClasses"`
			Objects []map[string]any `json:"offerObjects"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return nil, nil, err
	}
	if claims.Issuer != "passes@shop.example" || claims.Audience != "google" || claims.Type != "savetowallet" || len(claims.Payload.Objects) != 1 || len(claims.Payload.Classes) != 1 {
		return nil, nil, errors.New("not a pass to be saved: " + string(payload))
	}
	class, object = claims.Payload.Classes[0], claims.Payload.Objects[0]
	for _, required := range []string{"id", "issuerName", "title", "provider", "redemptionChannel", "reviewStatus"} {
		if class[required] == "" || class[required] == nil {
			return nil, nil, errors.New("the class lacks " + required)
		}
	}
	id, _ := object["id"].(string)
	if object["classId"] != class["id"] || !strings.HasPrefix(id, g.Issuer+".") {
		return nil, nil, errors.New("the ids do not fit")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.objects[id] = object
	return class, object, nil
}

// State returns the state of a saved offer, and how many changes were asked for.
func (g *Google) State(id string) (state string, calls int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	state, _ = g.objects[id]["state"].(string)
	return state, g.calls
}
