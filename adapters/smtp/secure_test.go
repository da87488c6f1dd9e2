package smtp_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"

	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/musttest"
)

const password = "p4ss-w0rd/&?"

func TestSTARTTLSWhenOffered(t *testing.T) {
	cert, trusted := certificate(t)
	r := new(relay).start(t, func(s *gosmtp.Server) {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{cert}}
	})
	want(t, r.sender(t, trust(trusted)).Send(t.Context(), sendertest.Messages(delivery.Email, 2)), delivery.Delivered)
	if !r.last(t).secure {
		t.Error("the mail went over the wire unencrypted")
	}
	results := r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 2))
	want(t, results, delivery.Transient)
	if !strings.Contains(results[0].Detail, "certificate") {
		t.Errorf("an untrusted certificate: got detail %q", results[0].Detail)
	}
}

func TestSTARTTLSRequired(t *testing.T) {
	r := new(relay).start(t, nil)
	results := r.sender(t, func(c *smtp.Config) { c.RequireTLS = true }).
		Send(t.Context(), sendertest.Messages(delivery.Email, 2))
	want(t, results, delivery.Transient)
	if !strings.Contains(results[0].Detail, "STARTTLS") {
		t.Errorf("got detail %q", results[0].Detail)
	}
	if mails, _, _ := r.count(); mails != 0 {
		t.Error("a mail went out unencrypted")
	}
}

func TestImplicitTLSWithPassword(t *testing.T) {
	cert, trusted := certificate(t)
	r := &relay{password: password}
	r.start(t, nil)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	musttest.OK(t, err)
	go func() { _ = r.Serve(listener) }()
	s := newSender(t, listener.Addr().String(), func(c *smtp.Config) {
		trust(trusted)(c)
		c.ImplicitTLS, c.Username, c.Password = true, "shop", password
	})
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 2)), delivery.Delivered)
	if got := r.last(t); !got.secure || got.user != "shop" {
		t.Errorf("got secure %v, user %q", got.secure, got.user)
	}
}

func TestPassword(t *testing.T) {
	r := &relay{password: password}
	r.start(t, nil)
	login := func(with string) []delivery.Result {
		return r.sender(t, func(c *smtp.Config) { c.Username, c.Password = "shop", with }).
			Send(t.Context(), sendertest.Messages(delivery.Email, 2))
	}
	want(t, login(password), delivery.Delivered)
	if got := r.last(t).user; got != "shop" {
		t.Errorf("authenticated as %q", got)
	}

	results := login("wrong-secret")
	want(t, results, delivery.Transient)
	if got := results[0].Detail; !strings.Contains(got, "refused") || strings.Contains(got, "wrong-secret") {
		t.Errorf("got detail %q", got)
	}
	want(t, r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Transient)
}

func TestPasswordIsNotSentInTheClear(t *testing.T) {
	addresses, err := net.InterfaceAddrs()
	musttest.OK(t, err)
	r := &relay{password: password}
	r.start(t, nil)
	outside := ""
	for _, address := range addresses {
		if n, ok := address.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			outside = n.IP.String()
		}
	}
	if outside == "" {
		// A machine without a network: 127.0.0.2 is as foreign to the library.
		outside = "127.0.0.2"
	}
	listener, err := net.Listen("tcp", outside+":0")
	musttest.OK(t, err)
	go func() { _ = r.Serve(listener) }()
	send := func(allowed bool) []delivery.Result {
		return newSender(t, listener.Addr().String(), func(c *smtp.Config) {
			c.Host, c.Username, c.Password, c.PlaintextAuth = outside, "shop", password, allowed
		}).Send(t.Context(), sendertest.Messages(delivery.Email, 1))
	}
	want(t, send(false), delivery.Transient)
	want(t, send(true), delivery.Delivered)
}

func trust(pool *x509.CertPool) func(*smtp.Config) {
	return func(c *smtp.Config) { c.TLS = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12} }
}
