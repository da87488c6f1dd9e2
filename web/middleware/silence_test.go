package middleware

import (
	"bufio"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that their time is the test's.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.closed); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.accepted <- server
	return client
}

// served runs test against a server on a clock of its own. Up to most
// connections may be silent.
func served(t *testing.T, most int64, test func(t *testing.T, p pipes)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10 * 365 * 24 * time.Hour) // the clock begins in 2000, when deadlines mean an abort; see isAbort
		server := Server(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }), slog.New(slog.DiscardHandler))
		s := &silences{most: most}
		server.ConnState = s.changed
		p := pipes{make(chan net.Conn), make(chan struct{})}
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(Connections(p)) }()
		test(t, p)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		synctest.Wait()
		if n := s.now.Load(); n != 0 {
			t.Errorf("%d connections count as silent at the end", n)
		}
	})
}

// request asks once on a connection; false if it was closed.
func request(c net.Conn) bool {
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, res.Body)
	return err == nil && res.StatusCode == http.StatusOK
}

// closedAfter returns how long the server kept the connection.
func closedAfter(c net.Conn, since time.Time) time.Duration {
	_, _ = io.Copy(io.Discard, c)
	return time.Since(since)
}

// TestPreconnect: the first request on a connection that was opened ahead is answered up to 30 s
// later; then the connection ends.
func TestPreconnect(t *testing.T) {
	served(t, mostSilent, func(t *testing.T, p pipes) {
		c := p.dial()
		time.Sleep(silentFor - time.Second)
		if !request(c) {
			t.Error("the first request after 29 s was lost")
		}
		time.Sleep(20 * time.Second) // a kept connection has two minutes
		if !request(c) {
			t.Error("the second request was lost")
		}
		if took := closedAfter(p.dial(), time.Now()); took != silentFor {
			t.Errorf("a silent connection was closed after %s", took)
		}
	})
}

// TestSlowHeaders: after the first byte the headers have five seconds, however long the connection
// was silent before.
func TestSlowHeaders(t *testing.T) {
	served(t, mostSilent, func(t *testing.T, p pipes) {
		for _, silent := range []time.Duration{0, 20 * time.Second, silentFor - time.Millisecond} {
			c := p.dial()
			time.Sleep(silent)
			began := time.Now()
			if _, err := io.WriteString(c, "G"); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go drip(c, time.Second, ended)
			if took := closedAfter(c, began); took != 5*time.Second {
				t.Errorf("after %s of silence slow headers ended after %s", silent, took)
			}
			close(ended)
		}
	})
}

// TestManySilentConnections: above the limit, silent connections have five seconds. A place is free
// again when a connection sends a byte or ends.
func TestManySilentConnections(t *testing.T) {
	served(t, 2, func(t *testing.T, p pipes) {
		first, second := p.dial(), p.dial()
		if took := closedAfter(p.dial(), time.Now()); took != 5*time.Second {
			t.Errorf("the third silent connection was closed after %s", took)
		}
		if !request(first) {
			t.Error("the first connection was closed")
		}
		if took := closedAfter(p.dial(), time.Now()); took != silentFor {
			t.Errorf("when one of two has spoken, the next was closed after %s", took)
		}
		_ = second.Close()
		synctest.Wait()
		if took := closedAfter(p.dial(), time.Now()); took != silentFor {
			t.Errorf("when one of two has ended, the next was closed after %s", took)
		}
	})
}
