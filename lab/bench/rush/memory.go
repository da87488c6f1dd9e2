package rush

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"dropbell/lab/bench/stack"
)

const (
	// restMiB is the greatest memory of web at rest: the previous rush is over and web has
	// returned its memory.
	restMiB = 150
	// baseMiB and requestKiB are the bound of web's memory: a part for the program and its
	// garbage, and a part for each request that can be in flight. The bound does not depend on
	// the number of taps; see docs/operations.md.
	baseMiB    = 272
	requestKiB = 72
)

// rest returns when web has given back the memory of the previous measurement, so that each
// repetition has its own peak.
func (b *bench) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var now float64
	if err := stack.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		now, _ = b.web.Memory()
		return now < restMiB, nil
	}); err != nil {
		return fmt.Errorf("web keeps %.0f MiB without requests: %w", now, err)
	}
	return b.web.ForgetPeak()
}

// judge compares the greatest peaks of memory with the bound: one at the capacity, most above
// the capacity, and long above the capacity for longer.
func (b *bench) judge(one, most, long float64) {
	bound := baseMiB + requestKiB*float64(b.connections)/1024
	met := "yes"
	if max(one, most, long) > bound {
		met = "NO"
	}
	fmt.Printf("memory of web: at most %.0f MiB at the capacity, %.0f MiB above it, %.0f MiB above it for longer; bound of %d requests in flight %.0f MiB: %s\n",
		one, most, long, b.connections, bound, met)
}

// quietFor is longer than the time after which web returns the memory that connections do not
// need while they wait for their next request.
const quietFor = 8 * time.Second

// idle prints the memory of a connection that has had one request answered and waits for the
// next request.
func (b *bench) idle(ctx context.Context) error {
	if err := b.rest(ctx); err != nil {
		return err
	}
	before, _ := b.web.Memory()
	for range b.connections {
		c, err := net.Dial("tcp", b.web.Addr)
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: bench\r\n\r\n"); err != nil {
			return err
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
	}
	select {
	case <-time.After(quietFor):
	case <-ctx.Done():
		return ctx.Err()
	}
	after, _ := b.web.Memory()
	fmt.Printf("%d connections without requests: web %.0f MiB, %.1f KiB each\n", b.connections, after, (after-before)*1024/float64(b.connections))
	return nil
}
