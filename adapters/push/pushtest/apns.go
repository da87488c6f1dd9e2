// Package pushtest imitates the push services of Apple and Google by their published
// protocols, for tests, benchmarks and the demo: it accepts and refuses the same
// requests, with the status, headers and bodies of their answers.
package pushtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"dropbell/adapters/sender/providertest"
)

// A Push is one push that a service accepted.
type Push struct {
	Token  string
	Header http.Header
	Body   []byte
}

// A Fault is an answer of a service that refuses a push.
type Fault struct {
	Status     int
	Reason     string
	RetryAfter string
	// Since is when the app was removed, of a 410 by Apple.
	Since time.Time
}

// pushes is the common part of the fakes.
type pushes struct {
	providertest.Fake[Push, Fault]
}

func (p *pushes) accept(push Push) { p.Fake.Accept(func(int) Push { return push }) }

// Pushes returns the accepted pushes so far.
func (p *pushes) Pushes() []Push { return p.Accepted() }

// APNs imitates the Apple Push Notification service, over HTTP/2 without TLS.
type APNs struct {
	pushes
	// Key is the .p8 file of the team, KeyID, TeamID and Topic its names.
	Key                  []byte
	KeyID, TeamID, Topic string
	// Now is its clock.
	Now func() time.Time

	key   *ecdsa.PrivateKey
	known sync.Map // tokens found valid, and when they were issued
	// Tokens counts the provider tokens that it has seen.
	tokens sync.Map
	// channels serves broadcast channels; see [APNs.Channels].
	channels atomic.Pointer[http.ServeMux]
}

// NewAPNs starts an imitation; close it with Close.
func NewAPNs() (*APNs, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	a := &APNs{key: key, Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
		KeyID: "ABC123DEFG", TeamID: "DEF123GHIJ", Topic: "com.example.shop", Now: time.Now}
	a.StartHTTP2(a)
	return a, nil
}

// ProviderTokens returns how many different provider tokens were valid.
func (a *APNs) ProviderTokens() (n int) {
	a.tokens.Range(func(any, any) bool { n++; return true })
	return n
}

// ServeHTTP answers one push.
func (a *APNs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if mux := a.channels.Load(); mux != nil {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
	}
	id := r.Header.Get("apns-id")
	if _, err := uuid.Parse(id); id != "" && err != nil {
		a.refuse(w, Fault{Status: 400, Reason: "BadMessageId"})
		return
	}
	if id == "" {
		id = uuid.NewString()
	}
	w.Header().Set("apns-id", id)
	body, _ := io.ReadAll(r.Body)
	token, ok := strings.CutPrefix(r.URL.Path, "/3/device/")
	if fault := a.judge(r, token, ok, body); fault.Status != 0 {
		a.refuse(w, fault)
		return
	}
	a.accept(Push{Token: token, Header: r.Header.Clone(), Body: body})
	w.WriteHeader(http.StatusOK)
}

// judge checks a push in the order of Apple's table of errors.
func (a *APNs) judge(r *http.Request, token string, path bool, body []byte) Fault {
	var note struct {
		APS *struct {
			Alert any `json:"alert"`
		} `json:"aps"`
	}
	raw, notHex := hex.DecodeString(token)
	expiration := r.Header.Get("apns-expiration")
	_, badExpiration := strconv.ParseInt(expiration, 10, 64)
	switch {
	case r.ProtoMajor != 2:
		return Fault{Status: http.StatusHTTPVersionNotSupported}
	case r.Method != http.MethodPost:
		return Fault{Status: 405, Reason: "MethodNotAllowed"}
	case !path:
		return Fault{Status: 404, Reason: "BadPath"}
	case token == "":
		return Fault{Status: 400, Reason: "MissingDeviceToken"}
	case r.Header.Get("apns-topic") == "":
		return Fault{Status: 400, Reason: "MissingTopic"}
	case r.Header.Get("apns-topic") != a.Topic:
		return Fault{Status: 400, Reason: "TopicDisallowed"}
	case r.Header.Get("apns-push-type") != "alert":
		return Fault{Status: 400, Reason: "InvalidPushType"}
	case expiration != "" && badExpiration != nil:
		return Fault{Status: 400, Reason: "BadExpirationDate"}
	case len(r.Header.Get("apns-collapse-id")) > 64:
		return Fault{Status: 400, Reason: "BadCollapseId"}
	case r.Header.Get("apns-priority") != "10" && r.Header.Get("apns-priority") != "5":
		return Fault{Status: 400, Reason: "BadPriority"}
	case len(body) == 0:
		return Fault{Status: 400, Reason: "PayloadEmpty"}
	case len(body) > 4096:
		return Fault{Status: 413, Reason: "PayloadTooLarge"}
	case notHex != nil || len(raw) < 32:
		return Fault{Status: 400, Reason: "BadDeviceToken"}
	case json.Unmarshal(body, &note) != nil || note.APS == nil || note.APS.Alert == nil:
		return Fault{Status: 400, Reason: "BadMessage"}
	}
	if fault := a.authorize(r); fault.Status != 0 {
		return fault
	}
	fault, _ := a.Fault(token)
	return fault
}

func (a *APNs) authorize(r *http.Request) Fault {
	bearer, ok := strings.CutPrefix(r.Header.Get("authorization"), "bearer ")
	if !ok {
		return Fault{Status: 403, Reason: "MissingProviderToken"}
	}
	issued, known := a.known.Load(bearer)
	if !known {
		at, ok := a.verify(bearer)
		if !ok {
			return Fault{Status: 403, Reason: "InvalidProviderToken"}
		}
		a.known.Store(bearer, at)
		a.tokens.Store(bearer, true)
		issued = at
	}
	if a.Now().Sub(issued.(time.Time)) > time.Hour {
		return Fault{Status: 403, Reason: "ExpiredProviderToken"}
	}
	return Fault{}
}

func (a *APNs) verify(bearer string) (issued time.Time, ok bool) {
	message, err := jws.Parse([]byte(bearer))
	if err != nil || len(message.Signatures()) != 1 {
		return issued, false
	}
	if kid, _ := message.Signatures()[0].ProtectedHeaders().KeyID(); kid != a.KeyID {
		return issued, false
	}
	token, err := jwt.Parse([]byte(bearer), jwt.WithKey(jwa.ES256(), &a.key.PublicKey), jwt.WithValidate(false))
	if err != nil {
		return issued, false
	}
	team, _ := token.Issuer()
	issued, found := token.IssuedAt()
	return issued, found && team == a.TeamID
}

func (a *APNs) refuse(w http.ResponseWriter, f Fault) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	w.WriteHeader(f.Status)
	if f.Reason == "" {
		return
	}
	answer := map[string]any{"reason": f.Reason}
	if !f.Since.IsZero() {
		answer["timestamp"] = f.Since.UnixMilli()
	}
	_ = json.NewEncoder(w).Encode(answer)
}
