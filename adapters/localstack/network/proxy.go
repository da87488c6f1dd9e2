// Package network delays the data between programs and their servers like a network between two
// machines, and counts the round trips.
package network

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A Proxy forwards TCP connections to a server and delays all data by the same time in each
// direction, like a network between two machines. It does not limit the amount of data on its way.
// It records each time that a client waited for an answer.
type Proxy struct {
	server   string
	listener net.Listener
	delay    atomic.Int64 // nanoseconds each way
	all      sync.WaitGroup

	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
	record bool
	waits  []Wait
}

// NewProxy listens for connections to the server host:port, without delay.
func NewProxy(server string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{server: server, listener: l, open: map[net.Conn]bool{}}
	p.all.Go(p.accept)
	return p, nil
}

// Through returns a proxy to the server of the address and the address by way of the proxy.
func Through(address string) (*Proxy, string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", err
	}
	p, err := NewProxy(u.Host)
	if err != nil {
		return nil, "", err
	}
	u.Host = p.listener.Addr().String()
	return p, u.String(), nil
}

// SetDelay sets the delay each way of data that arrives from now on.
func (p *Proxy) SetDelay(each time.Duration) { p.delay.Store(int64(each)) }

// Close ends all connections.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.open {
		_ = c.Close()
	}
	p.mu.Unlock()
	_ = p.listener.Close()
	p.all.Wait()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.all.Go(func() { p.serve(client) })
	}
}

// keep makes Close end the connection. It returns false after Close.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = true
	return !p.closed
}

func (p *Proxy) serve(client net.Conn) {
	defer p.end(client)
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer p.end(server)
	if !p.keep(client) || !p.keep(server) {
		return
	}
	var both sync.WaitGroup
	w := &waiting{}
	both.Go(func() { p.forward(server, client, func() { w.begins(p) }, func() {}) })
	both.Go(func() { p.forward(client, server, func() {}, func() { w.ends(p) }) })
	both.Wait()
}

func (p *Proxy) end(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// A parcel is data that is written at an instant.
type parcel struct {
	data []byte
	due  time.Time
}

// forward copies from one connection to the other until either ends, and then ends both: the
// programs close connections as a whole. It calls read when data has come, and writes before data
// goes on.
func (p *Proxy) forward(to, from net.Conn, read, writes func()) {
	defer to.Close()
	defer from.Close()
	way := make(chan parcel, 1024)
	var writer sync.WaitGroup
	writer.Go(func() {
		for part := range way {
			time.Sleep(time.Until(part.due)) // the delay of the network that the proxy stands for
			writes()
			if _, err := to.Write(part.data); err != nil {
				_ = from.Close()
			}
		}
	})
	for {
		data := make([]byte, 64<<10)
		n, err := from.Read(data)
		if n > 0 {
			read()
			way <- parcel{data[:n], time.Now().Add(time.Duration(p.delay.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(way)
	writer.Wait()
}
