package chaos_test

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"dropbell/domain/delivery"
)

// secret signs webhooks.
const secret = "whsec_Y2hhb3MtY2hhb3MtY2hhb3MtY2hhb3Mt"

// answer says how much the sender can know about a message that arrived.
type answer uint8

const (
	answered  answer = iota // the sender was told that it was taken
	concealed               // a fault on purpose: taken, and the sender was not told
	unheard                 // the sender was gone before it could be told
)

// An arrival is one message as the sink took it.
type arrival struct {
	channel delivery.Channel
	user    int64
	key     string // the idempotency key; of mail, the Message-ID without its domain
	call    string // identifies the call: for mail the key, for webhooks an id that all messages of the call share
	worker  string // the process that sent it
	at      time.Time
	answer  answer
	ended   time.Time // when the answer went out
}

// A sink is a webhook endpoint and a mail server that count what they take.
type sink struct {
	t       *testing.T
	hooks   *faultDeck
	mails   *faultDeck
	slow    [2]time.Duration // how long a webhook call takes, from and to
	perMail [2]time.Duration // how long a mail takes
	hold    atomic.Pointer[chan struct{}]
	inHand  atomic.Int64 // webhook calls being worked on
	over    chan struct{}
	web     net.Listener
	mail    net.Listener

	mu       sync.Mutex
	arrivals []*arrival
	refused  atomic.Int64 // messages that were turned away
	changed  chan struct{}
}

func newSink(t *testing.T, s size, hooks, mails *faultDeck) *sink {
	k := &sink{t: t, hooks: hooks, mails: mails, slow: s.hook, perMail: s.mail, over: make(chan struct{}), changed: make(chan struct{})}
	var err1, err2 error
	k.web, err1 = net.Listen("tcp", "127.0.0.1:0")
	k.mail, err2 = net.Listen("tcp", "127.0.0.1:0")
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	server := &http.Server{Handler: k}
	go func() { _ = server.Serve(k.web) }()
	mailServer := k.mailServer()
	go func() { _ = mailServer.Serve(k.mail) }()
	t.Cleanup(func() {
		close(k.over)
		_ = server.Close()
		_ = mailServer.Close()
	})
	return k
}

// env makes a program send to the sink under a name of its own.
func (k *sink) env(name string) []string {
	return []string{
		fmt.Sprintf("WEBHOOK_URL=http://%s/%s", k.web.Addr(), name), "WEBHOOK_SECRET=" + secret,
		fmt.Sprintf("SMTP_URL=smtp://%s?from=%s@dropbell.example", k.mail.Addr(), name),
	}
}

// take counts messages that arrived.
func (k *sink) take(list ...*arrival) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.arrivals = append(k.arrivals, list...)
	close(k.changed)
	k.changed = make(chan struct{})
}

// settle records how much the senders of the messages can know.
func (k *sink) settle(a answer, list ...*arrival) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, x := range list {
		x.answer, x.ended = a, time.Now()
	}
}

// all returns a copy of the arrivals so far.
func (k *sink) all() []arrival {
	k.mu.Lock()
	defer k.mu.Unlock()
	list := make([]arrival, len(k.arrivals))
	for i, a := range k.arrivals {
		list[i] = *a
	}
	return list
}

// await returns the first arrival for which ok holds.
func (k *sink) await(within time.Duration, ok func(arrival) bool) (arrival, bool) {
	limit := time.NewTimer(within)
	defer limit.Stop()
	for seen := 0; ; {
		k.mu.Lock()
		for ; seen < len(k.arrivals); seen++ {
			if a := *k.arrivals[seen]; ok(a) {
				k.mu.Unlock()
				return a, true
			}
		}
		more := k.changed
		k.mu.Unlock()
		select {
		case <-more:
		case <-limit.C:
			return arrival{}, false
		}
	}
}

// pause waits as long as a provider takes, or until the sender is gone.
func (k *sink) pause(d *faultDeck, span [2]time.Duration, gone <-chan struct{}) {
	wait(time.Duration(d.between(int64(span[0]), int64(span[1])+1)), gone)
}

// wait returns after d, or when stop is closed.
func wait(d time.Duration, stop <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-stop:
	}
}

// mailServer returns a server that takes all mail.
func (k *sink) mailServer() *smtp.Server {
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) {
		return &letter{sink: k, conn: c.Conn()}, nil
	}))
	server.Domain = "sink.example"
	server.ErrorLog = discardLogger{}
	return server
}

// discardLogger drops the server's log lines about clients that were killed.
type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}
func (discardLogger) Println(...any)        {}
