package config

import (
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/mail"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
)

// Mail holds the settings of the channel email apart from its mail server.
type Mail struct {
	// BounceAddress is the address to which bounce reports are mailed, with the mail's reference
	// after a plus sign; empty = the sender of SMTP_URL, without the reference.
	BounceAddress string
	// BounceMailbox is the address of its mailbox; empty = it is not read.
	BounceMailbox string
	// DKIMDomain, DKIMSelector and DKIMKey sign mails; empty = they are not signed.
	// DKIMKey is a private key in PEM.
	DKIMDomain, DKIMSelector, DKIMKey string
	// DomainRates are the most mails per second to a domain, by its name.
	DomainRates map[string]int
	// WarmUp is the plan of a sender that is new; the zero value = none.
	WarmUp delivery.WarmUp
}

// maxBounceName leaves room for "+" and a reference of 45 characters: the part of an address
// before the @ may have 64 characters (RFC 5321).
const maxBounceName = 64 - 46

func mailVariables() []Variable {
	return []Variable{
		{"BOUNCE_ADDRESS", "", "channel email: the sender of the envelope, such as bounces@mail.example.com; mails to it and to bounces+…@mail.example.com must arrive in one mailbox; with LINK_SECRET; empty = the sender of SMTP_URL", bounceAddress},
		{"BOUNCE_IMAP_URL", "", "the mailbox of BOUNCE_ADDRESS, which worker empties: imaps://user:password@host:993/INBOX, or imap:// with STARTTLS; empty = it is not read", bounceMailbox},
		{"DKIM_DOMAIN", "", "channel email: the domain that signs mails, such as example.com; empty = mails are not signed here", dnsName(func(c *Config) *string { return &c.Mail.DKIMDomain }, "example.com")},
		{"DKIM_SELECTOR", "", "channel email: the name of the key in DNS, where SELECTOR._domainkey.DKIM_DOMAIN has the public key", dnsName(func(c *Config) *string { return &c.Mail.DKIMSelector }, "drop2026")},
		{"MAIL_DOMAIN_RATES", "", "channel email: mails per second that all workers together send to a domain of recipients, such as gmail.com=20,qq.com=10, from 1 to 10000; empty = any number", domainRates},
		{"MAIL_WARMUP", "", "channel email: the mails that a new sender sends a day (UTC), such as 2026-12-01:200x1.5: on the first day 200, every day one and a half times as many; empty = any number", func(c *Config, v string) (err error) {
			c.Mail.WarmUp, err = delivery.ParseWarmUp(v)
			return err
		}},
		{"DKIM_KEY", "", "channel email: the private key in PEM, RSA of 2048 bits or more or Ed25519, or the same in base64 on one line", dkimKey},
	}
}

func bounceAddress(c *Config, v string) error {
	if v == "" {
		return nil
	}
	a, err := mail.ParseAddress(v)
	user, domain, _ := strings.Cut(v, "@")
	if err != nil || a.Address != v || len(user) > maxBounceName || strings.Contains(user, "+") || !dns.MatchString(domain) {
		return errors.New("must be a mail address such as bounces@mail.example.com, with at most 18 characters and no + before the @")
	}
	c.Mail.BounceAddress = v
	return nil
}

func bounceMailbox(c *Config, v string) error {
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil || u.Scheme != "imap" && u.Scheme != "imaps" || u.Hostname() == "" || u.User.Username() == "" {
		return errors.New("must have the form imaps://user:password@host:993/INBOX, special characters percent-encoded")
	}
	c.Mail.BounceMailbox = v
	return nil
}

// dns matches domain names of letters, digits and hyphens; a selector may have one part only.
var dns = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

func dnsName(field func(*Config) *string, example string) reader {
	return func(c *Config, v string) error {
		*field(c) = strings.ToLower(v)
		if v != "" && (!dns.MatchString(v) || len(v) > 253) {
			return errors.New("must be a name in DNS, such as " + example)
		}
		return nil
	}
}

func domainRates(c *Config, v string) error {
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.ToLower(strings.TrimSpace(part)); part == "" {
			continue
		}
		domain, number, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > 10_000 || !dns.MatchString(domain) {
			return errors.New("must be domains with mails per second from 1 to 10000, such as gmail.com=20,qq.com=10")
		}
		if c.Mail.DomainRates == nil {
			c.Mail.DomainRates = map[string]int{}
		}
		c.Mail.DomainRates[domain] = n
	}
	return nil
}

// minDKIM is the length in bits below which receivers distrust an RSA key (RFC 8301).
const minDKIM = 2048

func dkimKey(c *Config, v string) error {
	if v == "" {
		return nil
	}
	c.Mail.DKIMKey = fileOf(v, "-----BEGIN")
	block, _ := pem.Decode([]byte(c.Mail.DKIMKey))
	if block != nil {
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		}
		key, isRSA := parsed.(*rsa.PrivateKey)
		if _, edwards := parsed.(ed25519.PrivateKey); err == nil && (edwards || isRSA && key.N.BitLen() >= minDKIM) {
			return nil
		}
	}
	return errors.New("must be a private key in PEM, RSA of 2048 bits or more or Ed25519 and not encrypted, with its lines -----BEGIN PRIVATE KEY-----, or the same in base64 (base64 -w0 dkim.pem)")
}

// mailTogether reports settings of mails that need further settings.
func (c Config) mailTogether(need func(bool, string), all func(names []string, values ...string)) {
	need(c.Mail.BounceAddress == "" || c.LinkSecret != "", "LINK_SECRET is missing: it signs what names a mail in the address that reports are mailed to")
	need(c.Mail.BounceMailbox == "" || c.Mail.BounceAddress != "", "BOUNCE_ADDRESS is missing for BOUNCE_IMAP_URL")
	all([]string{"DKIM_DOMAIN", "DKIM_SELECTOR", "DKIM_KEY"}, c.Mail.DKIMDomain, c.Mail.DKIMSelector, c.Mail.DKIMKey)
}
