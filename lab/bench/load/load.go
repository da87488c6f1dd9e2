// Package load drives an HTTP/1.1 server from many kept connections. It does as little work per
// request as possible, so that on one machine most of the processor time is left to the server.
package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Plan says what to send.
type Plan struct {
	Addr        string
	Connections int
	Warmup      time.Duration
	Duration    time.Duration
	// Request appends the raw bytes of request i to b.
	Request func(b []byte, i int64) []byte
	// Expect are the statuses that count as success.
	Expect []int
}

// Result has the measurements after the warm-up.
type Result struct {
	PerSecond     float64
	P50, P99, Max time.Duration
	Requests      int64
	All           int64 // Requests plus the requests of the warm-up
	// Failures are answers with another status, with an example.
	Failures int64
	Example  string
}

// Run sends requests until the time is over.
func Run(p Plan) (Result, error) {
	conns := make([]net.Conn, p.Connections)
	for i := range conns {
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			return Result{}, err
		}
		defer c.Close()
		conns[i] = c
	}
	var r runner
	r.plan = p
	begin := time.Now()
	r.from, r.until = begin.Add(p.Warmup), begin.Add(p.Warmup+p.Duration)
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() { r.drive(c) })
	}
	all.Wait()
	if r.err != nil {
		return Result{}, r.err
	}
	return r.result(), nil
}

type runner struct {
	plan        Plan
	from, until time.Time
	next        atomic.Int64
	mu          sync.Mutex
	took        []time.Duration
	failures    int64
	example     string
	err         error
}

func (r *runner) drive(c net.Conn) {
	in := bufio.NewReaderSize(c, 8<<10)
	var out []byte
	var took []time.Duration
	var body []byte
	failures, example := int64(0), ""
	for {
		start := time.Now()
		if start.After(r.until) {
			break
		}
		out = r.plan.Request(out[:0], r.next.Add(1)-1)
		if _, err := c.Write(out); err != nil {
			r.fail(err)
			return
		}
		status, _, b, err := readAnswer(in, body)
		if err != nil {
			r.fail(err)
			return
		}
		body = b
		if start.Before(r.from) {
			continue
		}
		took = append(took, time.Since(start))
		if !slices.Contains(r.plan.Expect, status) {
			failures++
			example = fmt.Sprintf("%d %.300s", status, body)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = append(r.took, took...)
	r.failures += failures
	if example != "" {
		r.example = example
	}
}

func (r *runner) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// readAnswer reads one answer with a Content-Length or chunked body. retry tells whether the
// answer names a time to retry.
func readAnswer(in *bufio.Reader, buf []byte) (status int, retry bool, body []byte, err error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, false, buf, err
	}
	if len(line) < 12 {
		return 0, false, buf, fmt.Errorf("not an HTTP answer: %q", line)
	}
	status, _ = strconv.Atoi(string(line[9:12]))
	length, chunked := 0, false
	for {
		line, err = in.ReadSlice('\n')
		if err != nil {
			return 0, false, buf, err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := cutHeader(line, "content-length:"); ok {
			length, _ = strconv.Atoi(string(v))
		} else if _, ok := cutHeader(line, "transfer-encoding:"); ok {
			chunked = true
		} else if _, ok := cutHeader(line, "retry-after:"); ok {
			retry = true
		}
	}
	if chunked {
		body, err = readChunks(in, buf[:0])
		return status, retry, body, err
	}
	body = slices.Grow(buf[:0], length)[:length]
	_, err = io.ReadFull(in, body)
	return status, retry, body, err
}

func cutHeader(line []byte, name string) ([]byte, bool) {
	if len(line) < len(name) || !bytes.EqualFold(line[:len(name)], []byte(name)) {
		return nil, false
	}
	return bytes.TrimSpace(line[len(name):]), true
}

func readChunks(in *bufio.Reader, body []byte) ([]byte, error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return body, err
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil {
			return body, err
		}
		start := len(body)
		body = slices.Grow(body, int(n)+2)[:start+int(n)+2]
		if _, err := io.ReadFull(in, body[start:]); err != nil {
			return body, err
		}
		body = body[:start+int(n)]
		if n == 0 {
			return body, nil
		}
	}
}

func (r *runner) result() Result {
	slices.Sort(r.took)
	n := len(r.took)
	if n == 0 {
		return Result{}
	}
	return Result{PerSecond: float64(n) / r.plan.Duration.Seconds(), P50: r.took[n/2], P99: r.took[n*99/100], Max: r.took[n-1],
		Requests: int64(n), All: r.next.Load(), Failures: r.failures, Example: r.example}
}
