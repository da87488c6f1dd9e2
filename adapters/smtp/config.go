package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	defaultPort    = 25
	defaultTLSPort = 465
	defaultConns   = 8
	defaultIdle    = 30 * time.Second
	defaultTimeout = 30 * time.Second
)

// Config says which server to use and how.
type Config struct {
	Host string
	// Port is 25 when zero, 465 with TLS.
	Port     int
	Username string
	Password string
	// From is the sender of every mail; required.
	From mail.Address
	// ImplicitTLS encrypts from the first byte (smtps). Otherwise STARTTLS is
	// used when the server offers it, and demanded with RequireTLS.
	ImplicitTLS bool
	RequireTLS  bool
	// PlaintextAuth allows the password to cross the network unencrypted. Connections to this
	// machine ("localhost", 127.0.0.1, ::1) need no permission.
	PlaintextAuth bool
	// MaxConns bounds the connections and thereby parallel sends; default 8.
	MaxConns int
	// IdleTimeout is how long an unused connection is kept; default 30 s. It must be below the
	// server's own idle timeout, otherwise each pause costs a new connection.
	IdleTimeout time.Duration
	// Timeout bounds connecting and every single mail; default 30 s.
	Timeout time.Duration
	// Control judges every address after the name was resolved and before the connection; nil =
	// every address is permitted.
	Control func(ctx context.Context, network, address string, c syscall.RawConn) error
	// Feedback selects how a mail carries its reference for the reports of the provider behind
	// the server: one of [Feedbacks], or empty = no reference.
	Feedback string
	// ReturnPath is the envelope's sender, to which reports are mailed back. The mail's
	// reference is added after a plus sign. Empty = From, without a reference.
	ReturnPath string
	// DKIM signs mails; nil = they are not signed.
	DKIM *DKIM
	// Pace limits how many mails go to the domains of recipients; nil = nothing does.
	Pace Pace
	// TLS overrides how the server is verified; for private authorities.
	TLS *tls.Config
}

// ParseURL reads smtp://user:password@host:port?from=… or smtps://…. Further parameters are
// starttls=required, auth=plaintext (see [Config]), and conns, the maximum number of
// connections. Errors name the mistake and never contain the password.
func ParseURL(raw string) (Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's own error repeats the whole address.
		return Config{}, errors.New("smtp address: not a URL of the form smtp://user:password@host:port?from=… (special characters must be percent-encoded)")
	}
	if u.Scheme != "smtp" && u.Scheme != "smtps" {
		return Config{}, fmt.Errorf("smtp address: scheme is %q; use smtp or smtps", u.Scheme)
	}
	cfg := Config{Host: u.Hostname(), ImplicitTLS: u.Scheme == "smtps", Username: u.User.Username()}
	cfg.Password, _ = u.User.Password()
	if u.Port() != "" {
		if cfg.Port, err = strconv.Atoi(u.Port()); err != nil || cfg.Port < 1 || cfg.Port > 65535 {
			return Config{}, fmt.Errorf("smtp address: port %q is not between 1 and 65535", u.Port())
		}
	}
	if u.Path != "" && u.Path != "/" {
		return Config{}, errors.New("smtp address: a path makes no sense here")
	}
	if err := cfg.readParameters(u.RawQuery); err != nil {
		return Config{}, err
	}
	return cfg, cfg.check()
}

func (c *Config) readParameters(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("smtp address: the parameters after “?” are not percent-encoded correctly")
	}
	for name := range values {
		value := values.Get(name)
		switch {
		case name == "from":
			from, err := mail.ParseAddress(value)
			if err != nil {
				return fmt.Errorf("smtp address: from=%q is not a mail address", value)
			}
			c.From = *from
		case name == "starttls" && value == "required":
			c.RequireTLS = true
		case name == "auth" && value == "plaintext":
			c.PlaintextAuth = true
		case name == "conns":
			if c.MaxConns, err = strconv.Atoi(value); err != nil || c.MaxConns < 1 {
				return fmt.Errorf("smtp address: conns=%q is not a positive number", value)
			}
		case name == "starttls", name == "auth":
			return fmt.Errorf("smtp address: %s=%q is not understood; use starttls=required or auth=plaintext", name, value)
		default:
			return fmt.Errorf("smtp address: unknown parameter %q; use from, starttls, auth or conns", name)
		}
	}
	return nil
}

func (c *Config) check() error {
	switch {
	case c.Host == "":
		return errors.New("smtp address: the host is missing")
	case strings.ContainsAny(c.Host, " \r\n\t"):
		return errors.New("smtp address: the host contains white space")
	case c.From.Address == "":
		return errors.New("smtp address: from=… is missing; it is the sender of every mail")
	case !validAddress(c.From.Address):
		return errors.New("smtp address: from=… is not a mail address")
	case c.Feedback != "" && !slices.Contains(Feedbacks(), c.Feedback):
		return errors.New("smtp feedback: not one of " + strings.Join(Feedbacks(), ", "))
	case c.ReturnPath != "" && !validAddress(c.ReturnPath):
		return errors.New("smtp return path: not a mail address")
	case c.Password != "" && c.Username == "":
		return errors.New("smtp address: there is a password but no user name")
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Port == 0 && c.ImplicitTLS {
		c.Port = defaultTLSPort
	}
	if c.Port == 0 {
		c.Port = defaultPort
	}
	if c.MaxConns <= 0 {
		c.MaxConns = defaultConns
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = defaultIdle
	}
	if c.Timeout <= 0 {
		c.Timeout = defaultTimeout
	}
	if c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.TLS = c.TLS.Clone()
	if c.TLS.ServerName == "" {
		c.TLS.ServerName = c.Host
	}
}

// validAddress reports whether s is usable as an envelope address unchanged: no name, no
// comment, no quoting, and no character that could end an SMTP command.
func validAddress(s string) bool {
	if len(s) > 254 || strings.ContainsAny(s, " \t\r\n<>\"\\\x00") {
		return false
	}
	parsed, err := mail.ParseAddress(s)
	if err != nil || parsed.Address != s || parsed.Name != "" {
		return false
	}
	domain := s[strings.LastIndexByte(s, '@')+1:]
	if literal, ok := strings.CutPrefix(domain, "["); ok {
		return net.ParseIP(strings.TrimPrefix(strings.TrimSuffix(literal, "]"), "IPv6:")) != nil
	}
	return !strings.HasSuffix(domain, ".")
}
