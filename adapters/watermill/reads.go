package watermill

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const drainInterval = 10 * time.Millisecond

// reads stands between one subscriber and its connection. The library closes
// a subscription between handling an event and acknowledging it, so that every
// stop would repeat events a minute later; here reading ends first, and the
// subscription is closed when nothing is pending any more. It also remembers
// where a listener stands, and why reading failed.
type reads struct {
	subscription *subscription
	stopping     atomic.Bool
	mu           sync.Mutex // held during a read
	failure      error
}

// stop waits for a read in flight; none follows it.
func (r *reads) stop() {
	r.stopping.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
}

func (r *reads) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// DialHook implements the client's hook.
func (r *reads) DialHook(next goredis.DialHook) goredis.DialHook { return next }

// ProcessPipelineHook implements the client's hook.
func (r *reads) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// ProcessHook implements the client's hook.
func (r *reads) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		switch name := strings.ToLower(cmd.Name()); {
		case name == "xread" || name == "xreadgroup":
			return r.read(ctx, cmd, next)
		case name == "xpending":
			r.lookForOrphans(ctx, cmd, next)
			return nil
		default:
			return next(ctx, cmd)
		}
	}
}

// lookForOrphans requests events to take over from other consumers; an empty
// reply means none. It replies empty while stopping, and after an error: the
// library would otherwise repeat the request without end, even before its first
// read, while the next read ends the subscription and returns the error.
func (r *reads) lookForOrphans(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) {
	if r.stopping.Load() {
		return
	}
	if err := next(ctx, cmd); err != nil {
		r.subscription.logger.DebugContext(ctx, "looking for orphaned events", "error", err)
	}
}

func (r *reads) read(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) error {
	if err, done := r.readUnlessStopping(ctx, cmd, next); done {
		return err
	}
	// Nothing to read any more; returning at once would make the library spin.
	<-ctx.Done()
	return goredis.Nil
}

func (r *reads) readUnlessStopping(ctx context.Context, cmd goredis.Cmder, next goredis.ProcessHook) (error, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping.Load() {
		return nil, false
	}
	err := next(ctx, cmd)
	if err == nil {
		r.remember(cmd)
	} else if !errors.Is(err, goredis.Nil) {
		r.failure = err
	}
	return err, true
}

// remember keeps the position of a listener; the library handles the first
// entry of a reply and reads on from there.
func (r *reads) remember(cmd goredis.Cmder) {
	reply, ok := cmd.(*goredis.XStreamSliceCmd)
	if !ok || r.subscription.group != "" {
		return
	}
	if streams := reply.Val(); len(streams) > 0 && len(streams[0].Messages) > 0 {
		r.subscription.position.Store(&streams[0].Messages[0].ID)
	}
}

// prepare finds out where a listener begins: after the newest event, or where
// it stood when its subscription broke. Given "$" instead, the library would
// miss what is published between two of its reads.
func (s *subscription) prepare(ctx context.Context) error {
	if s.group != "" {
		return nil
	}
	newest, err := s.newest(ctx)
	if err != nil {
		return fmt.Errorf("newest event: %w", err)
	}
	position := s.position.Load()
	if position != nil {
		stood, err := parseEntryID(*position)
		if err != nil {
			return err
		}
		if stood.compare(newest) <= 0 {
			return nil
		}
		// Redis was emptied and its clock is behind the former one's.
		newest = entryID{}
	}
	text := newest.String()
	s.position.Store(&text)
	return nil
}

func (s *subscription) newest(ctx context.Context) (entryID, error) {
	exists, err := s.bus.client.Exists(ctx, s.topic).Result()
	if err != nil || exists == 0 {
		return entryID{}, err
	}
	info, err := s.bus.client.XInfoStream(ctx, s.topic).Result()
	if err != nil {
		return entryID{}, err
	}
	return parseEntryID(info.LastGeneratedID)
}

// drain ends reading and waits until what was read is handled and
// acknowledged, at most the drain time.
func (s *subscription) drain(ctx context.Context, reads *reads) {
	reads.stop()
	if s.group == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.bus.config.DrainTimeout)
	defer cancel()
	for {
		pending, err := s.bus.client.XPendingExt(ctx, &goredis.XPendingExtArgs{
			Stream: s.topic, Group: s.group, Consumer: s.consumer, Start: "-", End: "+", Count: 1}).Result()
		if err != nil || len(pending) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(drainInterval):
		}
	}
}
