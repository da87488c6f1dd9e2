// Package localstack finds or installs PostgreSQL and Redis and runs them on
// this machine, for `task up` and for the tests. Everything listens on
// 127.0.0.1 only and ends with the program that started it, also when that
// program is killed.
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

// Options say what a server is for.
type Options struct {
	// Dir keeps the data (and, under log/, what the server says) from one
	// start to the next. Empty: a temporary directory, removed at the end.
	Dir string
	// Durable makes every acknowledged write survive a power cut. Without it
	// a write survives the death of the server only.
	Durable bool
	// Cluster starts Redis as a node of a cluster that has no slots yet. Its
	// cluster port is 10,000 above the other one.
	Cluster bool
	// Settings are further settings of PostgreSQL, each as name=value.
	Settings []string
	// Port is preferred; when it is taken, another one is used and logged to Log.
	// 0: any.
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

// clusterPort returns a free port whose cluster port, 10,000 above, is free and
// below those of outgoing connections too.
func clusterPort() (int, error) {
	for range 200 {
		if port := 20000 + rand.IntN(2500); portFree(port) && portFree(port+10000) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port for a cluster node found on 127.0.0.1")
}

// FreePort returns a port of 127.0.0.1 on which nothing listens: the next one
// from first on, or any when first is 1 or less, but none of the given ones,
// whose servers may not listen yet. The caller must take it soon; another
// program may be faster.
func FreePort(first int, given ...int) (int, error) {
	for i := range 200 {
		port := first + i
		if first <= 1 {
			// Below the range from which systems take the ports of outgoing
			// connections, so that a server can come back on its port.
			port = 20000 + rand.IntN(12000)
		}
		if port < 65536 && !slices.Contains(given, port) && portFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found on 127.0.0.1")
}

// portFree also tries to connect: some systems let 127.0.0.1 be bound beside a
// server that listens on all addresses.
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

// until calls ready every few milliseconds until it returns nil, or returns
// its last error when ctx or the server ends first.
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
