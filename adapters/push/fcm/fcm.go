// Package fcm delivers to Android phones by Firebase Cloud Messaging: the HTTP v1
// API (projects.messages.send and its error codes of Google's documentation) with
// an access token of a service account (RFC 7523).
package fcm

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/user"
)

// DefaultURL is Google's service, and scope what its access token is for.
const (
	DefaultURL = "https://fcm.googleapis.com"
	scope      = "https://www.googleapis.com/auth/firebase.messaging"
)

// DefaultPerMinute is the quota of a Firebase project that has asked for no other.
const DefaultPerMinute = 600_000

const (
	defaultTimeout = 10 * time.Second
	// maxIdle keeps connections while the service closes some; HTTP/2 needs few.
	maxIdle = 64
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
	// quotaPause is how long a project that is over its quota waits, if Google names
	// no time ("set it to 60 s if the header is absent").
	quotaPause = time.Minute
	// tokenPause follows an access token that was refused or not issued.
	tokenPause = 10 * time.Second
)

// Config is the identity at Google.
type Config struct {
	// Account is the service account's key file, JSON; required.
	Account []byte
	// URL is the service, https, or http on this machine for tests; empty =
	// [DefaultURL].
	URL string
	// PerMinute is how many messages the project may send a minute; 0 =
	// [DefaultPerMinute].
	PerMinute int
	// Admit shares that among all workers; nil = this process has it alone.
	Admit push.Admit
	// Configured says that staff have configured the service: answers that are about its
	// settings name the provider's instead of the environment's, and the caller of Push
	// keeps to the quota by [Service.Turn].
	Configured bool
	// Timeout bounds one push; 0 = 10 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control push.Control
	// OnGone is called, possibly concurrently, for every phone that Google says the
	// app was removed from. May be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.Device)
	// Now is the clock of Retry-After and lifetimes; nil = [time.Now].
	Now func() time.Time
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

// readable reports whether the key is one that access tokens can be asked for with.
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
	cfg    Config
	app    provider.App
	send   string // address
	client *http.Client
	tokens *tokens
	quota  *push.Quota
}

// New returns the service, or a [push.Mistake], which never holds the key.
func New(cfg Config) (*Service, error) {
	account, err := ParseAccount(cfg.Account)
	if err != nil {
		return nil, &push.Mistake{Field: "account", Text: err.Error()}
	}
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &push.Mistake{Field: "url", Text: "the address of FCM must be an https address such as " + DefaultURL}
	}
	if push.Clear(cfg.URL) {
		return nil, &push.Mistake{Field: "url", Text: "the tokens of phones must not cross the network in clear: use an https address such as " + DefaultURL}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.PerMinute <= 0 {
		cfg.PerMinute = DefaultPerMinute
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost = maxIdle, maxIdle
	push.Controlled(transport, cfg.Control)
	client := &http.Client{
		Transport: transport, Timeout: cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	identity := &jwt.Config{Email: account.ClientEmail, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.PrivateKeyID,
		Scopes: []string{scope}, TokenURL: account.TokenURI}
	return &Service{
		cfg:    cfg,
		app:    provider.App{Platform: user.Android, Name: account.ProjectID},
		send:   strings.TrimRight(cfg.URL, "/") + "/v1/projects/" + url.PathEscape(account.ProjectID) + "/messages:send",
		client: client,
		tokens: &tokens{identity: identity, client: client, now: cfg.Now},
		quota:  push.NewQuota(cfg.PerMinute, cfg.Admit),
	}, nil
}

// Name returns "fcm".
func (s *Service) Name() string { return "fcm" }

// App returns the Firebase project.
func (s *Service) App() provider.App { return s.app }

// Calls reports whether the user has an Android phone with an app of the project; see
// [push.ConfiguredService].
func (s *Service) Calls(m delivery.Message) bool {
	return slices.ContainsFunc(m.To.Devices, func(d user.Device) bool { return push.Reaches(s.app, d) })
}

// Turn waits for the messages per minute; see [push.ConfiguredService].
func (s *Service) Turn(ctx context.Context) time.Duration { return s.quota.Turn(ctx) }

// Close ends idle connections.
func (s *Service) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Push sends the message to the user's Android phones with an app of the project; see
// [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) (results []delivery.Result) {
	for _, d := range m.To.Devices {
		if !push.Reaches(s.app, d) {
			continue
		}
		results = append(results, s.push(ctx, m, d))
	}
	return results
}

func (s *Service) push(ctx context.Context, m delivery.Message, d user.Device) delivery.Result {
	if err := ctx.Err(); err != nil {
		return delivery.Result{Unsent: true, Detail: delivery.CauseOf(err)}
	}
	// The quota is a pace, not a failure: the message is tried again at its turn, and no
	// message to another device waits for it.
	if !s.cfg.Configured {
		if wait := s.Turn(ctx); wait > 0 {
			return delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Held: true, After: wait, Detail: "not sent: the messages per minute of FCM are used up for the moment"}
		}
	}
	return push.WithToken(
		func(refused string) (string, error) { return s.tokens.get(ctx, refused) },
		func(access string) (delivery.Result, bool) { return s.call(ctx, m, d, access) },
		s.noToken)
}

// call pushes once, and reports whether the access token was refused.
func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, access string) (result delivery.Result, refused bool) {
	now := s.cfg.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.send, bytes.NewReader(payload(m, d.Token, now)))
	if err != nil {
		return delivery.Result{Detail: "the address of FCM is not usable"}, false
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+access)
	response, err := s.client.Do(request)
	if err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}, false
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode == http.StatusOK {
		return delivery.Result{Status: delivery.Delivered}, false
	}
	a := parseAnswer(raw)
	if a.code() == "UNREGISTERED" {
		if s.cfg.OnGone != nil {
			s.cfg.OnGone(ctx, m.To.ID, d)
		}
		return delivery.Result{Status: delivery.Permanent, Detail: "the app was removed from the phone"}, false
	}
	return s.refusal(d, response.StatusCode, a, response.Header.Get("Retry-After"), now), a.code() == "UNAUTHENTICATED"
}

// noToken is the answer while Google issues no access token.
func (s *Service) noToken(err error) delivery.Result {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < 500 {
		return delivery.Result{Unsent: s.cfg.Configured, After: tokenPause, Detail: delivery.DetailOf("Google issued no access token (" + refused.ErrorCode + s.check("): check FCM_SERVICE_ACCOUNT", "): check the provider's settings"))}
	}
	return delivery.Result{Unsent: s.cfg.Configured, After: tokenPause, Detail: "Google issued no access token: " + delivery.CauseOf(err)}
}

// check returns what is to be checked after an answer that is about the settings: those of
// the environment, or those of the provider.
func (s *Service) check(environment, provider string) string {
	if s.cfg.Configured {
		return provider
	}
	return environment
}
