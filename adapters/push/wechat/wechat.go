// Package wechat delivers reminders to mini programs of WeChat by one-time subscription
// messages (小程序一次性订阅消息): "sendMessage" (cgi-bin/message/subscribe/send) and
// "getStableAccessToken" (cgi-bin/stable_token) of WeChat's documentation. A message can
// be sent once for each time the user accepted wx.requestSubscribeMessage.
package wechat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"dropbell/adapters/push"
	"dropbell/domain/delivery"
	"dropbell/domain/message"
	"dropbell/domain/provider"
	"dropbell/domain/user"
)

// DefaultURL is WeChat's service.
const DefaultURL = "https://api.weixin.qq.com"

const (
	defaultTimeout = 10 * time.Second
	// maxIdle keeps connections while the service closes some.
	maxIdle = 64
	// maxAnswer is how much of an answer is read.
	maxAnswer = 16 << 10
)

// The versions of the mini program that a message opens.
const (
	Formal    = "formal"
	Trial     = "trial"
	Developer = "developer"
)

// Config is the identity of a mini program and the message that it sends.
type Config struct {
	// AppID and Secret are those of the mini program; required.
	AppID, Secret string
	// Template is the id of the subscription message that the mini program has chosen
	// from WeChat's library; required.
	Template string
	// Data are the fields of that message, one a line: thing1 = {{drop}}. The variables
	// are those of texts of reminders.
	Data string
	// Page is what the message opens, such as pages/drop/index?id={id}, where {id} is the
	// drop's number; empty = nothing.
	Page string
	// Version is the version of the mini program that is opened; empty = [Formal].
	Version string
	// URL is the service, https, or http on this machine only, for tests; empty = [DefaultURL].
	URL string
	// PerMinute is how many messages may be sent a minute; 0 = no limit of its own. The
	// caller of Push keeps to it by [Service.Turn].
	PerMinute int
	// Admit shares that among all workers; nil = this process has it alone.
	Admit push.Admit
	// Shared keeps the access token for all processes; nil = this process has its own.
	Shared Shared
	// Timeout bounds one call; 0 = 10 s.
	Timeout time.Duration
	// Control judges every address before it is connected to; nil = all are connected to.
	Control push.Control
	// Now is the clock of tokens and Retry-After; nil = [time.Now].
	Now func() time.Time
}

// A Service sends to the users of a mini program. It is safe for concurrent use.
type Service struct {
	cfg    Config
	data   []field
	send   string // address without the token
	client *http.Client
	tokens *tokens
	quota  *push.Quota // nil = no limit
}

