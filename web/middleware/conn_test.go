package middleware

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"dropbell/musttest"
)

// TestConnections: a connection keeps the contract of net.Conn, deadlines above all.
func TestConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	ours := Connections(l)
	defer func() { _ = ours.Close() }()
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		if c1, err = net.Dial("tcp", l.Addr().String()); err != nil {
			return nil, nil, nil, err
		}
		if c2, err = ours.Accept(); err != nil {
			return nil, nil, nil, err
		}
		return newConn(c1), c2, func() { _, _ = c1.Close(), c2.Close() }, nil
	})
}

// TestTimeLimitsOfConnections: net/http cuts off clients whose headers arrive slowly, on new and on
// kept connections, and clients that send no further request.
func TestTimeLimitsOfConnections(t *testing.T) {
	const limit = 200 * time.Millisecond
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	server.Listener = Connections(server.Listener)
	server.Config.ReadHeaderTimeout, server.Config.ReadTimeout = limit, time.Hour
	server.Config.IdleTimeout, server.Config.WriteTimeout = limit, time.Hour
	server.Start()
	defer server.Close()
	for name, client := range map[string]struct {
		kept bool
		send bool
	}{"headers on a new connection": {false, true}, "headers on a kept one": {true, true}, "no further request": {true, false}} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", server.Listener.Addr().String())
			musttest.OK(t, err)
			in := bufio.NewReader(c)
			if client.kept {
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
				res, err := http.ReadResponse(in, nil)
				musttest.OK(t, err)
				_, _ = io.Copy(io.Discard, res.Body)
			}
			ended := make(chan struct{})
			if client.send {
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: ")
				go drip(c, limit/10, ended)
			}
			// Without a limit this waits until the test itself is ended.
			_, err = io.Copy(io.Discard, in)
			close(ended)
			t.Log(err) // an end or a reset
			_ = c.Close()
		})
	}
}

// drip sends a byte each time until the connection ends.
func drip(c net.Conn, every time.Duration, ended <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

// TestUnwatched: while a request of [Unwatched] is handled, nothing reads from its connection. The
// request is answered, and during the next request on the connection net/http reads again.
func TestUnwatched(t *testing.T) {
	var reads atomic.Int64
	ended := make(chan error, 1)
	server := httptest.NewUnstartedServer(nil)
	server.Config = Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/unwatched" {
			Unwatched(r.Context())
		}
		before := reads.Load()
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Error(err)
		}
		if r.URL.Path == "/watched" {
			<-r.Context().Done()
			ended <- r.Context().Err()
			return
		}
		c, _ := r.Context().Value(connKey{}).(*conn)
		for c.unwatched.Load() { // until net/http has looked
			runtime.Gosched()
		}
		if n := reads.Load() - before; n > 0 {
			t.Errorf("%d reads", n)
		}
	}), slog.New(slog.DiscardHandler))
	server.Listener = Connections(countingListener{server.Listener, &reads})
	server.Start()
	defer server.Close()
	c, err := net.Dial("tcp", server.Listener.Addr().String())
	musttest.OK(t, err)
	in := bufio.NewReader(c)
	for range 3 {
		_, _ = io.WriteString(c, "POST /unwatched HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
		res, err := http.ReadResponse(in, nil)
		musttest.OK(t, err)
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res.Status, err)
		}
	}
	_, _ = io.WriteString(c, "POST /watched HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
	_ = c.Close()
	if err := <-ended; err == nil {
		t.Error("the client that hung up was not noticed")
	}
}

// countingListener counts the reads of its connections.
type countingListener struct {
	net.Listener
	reads *atomic.Int64
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countingConn{c, l.reads}, err
}

type countingConn struct {
	net.Conn
	reads *atomic.Int64
}

func (c countingConn) Read(p []byte) (int, error) {
	c.reads.Add(1)
	return c.Conn.Read(p)
}
