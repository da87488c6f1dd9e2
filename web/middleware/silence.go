package middleware

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	// silentFor is how long a new connection may be silent: clients connect before a drop opens,
	// and proxies before they have a request (Envoy's preconnect).
	silentFor = 30 * time.Second
	// mostSilent is how many connections of a server may be silent for silentFor. A silent
	// connection takes 18 KiB. Further connections have the time limit of headers for their first
	// byte.
	mostSilent = 1024
)

// silences lets new connections of one server be silent for longer than the time limit of headers.
type silences struct {
	most int64
	now  atomic.Int64 // how many are silent
}

// silence is the time until a connection's first byte.
type silence struct {
	of    *silences
	until time.Time
	// rest is how long net/http gives the headers after the first byte, in nanoseconds.
	rest atomic.Int64
}

func (s *silence) end() { s.of.now.Add(-1) }

// changed is a server's ConnState.
func (s *silences) changed(nc net.Conn, state http.ConnState) {
	c, ok := nc.(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateNew:
		if s.now.Add(1) > s.most {
			s.now.Add(-1)
			return
		}
		c.silent.Store(&silence{of: s, until: time.Now().Add(silentFor)})
	case http.StateClosed, http.StateHijacked:
		if ended := c.silent.Swap(nil); ended != nil {
			ended.end()
		}
	}
}
