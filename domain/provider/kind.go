package provider

import (
	"encoding/json"
	"maps"
	"slices"

	"dropbell/domain/delivery"
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
	WeChat  Kind = "wechat" // one-time subscription messages of a mini program
)

// A Field is one setting or secret of a kind.
type Field struct {
	Name     string
	Secret   bool
	Required bool
	Long     bool // has several lines
	// Choices are the values there are besides none; nil = any text.
	Choices []string
}

var kinds = map[delivery.Channel][]Kind{
	delivery.Email:   {SMTP},
	delivery.SMS:     {Twilio, Aliyun, Tencent, SNS, JSON},
	delivery.WebPush: {WeChat},
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
	WeChat: {{Name: "app_id", Required: true}, {Name: "app_secret", Secret: true, Required: true}, {Name: "template", Required: true},
		{Name: "data", Required: true, Long: true}, {Name: "page"}, {Name: "version", Choices: []string{"trial", "developer"}}, {Name: "per_minute"}, {Name: "url"}},
}

// Channels returns the channels that providers can be configured for. Of push these are
// mini programs of WeChat: the token of a phone belongs to one app, and its account cannot
// be replaced by another.
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

// Shares reports whether providers of the kind share messages by weight. Those of push do
// not: each reaches the devices of its own app.
func (k Kind) Shares() bool { return k != WeChat }

// ReportsAt is the last part of the address that the provider calls with reports, ""
// for a kind that makes no calls.
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
