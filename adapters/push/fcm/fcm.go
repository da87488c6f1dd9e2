// Package fcm delivers to Android phones by Firebase Cloud Messaging: the HTTP v1
// API (projects.messages.send and its error codes of Google's documentation) with
// an access token of a service account (RFC 7523).
package fcm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
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
	// Timeout bounds one push; 0 = 10 s.
	Timeout time.Duration
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
	if json.Unmarshal(raw, &a) != nil {
		return a, errors.New("the service account of FCM must be the JSON file as Google issued it")
	}
	if a.ProjectID == "" || a.PrivateKey == "" || a.ClientEmail == "" || a.TokenURI == "" {
		return a, errors.New("the service account of FCM must have project_id, private_key, client_email and token_uri")
	}
	return a, nil
}

// A Service pushes to Android phones. It is safe for concurrent use.
type Service struct {
	cfg    Config
	send   string // address
	client *http.Client
	tokens *tokens
	quota  *push.Quota
}

// New returns the service, or an error that says what is wrong with cfg, without
// the key.
func New(cfg Config) (*Service, error) {
	account, err := ParseAccount(cfg.Account)
	if err != nil {
		return nil, err
	}
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("the address of FCM must be an https address such as " + DefaultURL)
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
	client := &http.Client{
		Transport: transport, Timeout: cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	identity := &jwt.Config{Email: account.ClientEmail, PrivateKey: []byte(account.PrivateKey), PrivateKeyID: account.PrivateKeyID,
		Scopes: []string{scope}, TokenURL: account.TokenURI}
	return &Service{
		cfg:    cfg,
		send:   strings.TrimRight(cfg.URL, "/") + "/v1/projects/" + url.PathEscape(account.ProjectID) + "/messages:send",
		client: client,
		tokens: &tokens{identity: identity, client: client, now: cfg.Now},
		quota:  push.NewQuota(cfg.PerMinute, cfg.Admit),
	}, nil
}

// Name returns "fcm".
func (s *Service) Name() string { return "fcm" }

// Close ends idle connections.
func (s *Service) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Push sends the message to the user's Android phones; see
// [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) (results []delivery.Result) {
	for _, d := range m.To.Devices {
		if d.Platform != user.Android {
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
	if wait := s.quota.Turn(ctx); wait > 0 {
		return delivery.Result{Status: delivery.Throttled, Apart: true, Unsent: true, Held: true, After: wait, Detail: "not sent: the messages per minute of FCM are used up for the moment"}
	}
	return push.WithToken(
		func(refused string) (string, error) { return s.tokens.get(ctx, refused) },
		func(access string) (delivery.Result, bool) { return s.call(ctx, m, d, access) },
		noToken)
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
	return refusal(response.StatusCode, a, response.Header.Get("Retry-After"), now), a.code() == "UNAUTHENTICATED"
}

// noToken is the answer while Google issues no access token.
func noToken(err error) delivery.Result {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.Response != nil && refused.Response.StatusCode < 500 {
		return delivery.Result{After: tokenPause, Detail: delivery.DetailOf("Google issued no access token (" + refused.ErrorCode + "): check FCM_SERVICE_ACCOUNT")}
	}
	return delivery.Result{After: tokenPause, Detail: "Google issued no access token: " + delivery.CauseOf(err)}
}
