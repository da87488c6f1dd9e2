package middleware

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Connections returns l with connections that pass a deadline to the operating system's poller only
// when needed. net/http and the limit of bodies set about ten deadlines per request; nearly all of
// them are replaced by later deadlines before any operation waits. Each deadline passed costs the
// poller's locks and a timer.
func Connections(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept is part of [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// conn keeps the contract of [net.Conn].
type conn struct {
	net.Conn
	read, write deadline
	// unwatched leaves out the next read of a single byte; see [Unwatched].
	unwatched atomic.Bool
	// silent is set until the first byte arrives, on a connection that may be silent for long; see
	// [silences].
	silent atomic.Pointer[silence]
}

func newConn(c net.Conn) *conn {
	return &conn{Conn: c, read: deadline{tell: c.SetReadDeadline}, write: deadline{tell: c.SetWriteDeadline}}
}

type connKey struct{}

// Unwatched is for a request that continues after its client has left. It leaves out the check that
// net/http starts after the body is read: a read of one byte in a goroutine of its own. A read of
// no bytes ends that goroutine. Call Unwatched before the body is read to its end. It has no effect
// on a connection that [Connections] has not made.
func Unwatched(ctx context.Context) {
	if c, ok := ctx.Value(connKey{}).(*conn); ok {
		c.unwatched.Store(true)
	}
}

// Read is part of [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 1 && c.unwatched.Swap(false) {
		return 0, nil
	}
	for {
		if err := c.read.begin(); err != nil {
			return 0, err
		}
		n, err := c.Conn.Read(p)
		if n > 0 {
			if s := c.silent.Swap(nil); s != nil {
				s.end()
				_ = c.read.set(time.Now().Add(time.Duration(s.rest.Load()))) // a connection that fails will say so
			}
		}
		if !c.read.tooEarly(err) || n > 0 {
			return n, err
		}
	}
}

// Write is part of [net.Conn].
func (c *conn) Write(p []byte) (written int, err error) {
	for {
		if err := c.write.begin(); err != nil {
			return written, err
		}
		n, err := c.Conn.Write(p[written:])
		written += n
		if !c.write.tooEarly(err) {
			return written, err
		}
	}
}

// SetDeadline is part of [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.read.set(t), c.write.set(t))
}

// SetReadDeadline is part of [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error {
	if s := c.silent.Load(); s != nil && sooner(t, s.until) && !isAbort(t) {
		s.rest.Store(int64(time.Until(t)))
		t = s.until
	}
	return c.read.set(t)
}

// SetWriteDeadline is part of [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

// CloseWrite is for net/http, which closes in two steps where it can.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// deadline is the deadline of one direction of a connection. While an operation waits, told, which
// the poller has, is never later than inForce. An operation that the poller ends before inForce
// begins again.
type deadline struct {
	tell func(time.Time) error

	mu sync.Mutex
	// waiting counts the operations under way.
	waiting int
	// inForce and told are the zero time if there is no deadline.
	inForce, told time.Time
}

// set puts t in force.
func (d *deadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inForce = t
	if d.waiting > 0 && sooner(t, d.told) {
		return d.pass()
	}
	return nil
}

// begin is called before an operation; [deadline.tooEarly] after it.
func (d *deadline) begin() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if isAbort(d.inForce) {
		return os.ErrDeadlineExceeded
	}
	if sooner(d.inForce, d.told) || isAbort(d.told) && !d.told.Equal(d.inForce) {
		if err := d.pass(); err != nil {
			return err
		}
	}
	d.waiting++
	return nil
}

// tooEarly ends an operation. It reports whether the operation ended by a deadline that is no
// longer in force.
func (d *deadline) tooEarly(err error) bool {
	late := err != nil && errors.Is(err, os.ErrDeadlineExceeded)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting--
	if !late || !d.inForce.IsZero() && !time.Now().Before(d.inForce) {
		return false
	}
	return d.pass() == nil
}

// pass tells the poller of the deadline in force.
func (d *deadline) pass() error {
	d.told = d.inForce
	return d.tell(d.told)
}

func sooner(a, b time.Time) bool { return !a.IsZero() && (b.IsZero() || a.Before(b)) }

// isAbort reports whether t is an instant of the distant past, which net/http sets before it
// answers to end waiting operations.
func isAbort(t time.Time) bool { return !t.IsZero() && t.Unix() < 1<<30 }
