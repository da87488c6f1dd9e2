package middleware

import (
	"net"
	"testing"

	"golang.org/x/net/nettest"
)

// TestConnections: a connection keeps the contract of net.Conn, deadlines above all.
func TestConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
