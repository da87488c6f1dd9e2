package pushtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// FCM imitates Firebase Cloud Messaging and the address that issues its access
// tokens.
type FCM struct {
	pushes
	URL string
	// Account is the key file of the service account.
	Account []byte
	Project string
	// NoTokens makes it issue no access tokens.
	NoTokens atomic.Bool

	key    *rsa.PrivateKey
	tokens sync.Map // access tokens that are valid
	server *httptest.Server
	serial atomic.Int64
}

const account = "dropbell@shop-example.iam.gserviceaccount.com"

// NewFCM starts an imitation; close it with Close.
func NewFCM() (*FCM, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	f := &FCM{key: key, Project: "shop-example"}
	f.Keep = true
	f.server = httptest.NewServer(f)
	f.URL = f.server.URL
	f.Account, err = json.Marshal(map[string]string{
		"type": "service_account", "project_id": f.Project, "private_key_id": "0123456789abcdef",
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": account, "token_uri": f.URL + "/token",
	})
	return f, err
}

// Close stops the imitation.
func (f *FCM) Close() { f.server.Close() }

// ServeHTTP issues an access token or answers one push.
func (f *FCM) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/token" {
		f.issue(w, r)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/projects/"+f.Project+"/messages:send" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if _, valid := f.tokens.Load(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")); !valid {
		f.refuse(w, 401, "UNAUTHENTICATED", "", "Request had invalid authentication credentials.", "")
		return
	}
	f.send(w, r)
}

// issue is the grant of RFC 7523, section 2.1.
func (f *FCM) issue(w http.ResponseWriter, r *http.Request) {
	refused := func(why string) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":"invalid_grant","error_description":%q}`, why)
	}
	if f.NoTokens.Load() {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.FormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		refused("unsupported grant")
		return
	}
	assertion, err := jwt.Parse([]byte(r.FormValue("assertion")), jwt.WithKey(jwa.RS256(), &f.key.PublicKey),
		jwt.WithIssuer(account), jwt.WithAudience(f.URL+"/token"))
	if err != nil {
		refused("Invalid JWT Signature.")
		return
	}
	var scope string
	if assertion.Get("scope", &scope) != nil || scope != "https://www.googleapis.com/auth/firebase.messaging" {
		refused("Invalid OAuth scope.")
		return
	}
	token := uuid.NewString()
	f.tokens.Store(token, true)
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": 3599})
}

// Revoke makes every access token invalid.
func (f *FCM) Revoke() { f.tokens.Clear() }

var duration = regexp.MustCompile(`^\d+(\.\d{1,9})?s$`)

func (f *FCM) send(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Message struct {
			Token        string `json:"token"`
			Notification struct {
				Title string `json:"title"`
				Body  string `json:"body"`
			} `json:"notification"`
			Data    map[string]string `json:"data"`
			Android struct {
				Priority     string         `json:"priority"`
				TTL          string         `json:"ttl"`
				CollapseKey  string         `json:"collapse_key"`
				Notification map[string]any `json:"notification"`
			} `json:"android"`
		} `json:"message"`
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&in); err != nil {
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Invalid JSON payload received.", "")
		return
	}
	m := in.Message
	size := len(m.Notification.Title) + len(m.Notification.Body)
	for k, v := range m.Data {
		size += len(k) + len(v)
	}
	switch {
	case len(m.Token) < 20 || strings.Contains(m.Token, " "):
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "The registration token is not a valid FCM registration token", "")
		return
	case size > 4096:
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Android message is too big", "")
		return
	case m.Android.TTL != "" && !duration.MatchString(m.Android.TTL), m.Android.Priority != "HIGH" && m.Android.Priority != "NORMAL":
		f.refuse(w, 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Invalid value at 'message.android'", "")
		return
	}
	if fault, found := f.fault(m.Token); found {
		status := map[string]string{"UNREGISTERED": "NOT_FOUND", "QUOTA_EXCEEDED": "RESOURCE_EXHAUSTED", "SENDER_ID_MISMATCH": "PERMISSION_DENIED",
			"THIRD_PARTY_AUTH_ERROR": "UNAUTHENTICATED", "UNAVAILABLE": "UNAVAILABLE", "INTERNAL": "INTERNAL"}[fault.Reason]
		f.refuse(w, fault.Status, status, fault.Reason, "Requested entity was not found.", fault.RetryAfter)
		return
	}
	body, _ := json.Marshal(in)
	f.accept(Push{Token: m.Token, Header: r.Header.Clone(), Body: body})
	_, _ = fmt.Fprintf(w, `{"name":"projects/%s/messages/0:%d%%%d"}`, f.Project, time.Now().UnixMicro(), f.serial.Add(1))
}

// refuse answers in the form of google.rpc.Status, with FCM's own code if it has
// one.
func (f *FCM) refuse(w http.ResponseWriter, code int, status, own, message, retryAfter string) {
	if retryAfter != "" {
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(code)
	details := []map[string]string{}
	if own != "" {
		details = append(details, map[string]string{"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": own})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "message": message, "status": status, "details": details}})
}
