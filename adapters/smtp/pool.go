package smtp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	gosmtp "github.com/wneessen/go-mail/smtp"
)

// goodbye is how long a server may take to answer QUIT.
const goodbye = time.Second

var errClosed = errors.New("the mail sender is closed")

// A conn is one session with the server. It belongs to one Send at a time.
type conn struct {
	client  *gomail.Client
	session *gosmtp.Client
	// raw is the TCP connection below any TLS. Closing raw ends every wait at once. The
	// library's own Close does not, because it waits for its turn.
	raw net.Conn
	// reused: the server may have closed it as idle.
	reused bool
	expiry *time.Timer
}

func (c *conn) quit() {
	_ = c.raw.SetDeadline(time.Now().Add(goodbye))
	_ = c.session.Quit()
	_ = c.raw.Close()
}

// A pool keeps connections between sends: dialling costs more than a mail.
type pool struct {
	cfg   Config
	slots chan struct{} // one per connection in use

	mu     sync.Mutex
	idle   []*conn // the most recently used last
	closed bool
}

func newPool(cfg Config) *pool {
	return &pool{cfg: cfg, slots: make(chan struct{}, cfg.MaxConns)}
}

// enter waits for the right to hold one connection; leave gives it back.
func (p *pool) enter(ctx context.Context) error {
	select {
	case p.slots <- struct{}{}:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get returns a kept connection, or a new one.
func (p *pool) get(ctx context.Context) (*conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		c.expiry.Stop()
		c.reused = true
		return c, nil
	}
	p.mu.Unlock()
	return p.dial(ctx)
}

// put keeps a healthy connection for the next send, for a while.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		go c.quit()
		return
	}
	c.expiry = time.AfterFunc(p.cfg.IdleTimeout, func() { p.expire(c) })
	p.idle = append(p.idle, c)
}

// expire ends c unless it was taken in the meantime.
func (p *pool) expire(c *conn) {
	p.mu.Lock()
	before := len(p.idle)
	p.idle = slices.DeleteFunc(p.idle, func(other *conn) bool { return other == c })
	idle := len(p.idle) < before
	p.mu.Unlock()
	if idle {
		c.quit()
	}
}

// forget drops all idle connections after one connection was found dead: the dropped connections
// have been idle for longer.
func (p *pool) forget() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		c.expiry.Stop()
		_ = c.raw.Close()
	}
}

func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()

	var quits sync.WaitGroup
	for _, c := range idle {
		c.expiry.Stop()
		quits.Go(c.quit)
	}
	quits.Wait()
}

// dial opens a session: greeting, TLS and authentication. Each session has a client of its own,
// because the library's client changes its own fields while it authenticates.
func (p *pool) dial(ctx context.Context) (*conn, error) {
	c := &conn{}
	stop := func() bool { return true }
	options := append(p.options(), gomail.WithDialContextFunc(
		func(dialling context.Context, network, address string) (net.Conn, error) {
			dialer := net.Dialer{Timeout: p.cfg.Timeout, ControlContext: p.cfg.Control}
			raw, err := dialer.DialContext(dialling, network, address)
			if err != nil {
				return nil, err
			}
			c.raw = raw
			stop = context.AfterFunc(ctx, func() { _ = raw.Close() })
			if !p.cfg.ImplicitTLS {
				return raw, nil
			}
			return tls.Client(raw, p.cfg.TLS), nil
		}))
	var err error
	if c.client, err = gomail.NewClient(p.cfg.Host, options...); err != nil {
		return nil, err
	}
	c.session, err = c.client.DialToSMTPClientWithContext(ctx)
	stop()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil && c.raw != nil {
		_ = c.raw.Close() // the library leaves it open
	}
	return c, err
}

func (p *pool) options() []gomail.Option {
	options := []gomail.Option{
		gomail.WithPort(p.cfg.Port),
		gomail.WithTimeout(p.cfg.Timeout),
		gomail.WithTLSConfig(p.cfg.TLS),
		gomail.WithTLSPolicy(p.policy()),
		// A dead connection shows when it is used. A check before and a reset after every mail
		// would double the round trips.
		gomail.WithoutNoop(),
		gomail.WithoutRset(),
	}
	if p.cfg.Username == "" {
		return options
	}
	return append(options,
		gomail.WithUsername(p.cfg.Username),
		gomail.WithPassword(p.cfg.Password),
		gomail.WithOpportunisticSMTPAuth(p.mechanisms()...),
	)
}

func (p *pool) policy() gomail.TLSPolicy {
	switch {
	case p.cfg.ImplicitTLS:
		return gomail.NoTLS // it is encrypted already
	case p.cfg.RequireTLS:
		return gomail.TLSMandatory
	}
	return gomail.TLSOpportunistic
}

// mechanisms lists the authentication mechanisms, the best first. PLAIN and LOGIN refuse to work
// without TLS, except on this machine.
func (p *pool) mechanisms() []gomail.SMTPAuthType {
	proofs := []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthCramMD5}
	if p.cfg.PlaintextAuth {
		return append(proofs, gomail.SMTPAuthPlainNoEnc, gomail.SMTPAuthLoginNoEnc)
	}
	return append(proofs, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin)
}
