package webpush

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	pushing "dropbell/adapters/push"
	"dropbell/adapters/sender"
	"dropbell/domain/user"
)

// Config holds the VAPID identity (RFC 8292) and limits.
type Config struct {
	// PublicKey and PrivateKey are the P-256 pair in base64url; required.
	PublicKey  string
	PrivateKey string
	// Subject is the operator's address for questions of a push service: a mailto: or https:
	// address; required.
	Subject string
	// Timeout bounds one push; default 10 s.
	Timeout time.Duration
	// OnGone is called, possibly concurrently, for every subscription that no longer exists
	// according to the push service. May be nil.
	OnGone func(ctx context.Context, id user.ID, gone user.PushSubscription)
	// AllowInsecure permits plain http to this machine. For tests only:
	// endpoints come from users' browsers, and otherwise only https to public
	// addresses is called.
	AllowInsecure bool
	// Transport is for TLS roots, proxies and similar settings. nil = a transport that refuses
	// private addresses and uses no proxy.
	Transport http.RoundTripper
	// Now is the clock for TTL and Retry-After; default [time.Now].
	Now func() time.Time
}

func (c *Config) check() error {
	if err := checkKeys(c.PublicKey, c.PrivateKey); err != nil {
		return err
	}
	address, isMail := strings.CutPrefix(c.Subject, "mailto:")
	if u, err := url.Parse(c.Subject); isMail && strings.Contains(address, "@") ||
		err == nil && u.Scheme == "https" && u.Host != "" {
		return nil
	}
	return errors.New("web push subject: must be a mailto: or https: address")
}

// checkKeys finds swapped, cut or mismatched keys at start, not at the first drop.
func checkKeys(public, private string) error {
	decode := base64.RawURLEncoding.DecodeString
	secret, err := decode(strings.TrimRight(private, "="))
	if err != nil {
		return errors.New("web push private key: not base64url")
	}
	key, err := ecdh.P256().NewPrivateKey(secret)
	if err != nil {
		return errors.New("web push private key: not a P-256 key of 32 bytes")
	}
	point, err := decode(strings.TrimRight(public, "="))
	if err != nil {
		return errors.New("web push public key: not base64url")
	}
	if string(point) != string(key.PublicKey().Bytes()) {
		return errors.New("web push public key: does not belong to the private key")
	}
	return nil
}

func (c *Config) setDefaults() {
	if c.Timeout <= 0 {
		c.Timeout = pushing.CallTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Transport == nil {
		control := sender.Public
		if c.AllowInsecure {
			control = nil
		}
		c.Transport = sender.NewTransport(c.Timeout, control)
	}
}

const detailPrivate = "the push endpoint is not a public address"

// checkEndpoint refuses addresses that no browser issues, and returns the host of an accepted
// address.
func (c *Config) checkEndpoint(raw string) (host string, err error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil {
		return "", errors.New("the push endpoint is not an address")
	}
	host = strings.ToLower(u.Host)
	if u.Scheme == "https" {
		return host, nil
	}
	ip := net.ParseIP(u.Hostname())
	if c.AllowInsecure && u.Scheme == "http" && ip != nil && ip.IsLoopback() {
		return host, nil
	}
	return "", fmt.Errorf("the push endpoint's scheme is %.10q, not https", u.Scheme)
}
