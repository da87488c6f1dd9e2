// Package smtp sends mail (RFC 5321) through a relay, over kept connections.
package smtp

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"

	"dropbell/domain/delivery"
	"dropbell/killpoint"
)

// chunkSize is how many mails go over one connection in one Send. SMTP has no batches. On a good
// relay 50 mails take well under a second.
const chunkSize = 50

// A Sender sends one mail per message. It is safe for concurrent use. The maximum number of
// connections limits how many Sends run at once.
type Sender struct {
	cfg    Config
	domain string // right-hand side of message ids
	signed []string
	pool   *pool
}

// New returns a sender, or an error if cfg lacks something. It does not connect, because the
// product must start although the mail server is down.
func New(cfg Config) (*Sender, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.setDefaults()
	// The library reports invalid options here, before the first mail.
	p := newPool(cfg)
	if _, err := gomail.NewClient(cfg.Host, p.options()...); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(cfg.From.Address, "@")
	return &Sender{cfg: cfg, domain: domain, signed: signedHeaders(), pool: p}, nil
}

// Channel returns [delivery.Email].
func (s *Sender) Channel() delivery.Channel { return delivery.Email }

// ChunkSize returns how many mails go over one connection in one Send.
func (s *Sender) ChunkSize() int { return chunkSize }

// Close sends QUIT on all idle connections. Sends that are under way finish; later Sends return
// Transient results.
func (s *Sender) Close() error {
	s.pool.close()
	return nil
}

// Send sends the messages one after the other over one connection. A mail is completed only when
// the mail before it is recorded in its [delivery.Journal]. An empty or impossible address is
// Permanent without a command to the server. A broken connection is replaced. A mail that the
// server cannot have taken is then tried once more; a mail that the server may have taken is
// Transient.
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	results := make([]delivery.Result, len(messages))
	if len(messages) == 0 {
		return results
	}
	if err := s.pool.enter(ctx); err != nil {
		return delivery.Repeat(refused(err), len(messages))
	}
	defer func() { <-s.pool.slots }()

	giveBackUnsent := s.keepBack(ctx, messages, results)
	r := &run{sender: s, ctx: ctx}
	for i, m := range messages {
		if results[i].Held {
			continue
		}
		results[i] = delivery.Isolated(func() delivery.Result { return r.deliver(m) })
		if results[i].Crash != nil {
			r.abandon()
		}
	}
	r.finish()
	giveBackUnsent()
	return results
}

// A run is one Send: its connection and how often that broke.
type run struct {
	sender *Sender
	ctx    context.Context
	conn   *conn
	stop   func() bool
	// losses counts the connections lost since a mail last got through.
	losses int
	// slow are the domains that get no more mails in this Send, with the wait of their mails.
	slow map[string]time.Duration
	// asking is the domain that asked for fewer mails since a mail last got through.
	asking string
	// over is the result of all remaining messages once the run has ended; nil = it has not.
	over *delivery.Result
	// recorded waits until the last mail that got through is recorded; nil = it is.
	recorded func(context.Context) error
	// cutting is a lock for cut, which runs when ctx ends, and for completing. completing says
	// that all of a mail except its end has been written; cut then leaves time for the answer.
	cutting    sync.Mutex
	completing bool
}

// answerFor is how long after the end of its context a Send waits for the server's answer to a
// mail whose end was written before. Without the wait such a mail would count as not sent,
// although most such mails were taken.
const answerFor = time.Second

// cut ends the work of the connection after ctx has ended. A mail whose end may have been
// written is answered within [answerFor]. Nothing more is written.
func (r *run) cut(c *conn) {
	r.cutting.Lock()
	defer r.cutting.Unlock()
	if !r.completing {
		_ = c.raw.Close()
		return
	}
	_ = c.raw.SetWriteDeadline(time.Now())
	_ = c.raw.SetReadDeadline(time.Now().Add(answerFor))
}

// complete is called when all of a mail except its end has been written. An error means that the
// end must not be written.
func (r *run) complete() error {
	if err := r.settle(); err != nil {
		return err
	}
	r.cutting.Lock()
	defer r.cutting.Unlock()
	r.completing = r.ctx.Err() == nil
	return r.ctx.Err()
}

// completed resets completing, and reports whether the end of the mail may have been written.
func (r *run) completed() bool {
	r.cutting.Lock()
	defer r.cutting.Unlock()
	was := r.completing
	r.completing = false
	return was
}

