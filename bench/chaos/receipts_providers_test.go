package chaos_test

import (
	"bufio"
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

	"dropbell/adapters/sms/smstest"
	"dropbell/domain/delivery"
)

const (
	// publicURL is how the imitations know web; it is what Twilio signs.
	publicURL      = "https://drops.example"
	postmarkSecret = "chaos-postmark-secret"
	// phonePrefix and a user's id are the user's number.
	phonePrefix = "+1415"
)

// reporters are a provider of SMS and one of mail that report what became of messages:
// Twilio, in front of whose imitation faults are dealt, and a mail server that reports
// as Postmark does.
type reporters struct {
	t       *testing.T
	twilio  *smstest.Twilio
	front   *httptest.Server
	mail    net.Listener
	texts   *faultDeck
	letters *faultDeck
	over    chan struct{}
	// early hands over a message whose report goes out before the provider's answer.
	early func(*arrival)

	mu       sync.Mutex
	arrivals []*arrival
}

// startReporters starts both; they end with the test.
func startReporters(t *testing.T, texts, letters *faultDeck) *reporters {
	p := &reporters{t: t, twilio: smstest.NewTwilio(), texts: texts, letters: letters, over: make(chan struct{})}
	p.front = httptest.NewServer(http.HandlerFunc(p.text))
	var err error
	if p.mail, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &reportedLetter{from: p, conn: c.Conn()}, nil }))
	server.Domain, server.ErrorLog = "postmark.example", discardLogger{}
	go func() { _ = server.Serve(p.mail) }()
	t.Cleanup(func() {
		close(p.over)
		p.front.Close()
		p.twilio.Close()
		_ = server.Close()
	})
	return p
}

// env makes a program send by the imitations, under a name of its own.
func (p *reporters) env(name string) []string {
	return []string{"PUBLIC_URL=" + publicURL, "SMS_PROVIDER=twilio", "SMS_URL=" + p.front.URL + "/" + name, "SMS_KEY_ID=" + smstest.TwilioAccount,
		"SMS_KEY_SECRET=" + smstest.TwilioToken, "SMS_FROM=+15005550006", "SMTP_FEEDBACK=postmark", "POSTMARK_WEBHOOK_SECRET=" + postmarkSecret,
		fmt.Sprintf("SMTP_URL=smtp://%s?from=%s@dropbell.example", p.mail.Addr(), name)}
}

func (p *reporters) take(a *arrival) {
	p.mu.Lock()
	p.arrivals = append(p.arrivals, a)
	p.mu.Unlock()
	p.early(a)
}

func (p *reporters) settle(a *arrival, with answer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a.answer, a.ended = with, time.Now()
}

// all returns a copy of what has arrived.
func (p *reporters) all() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]arrival, len(p.arrivals))
	for i, a := range p.arrivals {
		list[i] = *a
	}
	return list
}

// text is one call of the resource Message: /worker-1/2010-04-01/….
func (p *reporters) text(w http.ResponseWriter, r *http.Request) {
	worker, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	_ = r.ParseForm()
	card := p.texts.deal()
	switch card {
	case refuse:
		http.Error(w, "trouble", http.StatusServiceUnavailable)
		return
	case throttle:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many", http.StatusTooManyRequests)
		return
	case hang: // not taken, and no answer within the client's time limit
		p.leave(r)
		return
	case dropBefore:
		panic(http.ErrAbortHandler)
	}
	inside := r.Clone(r.Context())
	inside.URL.Path = "/" + path
	taken := httptest.NewRecorder()
	p.twilio.ServeHTTP(taken, inside)
	if taken.Code != http.StatusCreated {
		p.t.Errorf("Twilio refuses a text: %d %s", taken.Code, taken.Body)
	}
	user, _ := strconv.ParseInt(strings.TrimPrefix(r.PostFormValue("To"), phonePrefix), 10, 64)
	a := &arrival{channel: delivery.SMS, user: user, key: r.PostFormValue("StatusCallback"), worker: worker, at: time.Now(), answer: unheard}
	p.take(a)
	switch card {
	case dropAfter:
		p.settle(a, concealed)
		panic(http.ErrAbortHandler)
	case late: // taken, and no answer within the client's time limit
		p.settle(a, concealed)
		p.leave(r)
		return
	}
	if r.Context().Err() == nil {
		p.settle(a, answered)
	}
	for k, v := range taken.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(taken.Code)
	_, _ = w.Write(taken.Body.Bytes())
}

// leave returns once the caller has given up.
func (p *reporters) leave(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-p.over:
	}
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
	switch l.from.letters.deal() {
	case refuse:
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "trouble"}
	case dropBefore:
		return l.conn.Close()
	case dropAfter:
		a, err := l.arrival(head)
		if err == nil {
			l.from.take(a)
			l.from.settle(a, concealed)
		}
		_ = l.conn.Close()
		return err
	}
	a, err := l.arrival(head)
	if err == nil {
		l.from.take(a)
		l.from.settle(a, answered)
	}
	return err
}

func (l *reportedLetter) arrival(head textproto.MIMEHeader) (*arrival, error) {
	name, _, _ := strings.Cut(l.receiver, "@")
	user, err := strconv.ParseInt(strings.TrimPrefix(name, "u"), 10, 64)
	worker, _, _ := strings.Cut(l.sender, "@")
	return &arrival{channel: delivery.Email, user: user, key: head.Get("X-PM-Metadata-dropbell"), worker: worker, at: time.Now(), answer: unheard}, err
}
