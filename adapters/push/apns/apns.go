// Package apns delivers to iPhones by the Apple Push Notification service: HTTP/2
// with a provider token ("Sending notification requests to APNs", "Establishing a
// token-based connection to APNs" and "Handling notification responses from APNs"
// of Apple's documentation).
package apns

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
	"dropbell/domain/provider"
	"dropbell/domain/user"
)

// DefaultURL is Apple's service for apps from the App Store and TestFlight, and SandboxURL
// that for other builds.
const (
	DefaultURL = "https://api.push.apple.com"
	SandboxURL = "https://api.sandbox.push.apple.com"
)

const (
	defaultTimeout = 10 * time.Second
	// maxPayload is the size of an alert's payload in bytes.
	maxPayload = 4096
	// maxAnswer is how much of an answer is read.
	maxAnswer = 16 << 10
	// unhurried is how long Apple may keep a push that has no opening.
	unhurried = 12 * time.Hour
)

// Config is the identity at Apple.
type Config struct {
	// Key is the .p8 file that Apple issued, in PEM; KeyID and TeamID are the ten
	// characters of the key and of the developer team. All are required.
	Key           []byte
	KeyID, TeamID string
	// Topic is the bundle id of the app; required.
	Topic string
	// URL is the service, https, or http on this machine for tests; empty =
	// [DefaultURL].
	URL string
	// Configured says that staff have configured the service: answers that are about its
	// settings name the provider's instead of the environment's.
	Configured bool
	// Timeout bounds one push; 0 = 10 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control push.Control
	// OnGone is called, possibly concurrently, for every phone that Apple says the
	// app was removed from. May be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.Device)
	// Transport replaces the connection to Apple; nil = HTTP/2.
	Transport http.RoundTripper
	// Now is the clock of tokens and Retry-After; nil = [time.Now].
	Now func() time.Time
}

// A Service pushes to iPhones. It is safe for concurrent use.
type Service struct {
	cfg    Config
	client *http.Client
	token  *token
}

var tenCharacters = regexp.MustCompile(`^[A-Z0-9]{10}$`)

// New returns the service, or a [push.Mistake], which never holds the key.
func New(cfg Config) (*Service, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &push.Mistake{Field: "url", Text: "the address of APNs must be an https address such as " + DefaultURL}
	}
	switch {
	case push.Clear(cfg.URL):
		return nil, &push.Mistake{Field: "url", Text: "the tokens of phones must not cross the network in clear: use an https address such as " + DefaultURL}
	case !user.ValidBundleID(cfg.Topic):
		return nil, &push.Mistake{Field: "topic", Text: "the bundle id of the app must be one such as com.example.shop"}
	case !tenCharacters.MatchString(cfg.KeyID):
		return nil, &push.Mistake{Field: "key_id", Text: "the id of the key must be ten capital letters and digits, as Apple's developer account shows it"}
	case !tenCharacters.MatchString(cfg.TeamID):
		return nil, &push.Mistake{Field: "team_id", Text: "the id of the team must be ten capital letters and digits, as Apple's developer account shows it"}
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Transport == nil {
		cfg.Transport = http2Only(u.Scheme, cfg.Control)
	}
	t, err := newToken(cfg)
	if err != nil {
		return nil, &push.Mistake{Field: "key", Text: err.Error()}
	}
	return &Service{cfg: cfg, token: t, client: &http.Client{
		Transport: cfg.Transport, Timeout: cfg.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// http2Only is a transport that speaks HTTP/2, also over http. It opens another
// connection where Apple allows no further request on one, and tries connections
// that are idle, so that a dead one is not found by a push.
func http2Only(scheme string, control push.Control) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	push.Controlled(t, control)
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(scheme == "https")
	t.Protocols.SetUnencryptedHTTP2(scheme == "http")
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}
	return t
}

// Name returns "apns".
func (s *Service) Name() string { return "apns" }

// App returns the app.
func (s *Service) App() provider.App { return provider.App{Platform: user.IOS, Name: s.cfg.Topic} }

// Calls reports whether the user has an iPhone with the app; see [push.ConfiguredService].
func (s *Service) Calls(m delivery.Message) bool {
	return slices.ContainsFunc(m.To.Devices, func(d user.Device) bool { return push.Reaches(s.App(), d) })
}

// Turn returns zero: Apple has no quota. See [push.ConfiguredService].
func (s *Service) Turn(context.Context) time.Duration { return 0 }

// Close ends idle connections.
func (s *Service) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Push sends the message to the user's iPhones with the app; see [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) (results []delivery.Result) {
	var body []byte
	for _, d := range m.To.Devices {
		if !push.Reaches(s.App(), d) {
			continue
		}
		if body == nil {
			body = payload(m)
		}
		results = append(results, s.push(ctx, m, d, body))
	}
	return results
}

