package smtp_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

func TestContract(t *testing.T) {
	sendertest.Run(t, sendertest.Harness{
		Accepting: func(t *testing.T) delivery.Sender {
			return new(relay).start(t, nil).sender(t, nil)
		},
		Stalled: func(t *testing.T) delivery.Sender {
			return newSender(t, mute(t), nil)
		},
		Unreachable: func(u *user.User) { u.Email = "nobody" },
		AtOnce:      1,
	})
}

func TestConnectionsAreReused(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, nil)
	for range 4 {
		want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 10)), delivery.Delivered)
	}
	if mails, sessions, _ := r.count(); mails != 40 || sessions != 1 {
		t.Errorf("got %d mails over %d connections, want 40 over 1", mails, sessions)
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, func(c *smtp.Config) { c.MaxConns = 2 })
	var senders sync.WaitGroup
	for range 8 {
		senders.Go(func() {
			want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 5)), delivery.Delivered)
		})
	}
	senders.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.mails) != 40 || r.peak > 2 {
		t.Errorf("got %d mails over up to %d connections at once, want 40 over 2", len(r.mails), r.peak)
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, func(c *smtp.Config) { c.IdleTimeout = 20 * time.Millisecond })
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
	eventually(t, "the connection to be closed", func() bool {
		_, _, open := r.count()
		return open == 0
	})
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
}

func TestServerThatClosesIdleConnections(t *testing.T) {
	r := new(relay).start(t, func(s *gosmtp.Server) { s.ReadTimeout = 200 * time.Millisecond })
	s := r.sender(t, nil)
	for range 3 {
		want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 2)), delivery.Delivered)
		eventually(t, "the server to hang up", func() bool {
			_, _, open := r.count()
			return open == 0
		})
	}
}

func TestRejectionsDoNotSpoilTheChunk(t *testing.T) {
	refusals := map[string]*gosmtp.SMTPError{
		"reader2@example.com": {Code: 550, EnhancedCode: gosmtp.EnhancedCode{5, 1, 1}, Message: "<reader2@example.com>: user unknown"},
		"reader3@example.com": {Code: 452, EnhancedCode: gosmtp.EnhancedCode{4, 2, 2}, Message: "mailbox full"},
		"reader5@example.com": {Code: 450, EnhancedCode: gosmtp.EnhancedCode{4, 7, 1}, Message: "slow down"},
		"reader6@example.com": {Code: 451, EnhancedCode: gosmtp.EnhancedCode{4, 3, 0}, Message: "local error"},
		"reader8@example.com": {Code: 451, EnhancedCode: gosmtp.NoEnhancedCode, Message: "Greylisted, come back later"},
	}
	r := &relay{onRcpt: func(_ *gosmtp.Conn, to string) error {
		if refusal := refusals[to]; refusal != nil {
			return refusal
		}
		return nil
	}}
	r.start(t, nil)
	results := r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 8))
	wanted := []delivery.Result{
		{Status: delivery.Delivered}, {Status: delivery.Permanent}, {Apart: true}, {Status: delivery.Delivered},
		{Apart: true, After: 45 * time.Second}, {}, {Status: delivery.Delivered}, {Apart: true, After: 45 * time.Second},
	}
	for i, w := range wanted {
		if r := results[i]; r.Status != w.Status || r.Apart != w.Apart || r.After != w.After {
			t.Errorf("message %d: got %+v, want %+v", i+1, r, w)
		}
	}
	if got, want := results[1].Detail, "550 5.1.1 <…>: user unknown"; got != want {
		t.Errorf("got detail %q, want %q", got, want)
	}
	if _, sessions, _ := r.count(); sessions != 1 {
		t.Errorf("%d connections were needed, want 1", sessions)
	}
}

func TestRefusalsByStage(t *testing.T) {
	refusal := func(code, class, detail int) *gosmtp.SMTPError {
		return &gosmtp.SMTPError{Code: code, EnhancedCode: gosmtp.EnhancedCode{code / 100, class, detail}, Message: "no"}
	}
	for _, c := range []struct {
		name   string
		relay  *relay
		status delivery.Status
	}{
		{"sender refused", &relay{onMail: func(string) error { return refusal(550, 7, 1) }}, delivery.Transient},
		{"content refused", &relay{onData: func(*gosmtp.Conn, string) error { return refusal(554, 6, 0) }}, delivery.Permanent},
		{"content deferred", &relay{onData: func(*gosmtp.Conn, string) error { return refusal(451, 3, 0) }}, delivery.Transient},
		{"content throttled", &relay{onData: func(*gosmtp.Conn, string) error { return refusal(451, 7, 1) }}, delivery.Throttled},
		{"too many for this connection", &relay{onRcpt: func(*gosmtp.Conn, string) error { return refusal(421, 7, 0) }}, delivery.Throttled},
		{"sender deferred", &relay{onMail: func(string) error { return refusal(451, 7, 1) }}, delivery.Throttled},
		{"not authenticated", &relay{onRcpt: func(*gosmtp.Conn, string) error { return refusal(530, 7, 0) }}, delivery.Transient},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.relay.start(t, nil)
			want(t, c.relay.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 3)), c.status)
		})
	}
}

func TestThrottledServerIsNotAskedAgain(t *testing.T) {
	asked := 0
	r := &relay{onMail: func(string) error {
		asked++
		return &gosmtp.SMTPError{Code: 421, EnhancedCode: gosmtp.EnhancedCode{4, 7, 0}, Message: "too many messages"}
	}}
	r.start(t, nil)
	want(t, r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 20)), delivery.Throttled)
	if asked != 1 {
		t.Errorf("the server was asked %d times", asked)
	}
}

func TestUnusableAddresses(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, nil)
	addresses := []string{
		"", " ", "a", "@b.example", "a@", "a@b c.example", "a@b.example>\r\nRCPT TO:<x@y.example",
		"Bob <bob@example.com>", "a@b.example,c@d.example", "a\x00@b.example", "a@b.example.",
		strings.Repeat("a", 250) + "@b.example", "ünï@example.com",
	}
	messages := sendertest.Messages(delivery.Email, len(addresses))
	for i := range messages {
		messages[i].To.Email = addresses[i]
	}
	for i, result := range s.Send(t.Context(), messages) {
		if result.Status != delivery.Permanent || result.Detail == "" {
			t.Errorf("%q: got %+v", addresses[i], result)
		}
	}
	if mails, _, _ := r.count(); mails != 0 {
		t.Errorf("the server took %d of them", mails)
	}
}

func TestInternationalAddress(t *testing.T) {
	r := new(relay).start(t, func(s *gosmtp.Server) { s.EnableSMTPUTF8 = true })
	messages := sendertest.Messages(delivery.Email, 1)
	messages[0].To.Email = "用户@例子.example"
	want(t, r.sender(t, nil).Send(t.Context(), messages), delivery.Delivered)
	if got := r.last(t).to; got != "用户@例子.example" {
		t.Errorf("sent to %q", got)
	}
}

func TestClose(t *testing.T) {
	r := new(relay).start(t, nil)
	s := r.sender(t, nil)
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server to see QUIT", func() bool {
		_, _, open := r.count()
		return open == 0
	})
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Transient)
}

func want(t *testing.T, results []delivery.Result, status delivery.Status) {
	t.Helper()
	for i, r := range results {
		if r.Status != status {
			t.Errorf("message %d: got %+v, want status %d", i+1, r, status)
			return
		}
	}
}
