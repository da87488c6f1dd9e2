package program

import (
	"errors"
	"strings"

	"dropbell/adapters/config"
	"dropbell/adapters/sms"
	"dropbell/adapters/sms/aliyun"
	"dropbell/adapters/sms/sns"
	"dropbell/adapters/sms/tencent"
	"dropbell/adapters/sms/twilio"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/feedback"
)

// smsStores are what the sender of SMS keeps, and the limits of mails.
type smsStores struct {
	mails   smtp.Pace // nil = mails are not limited
	budget  sms.Budget
	serials feedback.Serials
}

// closingSender is a sender with connections.
type closingSender interface {
	delivery.Sender
	Close() error
}

// smsGuard is the guarded sender of a provider.
type smsGuard struct {
	sms.Guard
	close func() error
}

// Close ends idle connections.
func (g *smsGuard) Close() error { return g.close() }

// newSMS builds the sender of the configured provider; variables are those that it
// refuses if there is an error.
func newSMS(cfg config.Config, stores smsStores) (s *smsGuard, variables string, err error) {
	s = &smsGuard{close: func() error { return nil }}
	texts, err := sms.ParseTemplates(cfg.SMS.Templates)
	if err != nil {
		return s, "SMS_TEMPLATES", err
	}
	for _, c := range cfg.SMS.Countries {
		if !sms.IsCountry(c) {
			return s, "SMS_COUNTRIES", errors.New(c + " is no country with phone numbers")
		}
	}
	sender, variables, err := smsProvider(cfg, texts, stores.serials)
	if err != nil {
		return s, variables, err
	}
	s.close = sender.Close
	s.Guard = sms.Guard{Sender: sender, Countries: cfg.SMS.Countries}
	if cfg.SMS.BudgetPerDay > 0 {
		s.Budget = stores.budget
	}
	return s, "", nil
}

func smsProvider(cfg config.Config, texts sms.Templates, serials feedback.Serials) (s closingSender, variables string, err error) {
	c := cfg.SMS
	switch c.Provider {
	case config.SMSTwilio:
		callback := ""
		if strings.HasPrefix(cfg.PublicURL, "https://") { // Twilio calls no other
			callback = strings.TrimSuffix(cfg.PublicURL, "/") + "/callbacks/twilio"
		}
		s, err = twilio.New(twilio.Config{URL: c.URL, Account: c.KeyID, AuthToken: c.KeySecret, From: c.From, Callback: callback})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_FROM, SMS_URL", err
	case config.SMSAliyun:
		s, err = aliyun.New(aliyun.Config{URL: c.URL, KeyID: c.KeyID, KeySecret: c.KeySecret, Signature: c.Signature, Templates: texts})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_SIGNATURE, SMS_TEMPLATES, SMS_URL", err
	case config.SMSTencent:
		if c.Token == "" {
			serials = nil // without callbacks they are of no use
		}
		s, err = tencent.New(tencent.Config{URL: c.URL, Region: c.Region, KeyID: c.KeyID, KeySecret: c.KeySecret, App: c.App, Signature: c.Signature, Templates: texts, Serials: serials})
		return s, "SMS_KEY_ID, SMS_KEY_SECRET, SMS_APP_ID, SMS_SIGNATURE, SMS_TEMPLATES, SMS_REGION, SMS_URL", err
	case config.SMSSNS:
		s, err = sns.New(sns.Config{URL: c.URL, Region: c.Region, KeyID: c.KeyID, KeySecret: c.KeySecret, From: c.From, Entity: c.App, Templates: texts})
		return s, "SMS_REGION, SMS_KEY_ID, SMS_KEY_SECRET, SMS_FROM, SMS_URL", err
	}
	s, err = sms.New(sms.Config{URL: c.URL, Token: c.Token})
	return s, "SMS_URL, SMS_TOKEN", err
}

// greetsByName reports whether a registered text of SMS has the user's name.
func greetsByName(cfg config.Config) bool {
	texts, err := sms.ParseTemplates(cfg.SMS.Templates)
	return err == nil && texts.Named()
}
