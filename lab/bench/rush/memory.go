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
	// restMiB is what web occupies at most when the rush before is over and the quiet
	// has given its memory back.
	restMiB = 150
	// baseMiB and requestKiB are the bound of web's memory: a part for the program and
	// its garbage, and a part for each request that can be in flight. The number of
	// taps is no part of it; see docs/operations.md.
	baseMiB    = 272
	requestKiB = 72
)

// rest returns when web has given back the memory of the measurement before, so
// that each repetition has a peak of its own.
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

// judge compares the greatest peaks of memory, at the capacity, above it, and above it
// for longer, with the bound.
func (b *bench) judge(one, most, long float64) {
	bound := baseMiB + requestKiB*float64(b.connections)/1024
	met := "yes"
	if max(one, most, long) > bound {
		met = "NO"
	}
	fmt.Printf("memory of web: at most %.0f MiB at the capacity, %.0f MiB above it, %.0f MiB above it for longer; bound of %d requests in flight %.0f MiB: %s\n",
		one, most, long, b.connections, bound, met)
}

// quietFor is longer than web takes to give back memory that connections do not need
// while they wait for their next request.
const quietFor = 8 * time.Second

// idle prints what a connection takes that waits for its next request, after one that
// was answered.
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
