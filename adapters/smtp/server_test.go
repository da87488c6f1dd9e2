package smtp_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/smtp"
	"dropbell/musttest"
)

// A received mail as the server saw it.
type received struct {
	from, to string
	raw      []byte
	secure   bool
	user     string
}

// A relay is a real SMTP server whose answers a test decides.
type relay struct {
	*gosmtp.Server
	// Rules; nil accepts. They run on the server's goroutines.
	onMail func(from string) error
	onRcpt func(c *gosmtp.Conn, to string) error
	onData func(c *gosmtp.Conn, to string) error
	// password is demanded when not empty.
	password string
	discard  bool

	mu       sync.Mutex
	mails    []received
	sessions int
	open     int
	peak     int
}

func (r *relay) NewSession(c *gosmtp.Conn) (gosmtp.Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sessions++
	r.open++
	r.peak = max(r.peak, r.open)
	return &session{relay: r, conn: c}, nil
}

func (r *relay) count() (mails, sessions, open int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mails), r.sessions, r.open
}

func (r *relay) last(t *testing.T) received {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mails) == 0 {
		t.Fatal("the server received nothing")
	}
	return r.mails[len(r.mails)-1]
}

type session struct {
	relay    *relay
	conn     *gosmtp.Conn
	from, to string
	user     string
}

func (s *session) AuthMechanisms() []string {
	if s.relay.password == "" {
		return nil
	}
	return []string{"PLAIN"}
}

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if password != s.relay.password {
			return errors.New("wrong password")
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *gosmtp.MailOptions) error {
	s.from = from
	if s.relay.password != "" && s.user == "" {
		return gosmtp.ErrAuthRequired
	}
	if s.relay.onMail != nil {
		return s.relay.onMail(from)
	}
	return nil
}

func (s *session) Rcpt(to string, _ *gosmtp.RcptOptions) error {
	s.to = to
	if s.relay.onRcpt != nil {
		return s.relay.onRcpt(s.conn, to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	if s.relay.discard {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if s.relay.onData != nil {
		if err := s.relay.onData(s.conn, s.to); err != nil {
			return err
		}
	}
	_, secure := s.conn.TLSConnectionState()
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.mails = append(s.relay.mails, received{from: s.from, to: s.to, raw: raw, secure: secure, user: s.user})
	return nil
}

func (s *session) Reset() { s.from, s.to = "", "" }

func (s *session) Logout() error {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.open--
	return nil
}

// start runs r on an unused port until the test ends.
func (r *relay) start(t testing.TB, prepare func(*gosmtp.Server)) *relay {
	t.Helper()
	r.Server = gosmtp.NewServer(r)
	r.Domain = "relay.example"
	r.AllowInsecureAuth = true
	r.ErrorLog = silent{}
	if prepare != nil {
		prepare(r.Server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	r.Addr = listener.Addr().String()
	done := make(chan error, 1)
	go func() { done <- r.Serve(listener) }()
	t.Cleanup(func() {
		_ = r.Close()
		_ = listener.Close() // Serve may not have begun when Close was called
		<-done
	})
	return r
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

// sender returns a sender for r, changed by change.
func (r *relay) sender(t testing.TB, change func(*smtp.Config)) *smtp.Sender {
	t.Helper()
	return newSender(t, r.Addr, change)
}

func newSender(t testing.TB, address string, change func(*smtp.Config)) *smtp.Sender {
	t.Helper()
	addr, err := net.ResolveTCPAddr("tcp", address)
	musttest.OK(t, err)
	cfg := smtp.Config{
		Host: "127.0.0.1",
		Port: addr.Port,
		From: mail.Address{Name: "Dropbell", Address: "drops@shop.example"},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := smtp.New(cfg)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// mute listens and takes connections, but never says a word.
func mute(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// certificate returns a server certificate for 127.0.0.1 and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	musttest.OK(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "relay"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	musttest.OK(t, err)
	leaf, err := x509.ParseCertificate(der)
	musttest.OK(t, err)
	trusted := x509.NewCertPool()
	trusted.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, trusted
}

// eventually polls until ok or half a minute has passed.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}
