// Package apns delivers to iPhones by the Apple Push Notification service, over HTTP/2 with a
// provider token. See "Sending notification requests to APNs", "Establishing a token-based
// connection to APNs" and "Handling notification responses from APNs" in Apple's documentation.
package apns

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/user"
)

// DefaultURL is Apple's service for apps from the App Store and TestFlight. SandboxURL is
// Apple's service for development builds.
const (
	DefaultURL = "https://api.push.apple.com"
	SandboxURL = "https://api.sandbox.push.apple.com"
)

// maxPayload is the size of an alert's payload in bytes.
const maxPayload = 4096

// Config is the identity at Apple.
type Config struct {
	// Key is the .p8 file that Apple issued, in PEM; KeyID and TeamID are the ten
	// characters of the key and of the developer team. All are required.
	Key           []byte
	KeyID, TeamID string
	// Topic is the bundle id of the app; required.
	Topic string
	// URL is the service's address: https, or http on this machine for tests; empty =
	// [DefaultURL].
	URL string
	// Configured says that staff have configured the service. Details of refusals that concern
	// the settings then point to the provider's settings instead of environment variables.
	Configured bool
	// OnGone is called, possibly concurrently, for every phone from which the app was removed
	// according to Apple. May be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.Device)
	// Transport replaces the connection to Apple; nil = HTTP/2.
	Transport http.RoundTripper
	sender.Options
}

// A Service pushes to iPhones. It is safe for concurrent use.
type Service struct {
	*push.Account
	cfg   Config
	token *token
}

var tenCharacters = regexp.MustCompile(`^[A-Z0-9]{10}$`)

// New returns the service, or a [push.Mistake], which never holds the key.
func New(cfg Config) (*Service, error) {
	address, err := push.Endpoint(cfg.URL, DefaultURL, "the address of APNs must be an https address such as ",
		"the tokens of phones must not cross the network in clear: use an https address such as ")
	if err != nil {
		return nil, err
	}
	cfg.URL = address
	switch {
	case !user.ValidBundleID(cfg.Topic):
		return nil, &push.Mistake{Field: "topic", Text: "the bundle id of the app must be one such as com.example.shop"}
	case !tenCharacters.MatchString(cfg.KeyID):
		return nil, &push.Mistake{Field: "key_id", Text: "the id of the key must be ten capital letters and digits, as Apple's developer account shows it"}
	case !tenCharacters.MatchString(cfg.TeamID):
		return nil, &push.Mistake{Field: "team_id", Text: "the id of the team must be ten capital letters and digits, as Apple's developer account shows it"}
	}
	t, err := newToken(cfg)
	if err != nil {
		return nil, &push.Mistake{Field: "key", Text: err.Error()}
	}
	client := cfg.Client(push.CallTimeout)
	if cfg.Transport == nil {
		http2Only(client.Transport.(*http.Transport), strings.HasPrefix(cfg.URL, "https:"))
	} else {
		client.Transport = cfg.Transport
	}
	s := &Service{push.NewAccount("apns", provider.App{Platform: user.IOS, Name: cfg.Topic}, client, nil), cfg, t}
	s.Configured, s.OnGone = cfg.Configured, cfg.OnGone
	return s, nil
}

// http2Only makes the transport speak HTTP/2, also without TLS. The transport opens another
// connection when Apple allows no further request on the current connection. It pings idle
// connections, so that a push does not meet a dead connection.
func http2Only(t *http.Transport, encrypted bool) {
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP2(encrypted)
	t.Protocols.SetUnencryptedHTTP2(!encrypted)
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}
}

// Push sends the message to the user's iPhones with the app; see [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) []delivery.Result {
	body := sync.OnceValue(func() []byte { return payload(m) })
	return s.ToEach(m, func(d user.Device) delivery.Result {
		return sender.WithToken(s.token.get,
			func(bearer string) (delivery.Result, bool) { return s.call(ctx, m, d, body(), bearer) },
			func(error) delivery.Result { return delivery.Result{Detail: unsigned} })
	})
}

