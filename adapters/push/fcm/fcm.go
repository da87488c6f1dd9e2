// Package fcm delivers to Android phones by Firebase Cloud Messaging: the HTTP v1
// API (projects.messages.send and its error codes of Google's documentation) with
// an access token of a service account (RFC 7523).
package fcm

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2/jwt"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/adapters/sender/google"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// DefaultURL is Google's service, and scope the scope of its access tokens.
const (
	DefaultURL = "https://fcm.googleapis.com"
	scope      = "https://www.googleapis.com/auth/firebase.messaging"
)

// DefaultPerMinute is the quota of a Firebase project that has asked for no other.
const DefaultPerMinute = 600_000

const (
	// quotaPause is how long a project waits after it has exceeded its quota, if Google names no
	// time ("set it to 60 s if the header is absent").
	quotaPause = time.Minute
	// tokenPause follows an access token that was refused or not issued.
	tokenPause = 10 * time.Second
)

// Config is the identity at Google.
type Config struct {
	// Account is the service account's key file, JSON; required.
	Account []byte
	// URL is the service's address: https, or http on this machine for tests; empty =
	// [DefaultURL].
	URL string
	// PerMinute is how many messages per minute the project may send; 0 =
	// [DefaultPerMinute].
	PerMinute int
	// Admit shares that among all workers; nil = this process has it alone.
	Admit push.Admit
	// Configured says that staff have configured the service. Details of refusals that concern
	// the settings then point to the provider's settings instead of environment variables, and
	// the caller of Push obeys the quota by [Service.Turn].
	Configured bool
	// OnGone is called, possibly concurrently, for every phone from which the app was removed
	// according to Google. May be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.Device)
	sender.Options
}

// An Account is the part of a service account's key file that is needed.
type Account struct {
	ProjectID    string `json:"project_id"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	ClientEmail  string `json:"client_email"`
	TokenURI     string `json:"token_uri"`
}

// ParseAccount reads a service account's key file. The error holds no part of it.
func ParseAccount(raw []byte) (a Account, err error) {
	var app struct {
		Info json.RawMessage `json:"project_info"`
	}
	if json.Unmarshal(raw, &a) != nil || json.Unmarshal(raw, &app) != nil {
		return a, errors.New("the service account of FCM must be the JSON file as Google issued it")
	}
	if app.Info != nil {
		return a, errors.New("this is google-services.json of the app: the key file of a service account is needed (Firebase console, Project settings, Service accounts)")
	}
	if a.ProjectID == "" || a.PrivateKey == "" || a.ClientEmail == "" || a.TokenURI == "" {
		return a, errors.New("the service account of FCM must have project_id, private_key, client_email and token_uri")
	}
	if !readable(a.PrivateKey) {
		return a, errors.New("private_key of the service account of FCM must be the key as Google issued it, with its lines -----BEGIN PRIVATE KEY-----")
	}
	if push.Clear(a.TokenURI) {
		return a, errors.New("token_uri of the service account of FCM must be an https address")
	}
	return a, nil
}

// readable reports whether the key can sign requests for access tokens.
func readable(key string) bool {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return false
	}
	_, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, err1 := x509.ParsePKCS1PrivateKey(block.Bytes)
	return err == nil || err1 == nil
}

// A Service pushes to Android phones. It is safe for concurrent use.
type Service struct {
	*push.Account
	cfg    Config
	send   string // address
	tokens *sender.Tokens
}

// New returns the service, or a [push.Mistake], which never holds the key.
func New(cfg Config) (*Service, error) {
	account, err := ParseAccount(cfg.Account)
	if err != nil {
		return nil, &push.Mistake{Field: "account", Text: err.Error()}
	}
	address, err := push.Endpoint(cfg.URL, DefaultURL, "the address of FCM must be an https address such as ",
		"the tokens of phones must not cross the network in clear: use an https address such as ")
	if err != nil {
		return nil, err
	}
	if cfg.PerMinute <= 0 {
		cfg.PerMinute = DefaultPerMinute
	}
	client := cfg.Client(push.CallTimeout)
	identity := &jwt.Config{Email: account.ClientEmail, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.PrivateKeyID,
		Scopes: []string{scope}, TokenURL: account.TokenURI}
	s := &Service{
		push.NewAccount("fcm", provider.App{Platform: user.Android, Name: account.ProjectID}, client, push.NewQuota(cfg.PerMinute, cfg.Admit)),
		cfg, address + "/v1/projects/" + url.PathEscape(account.ProjectID) + "/messages:send",
		google.Tokens(identity, client, cfg.Time),
	}
	s.Configured, s.OnGone = cfg.Configured, cfg.OnGone
	return s, nil
}

// Push sends the message to the user's Android phones with an app of the project; see
// [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) []delivery.Result {
	return s.ToEach(m, func(d user.Device) delivery.Result { return s.push(ctx, m, d) })
}

func (s *Service) push(ctx context.Context, m delivery.Message, d user.Device) delivery.Result {
	if err := ctx.Err(); err != nil {
		return delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}
	}
	// A message beyond the quota is not a failure: it is tried again at its turn. Messages to
	// other devices do not wait for it.
	if !s.Configured {
		if wait := s.Turn(ctx); wait > 0 {
			return delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Held: true, After: wait, Detail: "not sent: the messages per minute of FCM are used up for the moment"}
		}
	}
	return sender.WithToken(
		func(refused string) (string, error) { return s.tokens.Get(ctx, refused) },
		func(access string) (delivery.Result, bool) { return s.call(ctx, m, d, access) },
		s.noToken)
}

// call pushes once, and reports whether the access token was refused.
func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, access string) (result delivery.Result, refused bool) {
	now := s.cfg.Time()
	got, failed := s.Post(ctx, s.send, http.Header{"Authorization": {"Bearer " + access}}, payload(m, d.Token, now))
	switch {
	case failed != nil:
		return *failed, false
	case got.Status == http.StatusOK:
		return delivery.Result{Status: delivery.Delivered}, false
	}
	a := parseAnswer(got.Body)
	if a.code() == "UNREGISTERED" {
		return s.Gone(ctx, m, d), false
	}
	return s.refusal(d, got.Status, a, got.Header.Get("Retry-After"), now), a.code() == "UNAUTHENTICATED"
}

// noToken is the answer while Google issues no access token.
func (s *Service) noToken(err error) delivery.Result {
	r := delivery.Result{Unsent: s.Configured, After: tokenPause}
	if code, ok := google.Refused(err); ok {
		r.Detail = delivery.DetailOf("Google issued no access token (" + code + s.Check("): check FCM_SERVICE_ACCOUNT", "): check the provider's settings"))
		return r
	}
	r.Detail = "Google issued no access token: " + delivery.CauseOf(err)
	return r
}
