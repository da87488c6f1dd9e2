package watermill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const drainInterval = 10 * time.Millisecond

// reads is the client of one subscription. It shares its connections with all other
// subscriptions of the bus and differs from the bus's client in how it reads:
//
//   - Reading does not block a connection. A subscription without events waits
//     for the bus's [streamWatch], which serves all subscriptions.
//   - The library closes a subscription between handling an event and
//     acknowledging it, so that every stop would repeat events a minute later.
//     Here reading ends first, and the subscription is closed when nothing is
//     pending any more.
//   - It remembers the position of a listener, and why reading failed.
//   - It reads quick events ahead and gathers their acknowledgements, see [Ahead].
type reads struct {
	goredis.UniversalClient
	subscription *subscription
	stopping     chan struct{} // closed when reading is to end
	stopOnce     sync.Once
	reading      atomic.Bool // has begun
	mu           sync.Mutex  // held during a read
	failure      error
}

func newReads(s *subscription) *reads {
	return &reads{UniversalClient: s.bus.client, subscription: s, stopping: make(chan struct{})}
}

// Close leaves the connections to the bus.
func (r *reads) Close() error { return nil }

// stop waits for a read in flight; none follows it.
func (r *reads) stop() {
	r.stopOnce.Do(func() { close(r.stopping) })
	r.mu.Lock()
	defer r.mu.Unlock()
}

func (r *reads) stopped() bool {
	select {
	case <-r.stopping:
		return true
	default:
		return false
	}
}

func (r *reads) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

// XPendingExt looks for events to take over from other consumers; an empty reply means none. The
// library calls it before the first read, repeatedly while it finds many events: such a call is
// skipped if [pendings] knows that there can be no such events. During reading the library calls
// it again and again: such a call waits until there may be such events. The reply is empty while
// stopping and after an error. After an error the library would repeat the request without end,
// even before its first read; instead the next read ends the subscription and returns the error.
func (r *reads) XPendingExt(ctx context.Context, a *goredis.XPendingExtArgs) *goredis.XPendingExtCmd {
	none := goredis.NewXPendingExtCmd(ctx)
	group, pending := consumerGroup{r.subscription.topic, r.subscription.group}, r.subscription.bus.pending
	beside := r.reading.Load()
	if r.stopped() || !beside && pending.none(ctx, group, a.Idle) || beside && !pending.some(ctx, group, r.stopping) {
		return none
	}
	cmd := r.UniversalClient.XPendingExt(ctx, a)
	if err := cmd.Err(); err != nil {
		r.subscription.logger.DebugContext(ctx, "looking for orphaned events", "error", err)
		return none
	}
	return cmd
}

// XReadGroup reads for a group.
func (r *reads) XReadGroup(ctx context.Context, a *goredis.XReadGroupArgs) *goredis.XStreamSliceCmd {
	r.reading.Store(true)
	if next, found := r.nextAhead(ctx); found {
		return next
	}
	a.Block = neverBlock
	return r.read(ctx, func() *goredis.XStreamSliceCmd {
		a.Count = 1
		if r.subscription.readsAhead && r.subscription.quick.Load() {
			a.Count = readAhead
		}
		cmd := r.UniversalClient.XReadGroup(ctx, a)
		r.keepAhead(cmd)
		return cmd
	})
}

// XRead reads for a listener.
func (r *reads) XRead(ctx context.Context, a *goredis.XReadArgs) *goredis.XStreamSliceCmd {
	a.Block = neverBlock
	return r.read(ctx, func() *goredis.XStreamSliceCmd { return r.UniversalClient.XRead(ctx, a) })
}

// neverBlock leaves BLOCK out of a command.
const neverBlock time.Duration = -1

// read waits until there are entries to read. It returns without entries only at the end: an
// earlier empty reply would make the library spin.
func (r *reads) read(ctx context.Context, next func() *goredis.XStreamSliceCmd) *goredis.XStreamSliceCmd {
	for {
		changed := r.subscription.bus.watch.next(r.subscription.topic)
		cmd, done := r.readUnlessStopping(next)
		if !done {
			break
		}
		if !errors.Is(cmd.Err(), goredis.Nil) {
			return cmd
		}
		look := time.NewTimer(lookAgain + rand.N(lookAgain))
		select {
		case <-changed:
		case <-look.C:
		case <-r.stopping:
		case <-ctx.Done():
		}
		look.Stop()
		if ctx.Err() != nil {
			break
		}
	}
	<-ctx.Done()
	nothing := goredis.NewXStreamSliceCmd(ctx)
	nothing.SetErr(goredis.Nil)
	return nothing
}

func (r *reads) readUnlessStopping(next func() *goredis.XStreamSliceCmd) (*goredis.XStreamSliceCmd, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped() {
		return nil, false
	}
	cmd := next()
	if err := cmd.Err(); err == nil {
		r.remember(cmd.Val())
	} else if !errors.Is(err, goredis.Nil) {
		r.failure = err
	}
	return cmd, true
}

// remember keeps the position of a listener. The library handles the first entry of a reply and
// then reads from that entry on.
func (r *reads) remember(streams []goredis.XStream) {
	if r.subscription.group == "" && len(streams) > 0 && len(streams[0].Messages) > 0 {
		r.subscription.position.Store(&streams[0].Messages[0].ID)
	}
}

// prepare determines the position at which a listener begins: after the newest event, or at its
// position when its subscription broke. With "$" as the position, the library would miss events
// that are published between two of its reads.
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
		// Redis was emptied, and its clock is behind the former server's clock.
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

// drain ends reading and waits until all events that were read are handled and acknowledged, at
// most for the drain time.
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
