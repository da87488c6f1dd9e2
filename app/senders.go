package app

import (
	"errors"
	"net/url"
	"strconv"
	"strings"

	"dropbell/adapters/config"
	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/jsonapi"
	"dropbell/adapters/sms/sns"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/adapters/smtp"
	"dropbell/adapters/webhook"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/fault"
)

// A ClosingSender is a sender with connections.
type ClosingSender interface {
	delivery.Sender
	Close() error
}

// SMSSender builds the sender of an SMS provider. If there is an error, variables are the names
// of the variables to correct. callback is the address for the provider's reports; empty = no
// reports. control judges the addresses that are called; nil = every address is permitted.
func SMSSender(c config.SMS, callback string, texts sms.Templates, serials feedback.Serials, control sender.Control) (s ClosingSender, variables string, err error) {
	o := sender.Options{Control: control}
	switch c.Provider {
	case config.SMSTwilio:
		if !strings.HasPrefix(callback, "https://") { // Twilio calls only https addresses
			callback = ""
		}
		s, err = twilio.New(twilio.Config{URL: c.URL, Account: c.KeyID, AuthToken: c.KeySecret, From: c.From, Callback: callback, Options: o})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_FROM, SMS_URL", err
	case config.SMSAliyun:
		s, err = aliyun.New(aliyun.Config{Options: o, URL: c.URL, KeyID: c.KeyID, KeySecret: c.KeySecret, Signature: c.Signature, Templates: texts})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_SIGNATURE, SMS_TEMPLATES, SMS_URL", err
	case config.SMSTencent:
		if c.Token == "" {
			serials = nil // without callbacks they are of no use
		}
		s, err = tencent.New(tencent.Config{Options: o, URL: c.URL, Region: c.Region, KeyID: c.KeyID, KeySecret: c.KeySecret, App: c.App, Signature: c.Signature, Templates: texts, Serials: serials})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_APP_ID, SMS_SIGNATURE, SMS_TEMPLATES, SMS_REGION, SMS_URL", err
	case config.SMSSNS:
		s, err = sns.New(sns.Config{Options: o, URL: c.URL, Region: c.Region, KeyID: c.KeyID, KeySecret: c.KeySecret, From: c.From, Entity: c.App, Templates: texts})
		return s, "SMS_REGION, SMS_KEY_ID, SMS_KEY_SECRET, SMS_FROM, SMS_URL", err
	}
	s, err = jsonapi.New(jsonapi.Config{Options: o, URL: c.URL, Token: c.Token})
	return s, "SMS_URL, SMS_TOKEN", err
}

// SMSBudget returns the budget for text messages that the environment sets.
func (a *App) SMSBudget() deliverydb.SMSBudget {
	return deliverydb.NewSMSBudget(a.DB, a.Config.SMS.BudgetPerDay, a.Config.SMS.BudgetPerDrop).WithMoney(a.Config.SMS.MicrosPerDay, a.Config.SMS.Prices.Currency)
}

// staffControl judges the addresses of providers that staff configure. Addresses that are not
// public would let a member of the staff call into the servers' network. Providers of the
// environment may have any address.
func staffControl(cfg config.Config) sender.Control {
	if cfg.ProvidersPrivate {
		return nil
	}
	return sender.Public
}

// smsOf is the configuration of a provider of SMS.
func smsOf(p provider.Provider, secrets map[string]string) config.SMS {
	in := p.Settings
	return config.SMS{Provider: string(p.Kind), URL: in["url"], Token: secrets["token"], KeyID: in["key_id"], KeySecret: secrets["key_secret"],
		Region: in["region"], From: in["from"], App: in["app"], Signature: in["signature"], Templates: in["templates"]}
}

// ProviderCallback is the address of a configured provider's reports.
func ProviderCallback(publicURL string, p provider.Provider) string {
	return strings.TrimSuffix(publicURL, "/") + "/callbacks/" + p.ReportsAt() + "/" + strconv.FormatInt(p.ID, 10)
}

// ProviderSender builds the sender of a configured provider. For an SMS provider it also returns
// the registered texts. pace limits mails; nil = no limit. The error is a [fault.Fields] that
// names the field to correct, without secrets.
func ProviderSender(cfg config.Config, p provider.Provider, secrets map[string]string, serials feedback.Serials, pace smtp.Pace) (s ClosingSender, texts sms.Templates, err error) {
	field := "url"
	switch p.Kind {
	case provider.SMTP:
		s, err = mailSender(cfg, p, secrets, pace)
	case provider.APNS, provider.FCM, provider.WeChat:
		service, err := PushService(cfg, p, secrets, PushShared{})
		if err != nil {
			return nil, texts, err
		}
		return push.New(push.Options{}, service), texts, nil
	case provider.Webhook:
		if field = "secret"; !webAddress(p.Settings["url"]) {
			return nil, texts, refused("url", errors.New("use an address such as https://shop.example.com/notify"))
		}
		s, err = webhook.New(webhook.Config{Control: staffControl(cfg), URL: p.Settings["url"], Secret: secrets["secret"]})
	default:
		c := smsOf(p, secrets)
		if texts, err = sms.ParseTemplates(c.Templates); err != nil {
			return nil, texts, refused("templates", err)
		}
		if c.URL != "" && !webAddress(c.URL) {
			return nil, texts, refused("url", errors.New("use an address such as https://sms.example.com/v1/messages"))
		}
		if p.Kind != provider.JSON {
			field = "key_id"
		}
		s, _, err = SMSSender(c, ProviderCallback(cfg.PublicURL, p), texts, serials, staffControl(cfg))
	}
	if err != nil {
		return nil, texts, refused(field, err)
	}
	return s, texts, nil
}

func refused(field string, err error) error {
	e := &fault.Fields{}
	e.Add(field, "rule.provider_refused", "is not usable: %q", err.Error())
	return e
}

func webAddress(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Hostname() != "" && u.User == nil
}

// mailSender is the sender of a mail server. The password is kept apart from the address.
func mailSender(cfg config.Config, p provider.Provider, secrets map[string]string, pace smtp.Pace) (*smtp.Sender, error) {
	c, err := smtp.ParseURL(p.Settings["url"])
	if err != nil {
		return nil, err
	}
	c.Password, c.Feedback = secrets["password"], p.Settings["reports"]
	c.Control = staffControl(cfg)
	c.RequireTLS = c.RequireTLS || cfg.SMTPTLS == "required"
	cfg.Mail = fitting(cfg.Mail, c.From.Address)
	if err := MailExtras(cfg, pace, &c); err != nil {
		return nil, err
	}
	return smtp.New(c)
}