// unsigned is the detail of a call without a provider token.
const unsigned = "the provider token cannot be signed"

// answer is the body of a refusal.
type answer struct {
	Reason string `json:"reason"`
	// Timestamp is when Apple learned that the token is no longer valid, in milliseconds since
	// 1970.
	Timestamp int64 `json:"timestamp"`
}

// tooOld is the reason with which Apple refuses a provider token that was too old.
const tooOld = "ExpiredProviderToken"

// call sends to one phone, and reports whether the provider token was too old.
func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, body []byte, bearer string) (result delivery.Result, refused bool) {
	now := s.cfg.Time()
	key := m.IdempotencyKey()
	got, failed := s.Post(ctx, s.cfg.URL+"/3/device/"+url.PathEscape(d.Token), http.Header{
		"Authorization":    {"bearer " + bearer},
		"Apns-Topic":       {s.cfg.Topic},
		"Apns-Push-Type":   {"alert"},
		"Apns-Priority":    {"10"},
		"Apns-Expiration":  {strconv.FormatInt(expiration(m.Subject, now), 10)},
		"Apns-Collapse-Id": {collapseID(key)},
		// The same for a repetition, so that Apple's log tells it from another message.
		"Apns-Id": {uuid.NewSHA1(uuid.NameSpaceURL, []byte(key+"-"+d.DeviceID())).String()},
	}, body)
	switch {
	case failed != nil:
		return *failed, false
	case got.Status == http.StatusOK:
		return delivery.Result{Status: delivery.Delivered}, false
	}
	var a answer
	_ = json.Unmarshal(got.Body, &a) // an unreadable body is an unknown reason
	if got.Status == http.StatusGone && a.stale(d) {
		return s.Gone(ctx, m, d), a.Reason == tooOld
	}
	return s.refusal(d, got.Status, a.Reason, got.Header.Get("Retry-After"), now), a.Reason == tooOld
}

// stale reports whether the phone has not registered since Apple learned that the
// token is not valid.
func (a answer) stale(d user.Device) bool {
	return a.Timestamp == 0 || !d.SeenAt.After(time.UnixMilli(a.Timestamp))
}

// refusal sorts Apple's reasons into four groups: the phone, the message, our configuration, and
// Apple itself. Reasons about the configuration end no delivery.
func (s *Service) refusal(d user.Device, status int, reason, retryAfter string, now time.Time) delivery.Result {
	detail := "APNs answered " + strconv.Itoa(status)
	if reason != "" {
		detail = delivery.DetailOf(fmt.Sprintf("APNs answered %d %s", status, reason))
	}
	switch reason {
	case "BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered", "ExpiredToken":
		// Apple gives the same answer to a broken token and to a token of the other environment or
		// of another app. So the phone is kept: a wrong address or account removes no phone.
		if s.Configured && d.App == "" && (reason == "BadDeviceToken" || reason == "DeviceTokenNotForTopic") {
			detail += ": the phone has registered without naming its app"
		}
		return delivery.Result{Status: delivery.Permanent, Detail: detail}
	case "BadTopic", "MissingTopic", "TopicDisallowed", "InvalidProviderToken", "MissingProviderToken", tooOld,
		"BadCertificate", "BadCertificateEnvironment", "Forbidden", "UnrelatedKeyIdInToken", "BadEnvironmentKeyIdInToken":
		return delivery.Result{Unsent: s.Configured, Detail: detail + s.Check(": check APNS_KEY, APNS_KEY_ID, APNS_TEAM_ID, APNS_TOPIC and APNS_URL", ": check the provider's settings")}
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

// expiration is the end of Apple's attempts, in seconds since 1970, see [push.Until]; 0 = Apple
// tries once.
func expiration(s *delivery.Subject, now time.Time) int64 {
	until := push.Until(s, now)
	if !until.After(now) {
		return 0
	}
	return until.Unix()
}
