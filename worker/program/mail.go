package program

import (
	"fmt"

	"dropbell/adapters/config"
	"dropbell/adapters/smtp"
)

// mailExtras adds to the mail server's settings the address that reports are mailed to
// and the key that signs mails.
func mailExtras(cfg config.Config, to *smtp.Config) error {
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
