package app

import (
	"fmt"
	"slices"
	"strings"

	"dropbell/adapters/config"
	"dropbell/adapters/dnsrecords"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/provider"
	"dropbell/domain/mailcheck"
)

// MailExtras adds settings to the mail server's settings: the address to which reports are
// mailed, the key that signs mails, and pace, which limits mails and may be nil.
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

// fitting removes settings of the environment that do not fit the domain of a configured
// provider's sender. It removes a DKIM key that would sign for another organization. It removes
// an address for reports that would break SPF alignment with the sender (RFC 7489, section 3.1).
func fitting(m config.Mail, from string) config.Mail {
	domain := func(address string) string { return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:]) }
	sender, signer := domain(from), strings.ToLower(m.DKIMDomain)
	if sender != signer && !strings.HasSuffix(sender, "."+signer) {
		m.DKIMDomain = ""
	}
	records := dnsrecords.Resolver{}
	if reports := domain(m.BounceAddress); reports != sender && (records.Organization(sender) == "" || records.Organization(reports) != records.Organization(sender)) {
		m.BounceAddress = ""
	}
	return m
}

// MailSenders returns the distinct senders: the environment's mail server, which sends
// mails to staff, and each enabled mail server among the providers.
func MailSenders(cfg config.Config, providers []provider.Provider) (senders []mailcheck.Sender) {
	add := func(address string, fit func(config.Mail, string) config.Mail) {
		server, err := smtp.ParseURL(address)
		if address == "" || err != nil {
			return
		}
		if s := senderOf(server, fit(cfg.Mail, server.From.Address)); !slices.Contains(senders, s) {
			senders = append(senders, s)
		}
	}
	add(cfg.SMTPURL, func(m config.Mail, _ string) config.Mail { return m })
	for _, p := range providers {
		if p.Channel == delivery.Email && p.Enabled {
			add(p.Settings["url"], fitting)
		}
	}
	return senders
}

func senderOf(server smtp.Config, m config.Mail) mailcheck.Sender {
	domain := func(address string) string { return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:]) }
	s := mailcheck.Sender{From: domain(server.From.Address), ReturnPath: domain(server.From.Address), Server: server.Host}
	if m.BounceAddress != "" {
		s.ReturnPath = domain(m.BounceAddress)
	}
	if key, err := smtp.ParseDKIMKey(m.DKIMKey); err == nil && m.DKIMDomain != "" {
		s.Signer, s.Selector, s.Record = m.DKIMDomain, m.DKIMSelector, smtp.DKIM{Key: key}.Record()
	}
	return s
}
