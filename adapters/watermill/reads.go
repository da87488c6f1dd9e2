package watermill

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// reads stands between one subscriber and its connection. The library closes
// a subscription between handling an event and acknowledging it, so every
// stop would repeat events a minute later; here reading ends first, and the
// subscription is closed when nothing is pending. It also remembers where a
// listener stands, and why reading failed.
type reads struct {
	subscription *subscription

	mu       sync.Mutex // held during a read
	stopping bool
	released chan struct{}
	once     sync.Once
	failure  error
}

func newReads(s *subscription) *reads {
	return &reads{subscription: s, released: make(chan struct{})}
}

// stop waits for a read in flight; none follows it.
func (r *reads) stop() {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
}

// release lets the library's reader, held since stop, end.
func (r *reads) release() { r.once.Do(func() { close(r.released) }) }

func (r *reads) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// DialHook implements the client's hook.
func (r *reads) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, address string) (net.Conn, error) { return next(ctx, network, address) }
}

// ProcessPipelineHook implements the client's hook.
func (r *reads) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook implements the client's hook.
func (r *reads) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		switch strings.ToLower(cmd.Name()) {
		case "xread", "xreadgroup":
			return r.read(ctx, cmd, next)
		case "xpending":
			// No answer means nothing to take over from dead consumers.
			if r.isStopping() {
				return nil
			}
		}
		return next(ctx, cmd)
	}
}

func (r *reads) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}
