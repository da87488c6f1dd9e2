package smtp_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/musttest"
)

func TestConnectionBreaksInsideTheChunk(t *testing.T) {
	for name, spoil := range map[string]func(*relay, func(*gosmtp.Conn, string) error){
		"before the mail was taken":     func(r *relay, f func(*gosmtp.Conn, string) error) { r.onRcpt = f },
		"while the mail is being taken": func(r *relay, f func(*gosmtp.Conn, string) error) { r.onData = f },
	} {
		t.Run(name, func(t *testing.T) {
			r := new(relay)
			spoil(r, func(c *gosmtp.Conn, to string) error {
				if to == "reader4@example.com" {
					_ = c.Conn().Close()
				}
				return nil
			})
			r.start(t, nil)
			results := r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 9))
			for i, result := range results {
				if want := i != 3; (result.Status == delivery.Delivered) != want {
					t.Errorf("message %d: got %+v", i+1, result)
				}
			}
			if results[3].Status != delivery.Transient {
				t.Errorf("the broken one: got %+v", results[3])
			}
		})
	}
}

// slowJournal records a mail when the test says so.
type slowJournal struct {
	accepted chan user.ID
	record   chan error
}

func (j *slowJournal) Accepted(id user.ID) func(context.Context) error {
	j.accepted <- id
	return func(ctx context.Context) error {
		select {
		case err := <-j.record:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestAMailIsNotCompletedBeforeTheLastOneIsRecorded: whenever this program is killed, the server
// has at most one mail more than the journal. All of the next mail except its end may be under
// way. Send returns only when its last mail is recorded, too.
func TestAMailIsNotCompletedBeforeTheLastOneIsRecorded(t *testing.T) {
	rcpt := make(chan string, 10)
	r := &relay{onRcpt: func(_ *gosmtp.Conn, to string) error { rcpt <- to; return nil }}
	r.start(t, nil)
	j := &slowJournal{make(chan user.ID, 10), make(chan error)}
	messages := sendertest.Messages(delivery.Email, 3)
	for i := range messages {
		messages[i].Journal = j
	}
	done := make(chan []delivery.Result)
	s := r.sender(t, nil)
	go func() { done <- s.Send(t.Context(), messages) }()
	for n := range 3 {
		<-rcpt
		if id := <-j.accepted; id != user.ID(n+1) {
			t.Errorf("mail %d was for user %d", n, id)
		}
		if n < 2 {
			rcpt <- <-rcpt // the next one is under way
		}
		if mails, _, _ := r.count(); mails != n+1 {
			t.Errorf("the server has %d mails while the journal has %d", mails, n)
		}
		select {
		case <-done:
			t.Fatal("Send returned before its last mail was recorded")
		default:
		}
		j.record <- nil
	}
	want(t, <-done, delivery.Delivered)
	if _, sessions, _ := r.count(); sessions != 1 {
		t.Errorf("%d connections were needed, want 1", sessions)
	}
}

// TestAMailThatCannotBeRecordedIsTheLast: after a mail that cannot be recorded the server gets
// no complete mail, and the connection is not used again.
func TestAMailThatCannotBeRecordedIsTheLast(t *testing.T) {
	r := new(relay).start(t, nil)
	j := &slowJournal{make(chan user.ID, 10), make(chan error, 1)}
	j.record <- errors.New("the database is away")
	messages := sendertest.Messages(delivery.Email, 5)
	for i := range messages {
		messages[i].Journal = j
	}
	s := r.sender(t, nil)
	results := s.Send(t.Context(), messages)
	if results[0].Status != delivery.Delivered {
		t.Errorf("got %+v", results[0])
	}
	for _, result := range results[1:] {
		if result != delivery.Unrecorded() {
			t.Errorf("got %+v", result)
		}
	}
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
	if mails, sessions, _ := r.count(); mails != 2 || sessions != 2 {
		t.Errorf("%d mails over %d connections, want 2 over 2", mails, sessions)
	}
}

func TestServerThatAlwaysHangsUp(t *testing.T) {
	r := &relay{onRcpt: func(c *gosmtp.Conn, _ string) error { return c.Conn().Close() }}
	r.start(t, nil)
	want(t, r.sender(t, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 50)), delivery.Transient)
	if _, sessions, _ := r.count(); sessions > 3 {
		t.Errorf("hammered the server with %d connections", sessions)
	}
}

func TestAnswerAfterTheContextEnded(t *testing.T) {
	release := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &relay{onData: func(_ *gosmtp.Conn, to string) error {
		if to == "reader2@example.com" {
			cancel()
			<-release
		}
		return nil
	}}
	r.start(t, nil)
	t.Cleanup(func() { close(release) })
	// The server answers when the test is over, so Send returns because ctx ended.
	s := r.sender(t, func(c *smtp.Config) { c.Timeout = time.Hour })
	results := s.Send(ctx, sendertest.Messages(delivery.Email, 3))
	if results[0].Status != delivery.Delivered {
		t.Errorf("before the end: got %+v", results[0])
	}
	want(t, results[1:], delivery.Transient)
	if r := results[1]; r.Unsent || !strings.Contains(r.Detail, "unknown") || !results[2].Unsent {
		t.Errorf("the mail without an answer: %+v, the one behind it: %+v", r, results[2])
	}
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
	if _, sessions, _ := r.count(); sessions != 2 {
		t.Errorf("%d connections: the one in an unknown state must not be used again", sessions)
	}
}

// TestAnAnswerThatComesAfterTheEnd: the context ends, as shortly before a drop opens, while the
// server processes a mail that it has completely. The server's answer counts, and no further
// mail goes out.
func TestAnAnswerThatComesAfterTheEnd(t *testing.T) {
	_, key, err := ed25519.GenerateKey(nil)
	musttest.OK(t, err)
	signed := func(c *smtp.Config) { c.DKIM = &smtp.DKIM{Domain: "shop.example", Selector: "drop", Key: key} }
	for name, prepare := range map[string]func(*smtp.Config){"plain": nil, "signed": signed} {
		t.Run(name, func(t *testing.T) {
			var later atomic.Bool
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := &relay{onData: func(c *gosmtp.Conn, _ string) error {
				if later.Swap(true) {
					return nil
				}
				cancel()
				// A client that gives up ends the connection; otherwise a moment passes.
				_ = c.Conn().SetReadDeadline(time.Now().Add(300 * time.Millisecond))
				_, err := c.Conn().Read(make([]byte, 1))
				_ = c.Conn().SetReadDeadline(time.Time{})
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("the client did not wait: %v", err)
				}
				return nil
			}}
			r.start(t, nil)
			s := r.sender(t, prepare)
			results := s.Send(ctx, sendertest.Messages(delivery.Email, 3))
			want(t, results[:1], delivery.Delivered)
			want(t, results[1:], delivery.Transient)
			if mails, _, _ := r.count(); mails != 1 || !results[1].Unsent || !results[2].Unsent {
				t.Errorf("the server has %d mails, results %+v", mails, results)
			}
			want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
			if _, sessions, _ := r.count(); sessions != 2 {
				t.Errorf("%d connections: the one whose context ended must not be used again", sessions)
			}
		})
	}
}

func TestServerIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	address := listener.Addr().String()
	_ = listener.Close()
	results := newSender(t, address, nil).Send(t.Context(), sendertest.Messages(delivery.Email, 3))
	want(t, results, delivery.Transient)
	if got := results[0].Detail; !strings.Contains(got, "connection refused") || strings.Contains(got, "127.0.0.1") {
		t.Errorf("got detail %q", got)
	}
}

func TestServerWithTooManyConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	defer func() { _ = listener.Close() }()
	go func() {
		if c, err := listener.Accept(); err == nil {
			_, _ = c.Write([]byte("421 4.7.0 too many connections\r\n"))
			_ = c.Close()
		}
	}()
	results := newSender(t, listener.Addr().String(), nil).Send(t.Context(), sendertest.Messages(delivery.Email, 3))
	want(t, results, delivery.Throttled)
	if got, want := results[2].Detail, "421 4.7.0 too many connections"; got != want {
		t.Errorf("got detail %q, want %q", got, want)
	}
}

func TestSilentServerTimesOut(t *testing.T) {
	s := newSender(t, mute(t), func(c *smtp.Config) { c.Timeout = 50 * time.Millisecond })
	results := s.Send(t.Context(), sendertest.Messages(delivery.Email, 2))
	want(t, results, delivery.Transient)
	if !strings.Contains(results[0].Detail, "timed out") {
		t.Errorf("got detail %q", results[0].Detail)
	}
}
