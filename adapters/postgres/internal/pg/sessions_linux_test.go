package pg

import (
	"net"
	"syscall"
	"testing"

	"dropbell/musttest"
)

// TestConnectionsGiveUpASilentMachine: a connection has keepalives and a limit
// for sent data without an acknowledgement.
func TestConnectionsGiveUpASilentMachine(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	musttest.OK(t, err)
	defer l.Close()
	c, err := newDialer()(t.Context(), "tcp", l.Addr().String())
	musttest.OK(t, err)
	defer c.Close()
	raw, err := c.(*net.TCPConn).SyscallConn()
	musttest.OK(t, err)
	option := func(level, name int) (got int) {
		musttest.OK(t, raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), level, name) }))
		return got
	}
	for name, c := range map[string]struct{ level, option, want int }{
		"keepalive": {syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1}, "idle": {syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 5},
		"interval": {syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, 2}, "count": {syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 3},
		"unanswered": {syscall.IPPROTO_TCP, tcpUserTimeout, 10000},
	} {
		if got := option(c.level, c.option); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if c, err := newDialer()(t.Context(), "unix", t.TempDir()+"/none"); err == nil {
		c.Close()
		t.Error("a socket that is not there")
	}
}
