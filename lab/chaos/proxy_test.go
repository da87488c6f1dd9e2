package chaos_test

import (
	"net"
	"net/url"
	"sync"
	"testing"
	"time"
)

// A proxy forwards connections between one process and a server. A silent proxy is like a
// network that drops all packets: connections are accepted and stay open, and no data is
// forwarded.
type proxy struct {
	url      string // of the server, by way of the proxy
	server   string
	listener net.Listener

	mu   sync.Mutex
	open chan struct{} // closed while it forwards
	all  map[net.Conn]bool
	shut bool
}

// newProxy listens for connections to the server of the address until the test ends.
func newProxy(t *testing.T, server string) *proxy {
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{server: u.Host, open: make(chan struct{}), all: map[net.Conn]bool{}}
	close(p.open)
	if p.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = p.listener.Addr().String()
	p.url = u.String()
	go p.accept()
	t.Cleanup(p.close)
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

// serve forwards in both directions until either side closes.
func (p *proxy) serve(client net.Conn) {
	if !p.keep(client) {
		return
	}
	<-p.gate()
	server, err := net.DialTimeout("tcp", p.server, 5*time.Second)
	if err != nil || !p.keep(server) {
		p.drop(client)
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.pump(server, client) })
	both.Go(func() { p.pump(client, server) })
	both.Wait()
}

func (p *proxy) pump(to, from net.Conn) {
	defer p.drop(to, from)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		<-p.gate() // the end of a connection does not pass a silent network either
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) gate() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open
}

// silence stops forwarding until resume is called.
func (p *proxy) silence() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	shut := make(chan struct{})
	p.open = shut
	return sync.OnceFunc(func() { close(shut) })
}

// keep remembers the connection, unless the proxy is closed.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		_ = c.Close()
		return false
	}
	p.all[c] = true
	return true
}

func (p *proxy) drop(list ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range list {
		_ = c.Close()
		delete(p.all, c)
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
	for c := range p.all {
		_ = c.Close()
	}
}
