package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// digestEvery is the shortest time between two lines of a digest.
const digestEvery = time.Second

// A digest logs an event that may happen to thousands of requests a second: one line at once, then
// at most one line a second. A line has the number of requests since the last line and the details
// of the newest request.
type digest struct {
	log     *slog.Logger
	message string

	mu      sync.Mutex
	waiting bool // until a second has passed since the last line
	count   int  // since then
	newest  record
}

// A record is the log context and arguments of one request.
type record struct {
	ctx  context.Context
	args []any
}

// warn logs the message with args, or counts it.
func (d *digest) warn(ctx context.Context, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.count++
	d.newest = record{context.WithoutCancel(ctx), args}
	if !d.waiting {
		d.write()
	}
}

// write logs the counted requests and starts the pause of one second. The caller holds the lock.
func (d *digest) write() {
	d.log.WarnContext(d.newest.ctx, d.message, append(d.newest.args, "requests", d.count)...)
	d.waiting, d.count, d.newest = true, 0, record{}
	time.AfterFunc(digestEvery, d.goOn)
}

// goOn ends the pause and logs the requests counted during it, if any.
func (d *digest) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting = false; d.count > 0 {
		d.write()
	}
}
