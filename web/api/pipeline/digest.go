package pipeline

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// digestEvery is the shortest time between two lines of a digest.
const digestEvery = time.Second

// A digest logs what may happen to thousands of requests a second: one line at once,
// then at most one a second with the number of requests since the last one and what
// happened to the newest of them.
type digest struct {
	log     *slog.Logger
	message string

	mu      sync.Mutex
	waiting bool // until a second has passed since the last line
	count   int  // since then
	newest  record
}

// A record is what is logged of one request.
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

// write logs what was counted, and waits. It is called with the lock held.
func (d *digest) write() {
	d.log.WarnContext(d.newest.ctx, d.message, append(d.newest.args, "requests", d.count)...)
	d.waiting, d.count, d.newest = true, 0, record{}
	time.AfterFunc(digestEvery, d.goOn)
}

// goOn logs what was counted in the last second, if anything.
func (d *digest) goOn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting = false; d.count > 0 {
		d.write()
	}
}
