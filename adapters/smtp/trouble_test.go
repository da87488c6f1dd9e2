package smtp_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"dropbell/adapters/sendertest"
	"dropbell/adapters/smtp"
	"dropbell/domain/delivery"
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
	s := r.sender(t, nil)
	began := time.Now()
	results := s.Send(ctx, sendertest.Messages(delivery.Email, 3))
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("returned after %v", took)
	}
	if results[0].Status != delivery.Delivered {
		t.Errorf("before the end: got %+v", results[0])
	}
	want(t, results[1:], delivery.Transient)
	want(t, s.Send(t.Context(), sendertest.Messages(delivery.Email, 1)), delivery.Delivered)
	if _, sessions, _ := r.count(); sessions != 2 {
		t.Errorf("%d connections: the one in an unknown state must not be used again", sessions)
	}
}

func TestServerIsDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
