package config

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The senders of worker check their settings as well. The same checks are made here, because web
// has no senders, and worker would not get to its senders while any other setting is wrong.

const smtpForm = "smtp://user:password@host:port?from=drops@example.com"

// smtpAddress names all mistakes of a mail server's address.
func smtpAddress(c *Config, v string) error {
	c.SMTPURL = v
	if v == "" {
		return nil
	}
	u, err := url.Parse(v)
	if err != nil {
		return errors.New("must have the form " + smtpForm + ", special characters percent-encoded")
	}
	var wrong []string
	must := func(ok bool, expected string) {
		if !ok {
			wrong = append(wrong, "must "+expected)
		}
	}
	must(u.Scheme == "smtp" || u.Scheme == "smtps", "begin with smtp:// or smtps://")
	must(u.Hostname() != "" && !strings.ContainsAny(u.Hostname(), " \t\r\n"), "name the mail server's host after ://")
	port, err := strconv.Atoi(u.Port())
	must(u.Port() == "" || err == nil && port >= 1 && port <= 65535, "have a port between 1 and 65535")
	must(u.Path == "" || u.Path == "/", "have no path after the host")
	password, _ := u.User.Password()
	must(password == "" || u.User.Username() != "", "name the user whose password it has")
	values, err := url.ParseQuery(u.RawQuery)
	must(err == nil, "have its parameters after ? percent-encoded")
	if err == nil {
		smtpParameters(values, must)
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "; "))
	}
	return nil
}

func smtpParameters(values url.Values, must func(bool, string)) {
	from, err := mail.ParseAddress(values.Get("from"))
	must(err == nil && !strings.ContainsAny(from.Address, " \t\"\\") && !strings.HasSuffix(from.Address, "."),
		"name the sender of every mail: ?from=drops@example.com")
	conns, err := strconv.Atoi(values.Get("conns"))
	must(!values.Has("conns") || err == nil && conns >= 1, "have a number of at least 1 as conns")
	must(!values.Has("starttls") || values.Get("starttls") == "required", "have no other starttls than starttls=required")
	must(!values.Has("auth") || values.Get("auth") == "plaintext", "have no other auth than auth=plaintext")
	known := []string{"from", "starttls", "auth", "conns"}
	unknown := false
	for name := range values {
		unknown = unknown || !slices.Contains(known, name)
	}
	must(!unknown, "have no other parameters than "+strings.Join(known, ", "))
}

func smtpTLS(c *Config, v string) error {
	c.SMTPTLS = v
	if v != "required" && v != "opportunistic" {
		return errors.New("must be required or opportunistic")
	}
	return nil
}

func providersPrivate(c *Config, v string) error {
	c.ProvidersPrivate = v == "yes"
	if v != "yes" && v != "no" {
		return errors.New("must be yes or no")
	}
	return nil
}

func pushPrivate(c *Config, v string) error {
	c.PushPrivate = v == "yes"
	if v != "yes" && v != "no" {
		return errors.New("must be yes or no")
	}
	return nil
}

func alertsPrivate(c *Config, v string) error {
	c.AlertsPrivate = v == "yes"
	if v != "yes" && v != "no" {
		return errors.New("must be yes or no")
	}
	return nil
}

func webhookSecret(c *Config, v string) error {
	c.WebhookSecret = v
	encoded, ok := strings.CutPrefix(v, "whsec_")
	if key, err := base64.StdEncoding.DecodeString(encoded); v != "" && (!ok || err != nil || len(key) < 24) {
		return errors.New("must be whsec_ followed by at least 24 bytes in base64, such as openssl rand -base64 32 prints")
	}
	return nil
}

func vapidPublicKey(c *Config, v string) error {
	c.VAPIDPublicKey = v
	if v == "" {
		return nil
	}
	if _, err := ecdh.P256().NewPublicKey(base64URL(v)); err != nil {
		return errors.New("must be the public key of P-256, 65 bytes in base64url")
	}
	return nil
}

func vapidPrivateKey(c *Config, v string) error {
	c.VAPIDPrivateKey = v
	if v == "" {
		return nil
	}
	if _, err := ecdh.P256().NewPrivateKey(base64URL(v)); err != nil {
		return errors.New("must be a private key of P-256, 32 bytes in base64url")
	}
	return nil
}

func vapidSubject(c *Config, v string) error {
	c.VAPIDSubject = v
	if v == "" {
		return nil
	}
	address, isMail := strings.CutPrefix(v, "mailto:")
	if u, err := url.Parse(v); isMail && strings.Contains(address, "@") || err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	return errors.New("must be how push services reach you: mailto:drops@example.com, or an https:// address")
}

// base64URL returns the bytes of s, none if it is not base64url.
func base64URL(s string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil
	}
	return raw
}

// vapidPair reports whether the keys belong together. It returns true for keys
// that are invalid on their own.
func (c Config) vapidPair() bool {
	private, err := ecdh.P256().NewPrivateKey(base64URL(c.VAPIDPrivateKey))
	if err != nil {
		return true
	}
	public, err := ecdh.P256().NewPublicKey(base64URL(c.VAPIDPublicKey))
	return err != nil || public.Equal(private.PublicKey())
}
