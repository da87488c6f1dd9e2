package load

import (
	"bufio"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// OpenPlan says at which time each request is sent. Requests are sent whether or not earlier
// requests have been answered: an open loop, like independent users.
type OpenPlan struct {
	Addr string
	// Connections is how many requests can be in flight. If all connections are busy at the time
	// of a request, the request is sent late and timed from its due time. So a server that
	// stalls cannot hide the requests that it delays.
	Connections int
	// At is when each request is due, from the beginning, ascending.
	At []time.Duration
	// Request appends the raw bytes of request i to b.
	Request func(b []byte, i int) []byte
	// Kind names the kind of an answer; retry is whether it has a Retry-After.
	Kind func(status int, retry bool, body []byte) string
}

// OpenResult counts the outcomes of the requests.
type OpenResult struct {
	// Times from when a request was due until its answer.
	P50, P99, P999, Max time.Duration
	// Answered is when the last was answered, from the beginning.
	Answered time.Duration
	// Kinds counts the answers by kind. Requests without an answer are [Lost].
	Kinds map[string]int
	// Examples are bodies, one for each kind.
	Examples map[string]string
}

// Lost is the kind of requests whose connection failed before the answer.
const Lost = "no answer"

// RunOpen sends the requests of the plan.
func RunOpen(p OpenPlan) (OpenResult, error) {
	conns := make([]net.Conn, min(p.Connections, len(p.At)))
	for i := range conns {
		c, err := net.Dial("tcp", p.Addr)
		if err != nil {
			return OpenResult{}, err
		}
		conns[i] = c
	}
	r := openRunner{plan: p, begin: time.Now(), took: make([]time.Duration, len(p.At)),
		result: OpenResult{Kinds: map[string]int{}, Examples: map[string]string{}}}
	var all sync.WaitGroup
	for _, c := range conns {
		all.Go(func() { r.drive(c) })
	}
	all.Wait()
	slices.Sort(r.took)
	n := len(r.took)
	r.result.P50, r.result.P99, r.result.P999, r.result.Max = r.took[n/2], r.took[n*99/100], r.took[n*999/1000], r.took[n-1]
	return r.result, nil
}

type openRunner struct {
	plan   OpenPlan
	begin  time.Time
	next   atomic.Int64
	took   []time.Duration // each written by one connection
	mu     sync.Mutex
	result OpenResult
}

// drive sends whichever request is next until there is none left.
func (r *openRunner) drive(c net.Conn) {
	defer func() { c.Close() }()
	in := bufio.NewReaderSize(c, 4<<10)
	var out, body []byte
	for {
		i := int(r.next.Add(1) - 1)
		if i >= len(r.plan.At) {
			return
		}
		due := r.begin.Add(r.plan.At[i])
		time.Sleep(time.Until(due)) // the plan's arrival time, whatever became of earlier requests
		out = r.plan.Request(out[:0], i)
		kind, example := Lost, ""
		if _, err := c.Write(out); err == nil {
			var status int
			var retry bool
			if status, retry, body, err = readAnswer(in, body); err == nil {
				kind, example = r.plan.Kind(status, retry, body), string(body[:min(len(body), 200)])
			}
		}
		r.took[i] = time.Since(due)
		r.note(kind, example)
		if kind == Lost {
			c.Close()
			again, err := net.Dial("tcp", r.plan.Addr)
			if err != nil {
				return // the other connections go on
			}
			c = again
			in.Reset(c)
		}
	}
}

func (r *openRunner) note(kind, example string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result.Kinds[kind]++
	if _, known := r.result.Examples[kind]; !known {
		r.result.Examples[kind] = example
	}
	r.result.Answered = max(r.result.Answered, time.Since(r.begin))
}
