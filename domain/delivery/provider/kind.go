package provider

import (
	"encoding/json"
	"maps"
	"slices"

	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// Kind is the interface that a provider speaks.
type Kind string

// The kinds.
const (
	SMTP    Kind = "smtp"
	JSON    Kind = "json" // the JSON interface of text messages
	Twilio  Kind = "twilio"
	Aliyun  Kind = "aliyun"
	Tencent Kind = "tencent"
	SNS     Kind = "sns"
	Webhook Kind = "webhook"
	APNS    Kind = "apns"   // Apple Push Notification service
	FCM     Kind = "fcm"    // Firebase Cloud Messaging
	WeChat  Kind = "wechat" // one-time subscription messages of a mini program
)

// A Field is one setting or secret of a kind.
type Field struct {
	Name     string
	Secret   bool
	Required bool
	Long     bool // has several lines
	// Derived says that the setting is read from a secret, and is not said by staff.
	Derived bool
	// Choices are the values there are besides none; nil = any text.
	Choices []string
}

// Sandbox is the setting of APNs for builds that are not from the App Store or TestFlight.
const Sandbox = "sandbox"

var kinds = map[delivery.Channel][]Kind{
	delivery.Email:   {SMTP},
	delivery.SMS:     {Twilio, Aliyun, Tencent, SNS, JSON},
	delivery.WebPush: {APNS, FCM, WeChat},
	delivery.Webhook: {Webhook},
}

var fields = map[Kind][]Field{
	SMTP: {{Name: "url", Required: true}, {Name: "password", Secret: true},
		{Name: "reports", Choices: []string{"ses", "sendgrid", "mailgun", "postmark", "directmail"}}, {Name: "topics"}, {Name: "reports_key", Secret: true}},
	JSON:   {{Name: "url", Required: true}, {Name: "token", Secret: true, Required: true}},
	Twilio: {{Name: "key_id", Required: true}, {Name: "key_secret", Secret: true, Required: true}, {Name: "from", Required: true}, {Name: "url"}},
	Aliyun: {{Name: "key_id", Required: true}, {Name: "key_secret", Secret: true, Required: true}, {Name: "signature", Required: true},
		{Name: "templates", Required: true, Long: true}, {Name: "token", Secret: true}, {Name: "url"}},
	Tencent: {{Name: "key_id", Required: true}, {Name: "key_secret", Secret: true, Required: true}, {Name: "app", Required: true}, {Name: "signature"},
		{Name: "templates", Required: true, Long: true}, {Name: "region"}, {Name: "token", Secret: true}, {Name: "url"}},
	SNS: {{Name: "key_id", Required: true}, {Name: "key_secret", Secret: true, Required: true}, {Name: "region", Required: true}, {Name: "from"}, {Name: "app"},
		{Name: "templates", Long: true}, {Name: "url"}},
	Webhook: {{Name: "url", Required: true}, {Name: "secret", Secret: true}},
	APNS: {{Name: "topic", Required: true}, {Name: "key", Secret: true, Required: true, Long: true}, {Name: "key_id", Required: true}, {Name: "team_id", Required: true},
		{Name: "builds", Choices: []string{Sandbox}}, {Name: "url"}},
	FCM: {{Name: "project", Derived: true}, {Name: "account", Secret: true, Required: true, Long: true}, {Name: "per_minute"}, {Name: "url"}},
	WeChat: {{Name: "app_id", Required: true}, {Name: "app_secret", Secret: true, Required: true}, {Name: "template", Required: true},
		{Name: "data", Required: true, Long: true}, {Name: "page"}, {Name: "version", Choices: []string{"trial", "developer"}}, {Name: "per_minute"}, {Name: "url"}},
}

// Channels returns the channels that providers can be configured for. For push,
// providers serve apps on phones and mini programs of WeChat.
func Channels() []delivery.Channel { return slices.Sorted(maps.Keys(kinds)) }

// Kinds returns the kinds of a channel's providers.
func Kinds(c delivery.Channel) []Kind { return kinds[c] }

// Fields returns the settings and secrets of the kind, in the order of its form.
func (k Kind) Fields() []Field { return fields[k] }

// Channel returns the channel whose messages the kind delivers; false for an unknown kind.
func (k Kind) Channel() (delivery.Channel, bool) {
	for c, list := range kinds {
		if slices.Contains(list, k) {
			return c, true
		}
	}
	return 0, false
}

// Shares reports whether providers of the kind share messages by weight. Push providers
// do not: each reaches the devices of its own app.
func (k Kind) Shares() bool { return k.Platform() == "" }

// Platform is the platform of the devices that providers of the kind reach; empty = none.
func (k Kind) Platform() user.Platform {
	switch k {
	case APNS:
		return user.IOS
	case FCM:
		return user.Android
	case WeChat:
		return user.WeChat
	}
	return ""
}

// App returns the app whose devices a push provider reaches; the zero App for another
// channel.
func (p Provider) App() App {
	name := map[Kind]string{APNS: "topic", FCM: "project", WeChat: "app_id"}[p.Kind]
	return App{p.Kind.Platform(), p.Settings[name]}
}

// Account returns the provider as an account at a push service.
func (p Provider) Account() Account {
	return Account{ID: p.ID, Shop: p.Shop, Order: p.Order, App: p.App()}
}

// derive adds the settings that are read from secrets.
func (p Provider) derive(secrets map[string]string) {
	if p.Kind != FCM {
		return
	}
	var account struct {
		Project string `json:"project_id"`
	}
	if json.Unmarshal([]byte(secrets["account"]), &account) == nil && account.Project != "" {
		p.Settings["project"] = account.Project
	}
}

// ReportsAt is the last part of the address that the provider calls with delivery
// reports, "" for a kind that makes no such calls.
func (p Provider) ReportsAt() string {
	switch p.Kind {
	case SMTP:
		return p.Settings["reports"]
	case JSON:
		return "sms"
	case Aliyun, Tencent:
		if !p.Has("token") {
			return ""
		}
		return string(p.Kind)
	case Twilio:
		return string(p.Kind)
	}
	return ""
}

func decodeSecrets(raw []byte) (map[string]string, error) {
	secrets := map[string]string{}
	if err := json.Unmarshal(raw, &secrets); err != nil {
		return nil, ErrSealed
	}
	return secrets, nil
}
