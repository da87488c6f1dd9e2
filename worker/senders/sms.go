package senders

import (
	"errors"
	"strings"

	"dropbell/adapters/config"
	"dropbell/adapters/sms"
	"dropbell/adapters/smtp"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// guards are the stores that the senders of SMS use, and the limits of mails.
type guards struct {
	mails   smtp.Pace // nil = mails are not limited
	budget  sms.Budget
	serials feedback.Serials
}

// smsGuard is the guarded sender of a provider.
type smsGuard struct {
	*sms.Guard
	close func() error
}

// Close ends idle connections.
func (g *smsGuard) Close() error { return g.close() }

// guard returns the SMS sender of a provider, limited to the countries and the budget that the
// environment sets. With a price list the budget keeps what messages cost, also without a limit.
func (s guards) guard(cfg config.Config, sender delivery.Sender) *sms.Guard {
	g := &sms.Guard{Sender: sender, Countries: cfg.SMS.Countries, Prices: cfg.SMS.Prices}
	if cfg.SMS.BudgetPerDay > 0 || cfg.SMS.BudgetPerDrop > 0 || cfg.SMS.MicrosPerDay > 0 || !cfg.SMS.Prices.Empty() {
		g.Budget = s.budget
	}
	return g
}

// newSMS builds the sender of the environment's SMS provider. If there is an error, variables
// names the refused variables.
func newSMS(cfg config.Config, stores guards) (s *smsGuard, variables string, err error) {
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
	sender, variables, err := app.SMSSender(cfg.SMS, strings.TrimSuffix(cfg.PublicURL, "/")+"/callbacks/twilio", texts, stores.serials, nil)
	if err != nil {
		return s, variables, err
	}
	s.close, s.Guard = sender.Close, stores.guard(cfg, sender)
	return s, "", nil
}

// greetsByName reports whether a registered text of SMS has the user's name.
func greetsByName(cfg config.Config) bool {
	texts, err := sms.ParseTemplates(cfg.SMS.Templates)
	return err == nil && texts.Named()
}