// push sends to one phone, twice if Apple says that the token was too old.
func (s *Service) push(ctx context.Context, m delivery.Message, d user.Device, body []byte) delivery.Result {
	bearer, err := s.token.get("")
	if err != nil {
		return delivery.Result{Detail: "the provider token cannot be signed"}
	}
	result, reason := s.call(ctx, m, d, body, bearer)
	if reason == "ExpiredProviderToken" {
		if bearer, err = s.token.get(bearer); err == nil {
			result, _ = s.call(ctx, m, d, body, bearer)
		}
	}
	return result
}

// answer is the body of a refusal.
type answer struct {
	Reason string `json:"reason"`
	// Timestamp is when Apple learned that the token is not valid any more, in
	// milliseconds.
	Timestamp int64 `json:"timestamp"`
}

func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, body []byte, bearer string) (delivery.Result, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL+"/3/device/"+url.PathEscape(d.Token), bytes.NewReader(body))
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: "the phone's token is not usable"}, ""
	}
	now := s.cfg.Now()
	key := m.IdempotencyKey()
	request.Header = http.Header{
		"Authorization":    {"bearer " + bearer},
		"Content-Type":     {"application/json"},
		"Apns-Topic":       {s.cfg.Topic},
		"Apns-Push-Type":   {"alert"},
		"Apns-Priority":    {"10"},
		"Apns-Expiration":  {strconv.FormatInt(expiration(m.Subject, now), 10)},
		"Apns-Collapse-Id": {collapseID(key)},
		// The same for a repetition, so that Apple's log tells it from another message.
		"Apns-Id": {uuid.NewSHA1(uuid.NameSpaceURL, []byte(key+"-"+d.DeviceID())).String()},
	}
	response, err := s.client.Do(request)
	if err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}, ""
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode == http.StatusOK {
		return delivery.Result{Status: delivery.Delivered}, ""
	}
	var a answer
	_ = json.Unmarshal(raw, &a) // no reason is one that is unknown
	if response.StatusCode == http.StatusGone && a.stale(d) {
		if s.cfg.OnGone != nil {
			s.cfg.OnGone(ctx, m.To.ID, d)
		}
		return delivery.Result{Status: delivery.Permanent, Detail: "the app was removed from the phone"}, a.Reason
	}
	return s.refusal(d, response.StatusCode, a.Reason, response.Header.Get("Retry-After"), now), a.Reason
}

// stale reports whether the phone has not registered since Apple learned that the
// token is not valid.
func (a answer) stale(d user.Device) bool {
	return a.Timestamp == 0 || !d.SeenAt.After(time.UnixMilli(a.Timestamp))
}

// refusal sorts Apple's reasons: those about the phone, those about the message,
// those about our configuration, which end no delivery, and those about Apple.
func (s *Service) refusal(d user.Device, status int, reason, retryAfter string, now time.Time) delivery.Result {
	detail := "APNs answered " + strconv.Itoa(status)
	if reason != "" {
		detail = delivery.DetailOf(fmt.Sprintf("APNs answered %d %s", status, reason))
	}
	switch reason {
	case "BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken":
		// A token of the other environment, or another app, gets the same answer as a
		// spoilt one: the phone is kept, so that a wrong address or account removes none.
		if s.cfg.Configured && d.App == "" && (reason == "BadDeviceToken" || reason == "DeviceTokenNotForTopic") {
			detail += ": the phone has registered without naming its app"
		}
		return delivery.Result{Status: delivery.Permanent, Detail: detail}
	case "BadTopic", "MissingTopic", "TopicDisallowed", "InvalidProviderToken", "MissingProviderToken", "ExpiredProviderToken",
		"BadCertificate", "BadCertificateEnvironment", "Forbidden", "UnrelatedKeyIdInToken", "BadEnvironmentKeyIdInToken":
		if s.cfg.Configured {
			return delivery.Result{Unsent: true, Detail: detail + ": check the provider's settings"}
		}
		return delivery.Result{Detail: detail + ": check APNS_KEY, APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC and APNS_URL"}
	case "TooManyRequests": // to one phone
		return delivery.Result{Status: delivery.Throttled, Apart: true, After: delivery.RetryAfter(retryAfter, now), Detail: detail}
	}
	result := delivery.HTTPResult(status, retryAfter, now)
	if result.Status == delivery.Permanent && status != http.StatusGone {
		result.Whole = false // every push is a call of its own
	}
	if status == http.StatusGone {
		result = delivery.Result{Status: delivery.Permanent}
	}
	result.Detail = detail
	return result
}

// expiration is until when Apple may try, in seconds of the epoch: the opening, or
// the end of the campaign; 0 = once.
func expiration(s *delivery.Subject, now time.Time) int64 {
	until := s.OpensAt
	if s.Kind == delivery.KindCampaign && !s.EndsAt.IsZero() {
		until = s.EndsAt
	}
	if until.IsZero() {
		until = now.Add(unhurried)
	}
	if !until.After(now) {
		return 0
	}
	return until.Unix()
}
