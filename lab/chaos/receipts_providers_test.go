package chaos_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
)

// publicURL is how the providers know web; some of them sign it.
const publicURL = "https://drops.example"

// A reporter is a provider that reports the fate of messages.
type reporter struct {
	// env are the variables with which the programs use the provider.
	env []string
	// report returns a report of a message; if forged is set, the report has the same content
	// and is forged. A nil report means that the provider reports nothing.
	report func(a arrival, s feedback.Status, forged bool) *http.Request
	// foreignKey is the key of a message that this installation did not send.
	foreignKey string
}

// A smsReporter is an imitation of a provider of SMS.
type smsReporter struct {
	reporter
	http.Handler
	// prefix and a user's id are the user's number.
	prefix string
	// taken returns the messages of a call, with user, key and call. It returns none if the
	// answer refuses the call.
	taken func(q *http.Request, body, answer []byte) []*arrival
	// answerNames says that reports name a message only by the name in the provider's answer.
	// Reports of a message whose answer was lost cannot be matched.
	answerNames bool
}

// number is a user's number.
func (s *smsReporter) number(user int64) string { return s.prefix + strconv.FormatInt(user, 10) }

// user is the user with the number.
func (s *smsReporter) user(number string) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(number, s.prefix), 10, 64)
	return n
}

// A mailReporter is a mail server that reports as a provider does.
type mailReporter struct {
	reporter
	// key finds in the head of a mail how reports name it.
	key func(head textproto.MIMEHeader) string
}

// reporters are an imitated provider of SMS, with faults injected in front of it, and an
// imitated provider of mail.
type reporters struct {
	t       *testing.T
	sms     *smsReporter
	mail    *mailReporter
	server  net.Listener // of mail
	texts   *faultDeck
	letters *faultDeck
	over    chan struct{}
	// early hands over a message whose report goes out before the provider's answer.
	early func(*arrival)

	mu       sync.Mutex
	fronts   []*httptest.Server
	arrivals []*arrival
}

// startReporters starts the providers of these names; they end with the test.
func startReporters(t *testing.T, sms, mail string, texts, letters *faultDeck) *reporters {
	p := &reporters{t: t, sms: smsReporters[sms](t), mail: mailReporters[mail](t), texts: texts, letters: letters, over: make(chan struct{})}
	var err error
	if p.server, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &reportedLetter{from: p, conn: c.Conn()}, nil }))
	server.Domain, server.ErrorLog = "provider.example", discardLogger{}
	go func() { _ = server.Serve(p.server) }()
	t.Cleanup(func() {
		close(p.over)
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, f := range p.fronts {
			f.Close()
		}
		_ = server.Close()
	})
	return p
}

// env returns the variables with which a program sends through the providers. Each program has
// its own address for SMS and its own sender for mail, so that a message names its program.
func (p *reporters) env(program string) []string {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.text(program, w, r) }))
	p.mu.Lock()
	p.fronts = append(p.fronts, front)
	p.mu.Unlock()
	env := []string{"PUBLIC_URL=" + publicURL, "SMS_URL=" + front.URL, fmt.Sprintf("SMTP_URL=smtp://%s?from=%s@dropbell.example", p.server.Addr(), program)}
	return append(append(env, p.sms.env...), p.mail.env...)
}

// of is the provider of a channel.
func (p *reporters) of(c delivery.Channel) *reporter {
	if c == delivery.SMS {
		return &p.sms.reporter
	}
	return &p.mail.reporter
}

func (p *reporters) take(list ...*arrival) {
	p.mu.Lock()
	p.arrivals = append(p.arrivals, list...)
	p.mu.Unlock()
	for _, a := range list {
		p.early(a)
	}
}

func (p *reporters) settle(with answer, list ...*arrival) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range list {
		a.answer, a.ended = with, time.Now()
	}
}

// all returns a copy of the arrivals so far.
func (p *reporters) all() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]arrival, len(p.arrivals))
	for i, a := range p.arrivals {
		list[i] = *a
	}
	return list
}

// text is one call of a program to the provider of SMS.
func (p *reporters) text(program string, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // cut off: not a call
	}
	card := p.texts.deal()
	fails := func() { http.Error(w, "trouble", http.StatusServiceUnavailable) }
	pauses := func() {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
	}
	if card.turnAway(r, p.over, fails, pauses) {
		return
	}
	inside := r.Clone(r.Context())
	inside.Body = io.NopCloser(bytes.NewReader(body))
	given := httptest.NewRecorder()
	p.sms.ServeHTTP(given, inside)
	list := p.sms.taken(r, body, given.Body.Bytes())
	if given.Code/100 != 2 || len(list) == 0 {
		p.t.Errorf("the provider refuses a text: %d %s", given.Code, given.Body)
	}
	for _, a := range list {
		a.channel, a.worker, a.at, a.answer = delivery.SMS, program, time.Now(), unheard
	}
	p.take(list...)
	card.pass(w, r, p.over, given, func(with answer) { p.settle(with, list...) })
}

// A reportedLetter is one mail on its way to the server that reports.
type reportedLetter struct {
	from             *reporters
	conn             net.Conn
	sender, receiver string
}

func (l *reportedLetter) Reset()        {}
func (l *reportedLetter) Logout() error { return nil }
func (l *reportedLetter) Mail(from string, _ *smtp.MailOptions) error {
	l.sender = from
	return nil
}
func (l *reportedLetter) Rcpt(to string, _ *smtp.RcptOptions) error {
	l.receiver = to
	return nil
}

func (l *reportedLetter) Data(r io.Reader) error {
	in := textproto.NewReader(bufio.NewReader(r))
	head, err := in.ReadMIMEHeader()
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in.R); err != nil {
		return err // cut off: not a mail
	}
	with := answered
	switch l.from.letters.deal() {
	case refuse:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "trouble"}
	case dropBefore:
		return l.conn.Close()
	case dropAfter:
		with = concealed
	}
	a, err := l.arrival(head)
	if err == nil {
		l.from.take(a)
		l.from.settle(with, a)
	}
	if with == concealed {
		_ = l.conn.Close()
	}
	return err
}

func (l *reportedLetter) arrival(head textproto.MIMEHeader) (*arrival, error) {
	name, _, _ := strings.Cut(l.receiver, "@")
	user, err := strconv.ParseInt(strings.TrimPrefix(name, "u"), 10, 64)
	worker, _, _ := strings.Cut(l.sender, "@")
	return &arrival{channel: delivery.Email, user: user, key: l.from.mail.key(head), call: head.Get("Message-ID"), worker: worker, at: time.Now(), answer: unheard}, err
}
