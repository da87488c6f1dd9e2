package app

import (
	"fmt"

	"dropbell/adapters/config"
	"dropbell/adapters/smtp"
)

// MailExtras adds to the mail server's settings the address that reports are mailed to,
// the key that signs mails and what limits them; pace may be nil.
func MailExtras(cfg config.Config, pace smtp.Pace, to *smtp.Config) error {
	to.Pace = pace
	to.ReturnPath = cfg.Mail.BounceAddress
	if cfg.Mail.DKIMDomain == "" {
		return nil
	}
	key, err := smtp.ParseDKIMKey(cfg.Mail.DKIMKey)
	if err != nil {
		return fmt.Errorf("DKIM_KEY %w", err)
	}
	to.DKIM = &smtp.DKIM{Domain: cfg.Mail.DKIMDomain, Selector: cfg.Mail.DKIMSelector, Key: key}
	return nil
}