// settle waits until the last mail that got through is recorded. No other mail may be completed
// before: if this program is killed, at most one mail per connection is repeated.
func (r *run) settle() error {
	if r.recorded == nil {
		return nil
	}
	err := r.recorded(r.ctx)
	if r.recorded = nil; err != nil {
		r.over = new(delivery.Unrecorded())
	}
	return err
}

// maxLosses allows for one kept connection that became stale and one mail on which the server
// fails. It is small, so that a server in trouble does not get many connections.
const maxLosses = 3

func (r *run) deliver(m delivery.Message) delivery.Result {
	switch {
	case m.To.Email == "":
		return delivery.Result{Status: delivery.Permanent, Detail: "no mail address"}
	case !validAddress(m.To.Email):
		return delivery.Result{Status: delivery.Permanent, Detail: "not a mail address"}
	}
	if wait, ok := r.slow[domainOf(m.To.Email)]; ok {
		return heldBack(wait, delivery.ReasonDomain)
	}
	for first := true; ; first = false {
		if !r.connect() {
			rest := *r.over
			rest.Unsent = true // also if the mail that ended the run may have been taken
			return rest
		}
		a := r.try(m)
		r.slowDown(m, &a)
		if a.result.Status == delivery.Delivered {
			r.gotThrough(m)
		}
		if !a.broken {
			return a.result
		}
		r.lose(a.result)
		if !first || !a.unsent || a.slow {
			return a.result
		}
	}
}

// connect makes sure that there is a connection, or says why there is none.
func (r *run) connect() bool {
	if r.over == nil && r.ctx.Err() != nil {
		r.over = new(refused(r.ctx.Err()))
	}
	if r.over != nil {
		return false
	}
	if r.conn != nil {
		return true
	}
	c, err := r.sender.pool.get(r.ctx)
	if err != nil {
		answer := refused(err)
		r.over = &answer
		return false
	}
	r.conn = c
	r.stop = context.AfterFunc(r.ctx, func() { r.cut(c) })
	return true
}

// lose gives up the connection. If the server hung up because of too many mails, the run ends.
func (r *run) lose(last delivery.Result) {
	r.stop()
	_ = r.conn.raw.Close()
	if r.conn.reused {
		r.sender.pool.forget()
	}
	r.conn = nil
	r.losses++
	if r.losses >= maxLosses || last.Status == delivery.Throttled && !last.Apart || r.ctx.Err() != nil {
		r.over = &last
	}
}

// abandon gives up a connection whose last mail has an unknown outcome.
func (r *run) abandon() {
	if r.conn != nil {
		r.stop()
		_ = r.conn.raw.Close()
		r.conn = nil
	}
}

// finish keeps the connection for the next Send. It closes the connection if ctx has ended or
// the last mail is not recorded.
func (r *run) finish() {
	if r.settle() != nil {
		r.abandon()
	}
	switch {
	case r.conn == nil:
	case r.stop():
		r.sender.pool.put(r.conn)
	default:
		_ = r.conn.raw.Close()
	}
}

func (r *run) try(m delivery.Message) answer {
	international := !ascii(m.To.Email)
	if ok, _ := r.conn.session.Extension("SMTPUTF8"); international && !ok {
		return answer{result: delivery.Result{
			Status: delivery.Permanent,
			Detail: "the mail server does not accept international addresses",
		}}
	}
	mail, err := r.sender.compose(m, r.complete)
	if err != nil {
		return answer{result: delivery.Result{Unsent: true, Detail: delivery.DetailOf("the mail could not be signed: " + err.Error())}}
	}
	r.conn.session.SkipSMTPUTF8(!international)
	a := read(killpoint.Around("smtp.mail", func() error {
		return r.conn.client.SendWithSMTPClient(r.conn.session, mail)
	}))
	completed := r.completed()
	if r.over != nil { // cut off before its end: the server takes nothing
		return answer{result: *r.over, broken: true}
	}
	if err := r.ctx.Err(); err != nil && a.broken {
		cut := refused(err)
		if cut.Unsent = a.result.Unsent || !completed; !cut.Unsent {
			cut.Detail = "unknown: the mail was handed over, and the mail server did not answer in time"
		}
		return answer{result: cut, broken: true}
	}
	if a.open {
		a.broken = r.conn.session.Reset() != nil
	}
	return a
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
