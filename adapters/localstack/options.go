// Package localstack finds or installs PostgreSQL and Redis and runs them on this machine, for
// `task up` and for the tests. All servers listen on 127.0.0.1 only. They end with the program
// that started them, even when that program is killed.
package localstack

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"time"
)

// Options describe how a server is started.
type Options struct {
	// Dir keeps the data from one start to the next, and the server's log under log/. Empty = a
	// temporary folder, which is removed at the end.
	Dir string
	// Durable makes every acknowledged write survive a power cut. Without Durable a write
	// survives only the death of the server.
	Durable bool
	// Cluster starts Redis as a node of a cluster that has no slots yet. The node's cluster port
	// is 10,000 above its port.
	Cluster bool
	// Settings are further settings of PostgreSQL, each as name=value.
	Settings []string
	// Port is the preferred port; 0 = any port. If Port is taken, another port is used and
	// written to Log.
	Port int
	// Log receives progress, one line at a time. Nil discards it.
	Log io.Writer
}

func (o Options) say(format string, args ...any) { say(o.Log, format, args...) }

func say(w io.Writer, format string, args ...any) {
	if w != nil {
		fmt.Fprintf(w, format+"\n", args...)
	}
}

// choosePort returns the preferred port, or another one and says so.
func (o Options) choosePort(server string) (int, error) {
	if o.Port != 0 && portFree(o.Port) {
		return o.Port, nil
	}
	if o.Cluster {
		return clusterPort()
	}
	port, err := FreePort(o.Port + 1)
	if err == nil && o.Port != 0 {
		o.say("port %d is taken, %s uses %d", o.Port, server, port)
	}
	return port, err
}

// clusterPort returns a free port. Its cluster port, 10,000 above, is also free and below the
// range of ports for outgoing connections.
func clusterPort() (int, error) {
	for range 200 {
		if port := 20000 + rand.IntN(2500); portFree(port) && portFree(port+10000) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port for a cluster node found on 127.0.0.1")
}

// FreePort returns a port of 127.0.0.1 on which nothing listens: the next free port from first
// on, or any free port if first is 1 or less. It never returns a port in given, whose server may
// not listen yet. The caller must use the port soon, because another program may take it.
func FreePort(first int, given ...int) (int, error) {
	for i := range 200 {
		port := first + i
		if first <= 1 {
			// The port is below the range for outgoing connections, so that a restarted server
			// can use its port again.
			port = 20000 + rand.IntN(12000)
		}
		if port < 65536 && !slices.Contains(given, port) && portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found on 127.0.0.1")
}

// portFree also tries to connect, because some systems let a program bind 127.0.0.1 although a
// server listens on the same port of all addresses.
func portFree(port int) bool {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if c, err := net.DialTimeout("tcp", addr, 200*time.Millisecond); err == nil {
		c.Close()
		return false
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// until calls ready every 10 ms until ready returns nil. If ctx or the server ends first, until
// returns the last error of ready.
func until(ctx context.Context, ended <-chan struct{}, ready func(context.Context) error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("it ended at once: %w", err)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-tick.C:
		}
	}
}