// New returns the service, or a [push.Mistake], which never holds the secret.
func New(cfg Config) (*Service, error) {
	if cfg.URL == "" {
		cfg.URL = DefaultURL
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	u, err := url.Parse(cfg.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, &push.Mistake{Field: "url", Text: "the address of WeChat must be an https address such as " + DefaultURL}
	case push.Clear(cfg.URL):
		return nil, &push.Mistake{Field: "url", Text: "the AppSecret must not cross the network in clear: use an https address such as " + DefaultURL}
	case !user.ValidWeChatApp(cfg.AppID):
		return nil, &push.Mistake{Field: "app_id", Text: "the AppID must be that of a mini program, such as wx0123456789abcdef"}
	case cfg.Secret == "":
		return nil, &push.Mistake{Field: "app_secret", Text: "the AppSecret is missing"}
	case cfg.Template == "":
		return nil, &push.Mistake{Field: "template", Text: "the id of the subscription message is missing"}
	case strings.HasPrefix(cfg.Page, "/") || strings.Contains(cfg.Page, "://") || len(cfg.Page) > 1024:
		return nil, &push.Mistake{Field: "page", Text: "the page must be a path inside the mini program without a leading slash, such as pages/drop/index?id={id}"}
	}
	data, err := parseData(cfg.Data)
	if err != nil {
		return nil, &push.Mistake{Field: "data", Text: err.Error()}
	}
	if cfg.Version == "" {
		cfg.Version = Formal
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
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
	s := &Service{cfg: cfg, data: data, send: cfg.URL + "/cgi-bin/message/subscribe/send?access_token=", client: client,
		tokens: &tokens{cfg: cfg, client: client}}
	if cfg.PerMinute > 0 {
		s.quota = push.NewQuota(cfg.PerMinute, cfg.Admit)
	}
	return s, nil
}

// Name returns "wechat".
func (s *Service) Name() string { return "wechat" }

// App returns the mini program.
func (s *Service) App() provider.App { return provider.App{Platform: user.WeChat, Name: s.cfg.AppID} }

// Named reports whether a field of the message greets by name.
func (s *Service) Named() bool {
	return slices.ContainsFunc(s.data, func(f field) bool { return slices.Contains(f.text.Uses(false), message.VarUser) })
}

// Close ends idle connections.
func (s *Service) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// has reports whether the user has an account in the mini program.
func has(u *user.User, program provider.App) bool {
	return slices.ContainsFunc(u.Devices, func(d user.Device) bool { return push.Reaches(program, d) })
}

// Calls reports whether WeChat would be asked to deliver the message; see
// [push.ConfiguredService].
func (s *Service) Calls(m delivery.Message) bool {
	return permitted(m) && has(m.To, s.App())
}

// Turn waits for the messages per minute; see [push.ConfiguredService].
func (s *Service) Turn(ctx context.Context) time.Duration {
	if s.quota == nil {
		return 0
	}
	return s.quota.Turn(ctx)
}

// permitted reports whether the recipient has consented to the message. Of a test, which
// staff send to themselves, WeChat alone decides.
func permitted(m delivery.Message) bool {
	return m.Consented || m.Subject.Kind == delivery.KindTest
}

// noConsent is the answer to a message without a consent.
func noConsent() delivery.Result {
	return delivery.Result{Status: delivery.Permanent, Skip: true, Unsent: true, Held: true, Reason: delivery.ReasonNoConsent,
		Detail: "not sent to WeChat: the recipient has not consented to this message"}
}

// Push sends the message to one of the user's accounts in the mini program, that seen last
// first: a consent is one message's. Only if WeChat has certainly refused it, the next one
// is tried. See [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) (results []delivery.Result) {
	for _, d := range slices.Backward(m.To.Devices) {
		if !push.Reaches(s.App(), d) {
			continue
		}
		if !permitted(m) {
			return []delivery.Result{noConsent()}
		}
		r := s.push(ctx, m, d)
		if results = append(results, r); r.Status != delivery.Permanent {
			break
		}
	}
	return push.KeepConsent(results)
}

func (s *Service) push(ctx context.Context, m delivery.Message, d user.Device) delivery.Result {
	return push.WithToken(
		func(refused string) (string, error) { return s.tokens.get(ctx, refused) },
		func(access string) (delivery.Result, bool) { return s.call(ctx, m, d, access) },
		noToken)
}

// call sends once, and reports whether the access token was refused.
func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, access string) (result delivery.Result, refused bool) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.send+url.QueryEscape(access), bytes.NewReader(s.body(m, d)))
	if err != nil {
		return delivery.Result{Unsent: true, Detail: "the address of WeChat is not usable"}, false
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.client.Do(request)
	if err != nil {
		return delivery.Result{Detail: delivery.CauseOf(err)}, false
	}
	defer func() { _ = response.Body.Close() }()
	raw, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode != http.StatusOK {
		result = delivery.HTTPResult(response.StatusCode, response.Header.Get("Retry-After"), s.cfg.Now())
		if result.Status == delivery.Permanent || result.Status == delivery.Delivered {
			result = delivery.Result{Detail: result.Detail} // no status of this interface
		}
		return result, false
	}
	var a answer
	if json.Unmarshal(raw, &a) != nil || a.Code == nil {
		return delivery.Result{Detail: "WeChat gave an answer that cannot be read"}, false
	}
	return a.result(), a.aboutToken()
}
