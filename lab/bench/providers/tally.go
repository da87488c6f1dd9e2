package providers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// A tally counts messages per user with a bit each. It is safe for concurrent use.
type tally struct {
	n               int
	seen            []atomic.Uint64
	messages, twice atomic.Int64
	first, last     atomic.Int64 // nanoseconds since 1970
}

func newTally(n int) *tally { return &tally{n: n, seen: make([]atomic.Uint64, n/64+1)} }

// arrived notes that something arrived.
func (t *tally) arrived() {
	now := time.Now().UnixNano()
	t.first.CompareAndSwap(0, now)
	t.last.Store(now)
}

// count records a message to user id. A message to an unknown user counts as a surplus message.
func (t *tally) count(id int) {
	t.messages.Add(1)
	if id < 1 || id > t.n || t.seen[id/64].Or(1<<(id%64))&(1<<(id%64)) != 0 {
		t.twice.Add(1)
	}
}

// counted is a tally's sum.
type counted struct {
	N        int   `json:"n"`
	Messages int64 `json:"messages"`
	Twice    int64 `json:"twice"`
	First    int64 `json:"first"`
	Last     int64 `json:"last"`
}

func (c counted) perSecond() float64 {
	return float64(c.Messages) / max(time.Duration(c.Last-c.First).Seconds(), 1e-9)
}

func (c counted) missing() int64 { return int64(c.N) - (c.Messages - c.Twice) }

func (c counted) complete() error {
	if c.missing() != 0 || c.Twice != 0 {
		return fmt.Errorf("%d messages are missing, %d came twice", c.missing(), c.Twice)
	}
	return nil
}

func (c counted) print(provider, sender string, v speeds) {
	recorded := "-"
	if v.recorded > 0 {
		recorded = strconv.FormatFloat(v.recorded, 'f', 0, 64)
	}
	cpu := "-"
	if v.cpu > 0 {
		cpu = v.cpu.String()
	}
	fmt.Printf("%-10s %-20s %10d %12.0f %14s %8d %8d %12s\n", provider, sender, c.Messages, v.arrived, recorded, c.missing(), c.Twice, cpu)
}

// A counter serves the tally in use: POST /expect?n=… begins a new tally, and GET /counted
// answers with the tally's sum.
type counter struct{ atomic.Pointer[tally] }

func (c *counter) routes(mux *http.ServeMux) {
	c.Store(newTally(0))
	mux.HandleFunc("POST /expect", func(_ http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		c.Store(newTally(n))
	})
	mux.HandleFunc("GET /counted", func(w http.ResponseWriter, _ *http.Request) {
		t := c.Load()
		_ = json.NewEncoder(w).Encode(counted{t.n, t.messages.Load(), t.twice.Load(), t.first.Load(), t.last.Load()})
	})
}
