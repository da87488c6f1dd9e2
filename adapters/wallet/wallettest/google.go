package wallettest

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"dropbell/adapters/sender/providertest"
)

// Google imitates the Google Wallet API: the token endpoint of a service account, links
// that save a pass, and changes of saved offers.
type Google struct {
	providertest.ServiceAccount
	URL, Issuer string

	server *httptest.Server

	mu      sync.Mutex
	objects map[string]map[string]any
	fails   []answer
	after   string
	// Calls counts changes that were asked for.
	calls int
}

// NewGoogle starts an imitation; close it with Close.
func NewGoogle(issuer string) (*Google, error) {
	g := &Google{Issuer: issuer, objects: map[string]map[string]any{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", g.Issue)
	mux.HandleFunc("PATCH /walletobjects/v1/offerObject/{id}", g.patch)
	g.server = httptest.NewServer(mux)
	g.URL = g.server.URL
	return g, g.Make("passes@shop.example", "shop", "https://www.googleapis.com/auth/wallet_object.issuer", g.URL+"/token")
}

// Close stops it.
func (g *Google) Close() { g.server.Close() }

func (g *Google) verified(token string) ([]byte, error) {
	return jws.Verify([]byte(token), jws.WithKey(jwa.RS256(), &g.Key.PublicKey))
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
	case !g.Authorized(r):
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

// Save does what Google does when the owner follows the link: Save verifies the signed pass and
// stores its offer.
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
	if claims.Issuer != g.Email || claims.Audience != "google" || claims.Type != "savetowallet" || len(claims.Payload.Objects) != 1 || len(claims.Payload.Classes) != 1 {
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
