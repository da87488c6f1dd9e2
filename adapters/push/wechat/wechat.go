// Package wechat delivers reminders to mini programs of WeChat by one-time subscription messages
// (小程序一次性订阅消息). Each acceptance of wx.requestSubscribeMessage by the user permits one
// message. See "sendMessage" (cgi-bin/message/subscribe/send) and "getStableAccessToken"
// (cgi-bin/stable_token) in WeChat's documentation.
package wechat

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/message"
	"dropbell/domain/user"
)

// DefaultURL is WeChat's service.
const DefaultURL = "https://api.weixin.qq.com"

// The versions of the mini program that a message opens.
const (
	Formal    = "formal"
	Trial     = "trial"
	Developer = "developer"
)

// Config is the identity of a mini program and the message that it sends.
type Config struct {
	// AppID and Secret identify the mini program; required.
	AppID, Secret string
	// Template is the id of the subscription message, which the mini program has chosen from
	// WeChat's library; required.
	Template string
	// Data are the fields of the subscription message, one per line, such as thing1 = {{drop}}.
	// The variables are the variables of the texts of reminders.
	Data string
	// Page is the page that the message opens, such as pages/drop/index?id={id}, where {id} is
	// the drop's number; empty = the message opens no page.
	Page string
	// Version is the version of the mini program that is opened; empty = [Formal].
	Version string
	// URL is the service, https, or http on this machine only, for tests; empty = [DefaultURL].
	URL string
	// PerMinute is how many messages may be sent per minute; 0 = no limit. The caller of Push
	// obeys the limit by [Service.Turn].
	PerMinute int
	// Admit shares that among all workers; nil = this process has it alone.
	Admit push.Admit
	// Shared keeps the access token for all processes; nil = this process has its own.
	Shared Shared
	sender.Options
}

// A Service sends to the users of a mini program. It is safe for concurrent use.
type Service struct {
	*push.Account
	cfg    Config
	data   []field
	tokens *tokens
}

// New returns the service, or a [push.Mistake], which never holds the secret.
func New(cfg Config) (*Service, error) {
	address, err := push.Endpoint(cfg.URL, DefaultURL, "the address of WeChat must be an https address such as ",
		"the AppSecret must not cross the network in clear: use an https address such as ")
	if err != nil {
		return nil, err
	}
	cfg.URL = address
	switch {
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
	var quota *push.Quota
	if cfg.PerMinute > 0 {
		quota = push.NewQuota(cfg.PerMinute, cfg.Admit)
	}
	account := push.NewAccount("wechat", provider.App{Platform: user.WeChat, Name: cfg.AppID}, cfg.Client(push.CallTimeout), quota)
	return &Service{account, cfg, data, newTokens(cfg, account)}, nil
}

// Named reports whether a field of the message greets by name.
func (s *Service) Named() bool {
	return slices.ContainsFunc(s.data, func(f field) bool { return slices.Contains(f.text.Uses(false), message.VarUser) })
}

// Calls reports whether WeChat would be asked to deliver the message; see
// [push.ConfiguredService].
func (s *Service) Calls(m delivery.Message) bool {
	return permitted(m) && s.Account.Calls(m)
}

// permitted reports whether the recipient has consented to the message. A test message, which
// staff send to themselves, is always permitted here: WeChat decides.
func permitted(m delivery.Message) bool {
	return m.Consented || m.Subject.Kind == delivery.KindTest
}

// noConsent is the answer to a message without a consent.
func noConsent() delivery.Result {
	return delivery.Result{Status: delivery.Permanent, Skip: true, Unsent: true, Held: true, Reason: delivery.ReasonNoConsent,
		Detail: "not sent to WeChat: the recipient has not consented to this message"}
}

// Push sends the message to one of the user's accounts in the mini program. A consent permits
// one message, so the next account is tried only if WeChat has certainly refused the message.
// The account that was seen last comes first. See [push.Service].
func (s *Service) Push(ctx context.Context, m delivery.Message) (results []delivery.Result) {
	for _, d := range slices.Backward(m.To.Devices) {
		if !s.Reaches(d) {
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
	return sender.WithToken(
		func(refused string) (string, error) { return s.tokens.Get(ctx, refused) },
		func(access string) (delivery.Result, bool) { return s.call(ctx, m, d, access) },
		noToken)
}

// call sends once, and reports whether the access token was refused.
func (s *Service) call(ctx context.Context, m delivery.Message, d user.Device, access string) (result delivery.Result, refused bool) {
	got, failed := s.Post(ctx, s.cfg.URL+"/cgi-bin/message/subscribe/send?access_token="+url.QueryEscape(access), nil, s.body(m, d))
	if failed != nil {
		return *failed, false
	}
	if got.Status != http.StatusOK {
		result = delivery.HTTPResult(got.Status, got.Header.Get("Retry-After"), s.cfg.Time())
		if result.Status == delivery.Permanent || result.Status == delivery.Delivered {
			result = delivery.Result{Detail: result.Detail} // no status of this interface
		}
		return result, false
	}
	var a answer
	if json.Unmarshal(got.Body, &a) != nil || a.Code == nil {
		return delivery.Result{Detail: "WeChat gave an answer that cannot be read"}, false
	}
	return a.result(), a.aboutToken()
}
