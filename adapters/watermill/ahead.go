package watermill

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// quickly is the longest handling time of an event after which the next events are read
	// ahead.
	quickly = 2 * time.Millisecond
	// readAhead is how many events one read then returns. With one read and one acknowledgement
	// per event, reading and acknowledging take longer than the handler.
	readAhead = 32
	// ackGather is how long acknowledgements are gathered.
	ackGather = 2 * time.Millisecond
	// claimMargin is more than the difference between the clocks of this process and of Redis
	// can add to the measured age of an event.
	claimMargin = time.Second
	// ackAgain is the pause after a failed acknowledgement; ackWithin is the time-out of an
	// acknowledgement.
	ackAgain  = 100 * time.Millisecond
	ackWithin = 5 * time.Second
)

// ahead holds events of a group that were read before the library asks for them; the library
// reads one event at a time. These events are pending, like the event that is being handled, and
// other consumers take them over after a crash. Slow events are read one at a time, so that
// other consumers of the group can take the following events.
type ahead struct {
	mu     sync.Mutex
	events []goredis.XMessage
	read   time.Time
}

// take returns the next event and how long ago it was read.
func (a *ahead) take() (event goredis.XMessage, age time.Duration, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.events) == 0 {
		return event, 0, false
	}
	event, a.events = a.events[0], a.events[1:]
	return event, time.Since(a.read), true
}

func (a *ahead) keep(events []goredis.XMessage) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events, a.read = events, time.Now()
}

// keepAhead leaves the first event in the reply and stores the further events.
func (r *reads) keepAhead(reply *goredis.XStreamSliceCmd) {
	streams := reply.Val()
	if len(streams) == 0 || len(streams[0].Messages) < 2 {
		return
	}
	events := streams[0].Messages
	r.subscription.ahead.keep(events[1:])
	streams[0].Messages = events[:1:1]
}

// nextAhead returns the next event that was read ahead as the reply to a read. If the event was
// read so long ago that another consumer may have taken it over, nextAhead claims the event
// again, and skips the event if another consumer has it.
func (r *reads) nextAhead(ctx context.Context) (*goredis.XStreamSliceCmd, bool) {
	s := r.subscription
	for {
		event, age, found := s.ahead.take()
		if !found {
			return nil, false
		}
		if age > s.claimAfter/2 {
			// An event that was taken over since has been idle for less than its age.
			mine, err := r.UniversalClient.XClaim(ctx, &goredis.XClaimArgs{Stream: s.topic, Group: s.group, Consumer: s.consumer,
				MinIdle: age - claimMargin, Messages: []string{event.ID}}).Result()
			if err == nil && len(mine) == 0 {
				continue
			}
			// Without an answer it is handled: at worst twice, which each handler bears.
		}
		cmd := goredis.NewXStreamSliceCmd(ctx)
		cmd.SetVal([]goredis.XStream{{Stream: s.topic, Messages: []goredis.XMessage{event}}})
		return cmd, true
	}
}

// acks gathers the acknowledgements of a subscription: one round trip per acknowledgement would
// take longer than quick handlers. An event is pending until it is acknowledged, and is
// delivered again if the process dies before. Gathered acknowledgements outlive a lost
// connection.
type acks struct {
	send func(ids []string) error

	mu      sync.Mutex
	ids     []string
	sending bool
	closed  bool
	sends   sync.WaitGroup
}

// add acknowledges the events within moments, and retries until that succeeds. It returns false
// after close.
func (a *acks) add(ids ...string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.ids = append(a.ids, ids...)
	if !a.sending {
		a.sending = true
		a.sends.Go(a.sendAll)
	}
	return true
}

// sendAll sends the gathered acknowledgements until none is left.
func (a *acks) sendAll() {
	for wait := ackGather; ; {
		time.Sleep(wait) // no condition is awaited: more are gathered meanwhile, and a failing Redis gets a pause
		ids, more := a.gathered()
		if !more {
			return
		}
		wait = ackGather
		if err := a.send(ids); err != nil {
			if !a.giveBack(ids) {
				return
			}
			wait = ackAgain
		}
	}
}

// gathered returns the ids to acknowledge next; more is false if there are none, and sending
// ends.
func (a *acks) gathered() (ids []string, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids, a.ids = a.ids, nil
	a.sending = len(ids) > 0
	return ids, a.sending
}

// giveBack keeps ids that were not acknowledged for another attempt. It returns false if no
// further attempt is made.
func (a *acks) giveBack(ids []string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ids = append(ids, a.ids...)
	a.sending = !a.closed
	return a.sending
}

// close waits until all added acknowledgements are sent, or one more attempt has failed.
func (a *acks) close() {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.sends.Wait()
}

// XAck acknowledges the events. A subscription that reads ahead gathers its acknowledgements and
// sends them within moments.
func (r *reads) XAck(ctx context.Context, stream, group string, ids ...string) *goredis.IntCmd {
	if !r.subscription.readsAhead || !r.subscription.acks.add(ids...) {
		return r.UniversalClient.XAck(ctx, stream, group, ids...)
	}
	cmd := goredis.NewIntCmd(ctx)
	cmd.SetVal(int64(len(ids)))
	return cmd
}

func (s *subscription) acknowledge(ids []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), ackWithin)
	defer cancel()
	err := s.bus.client.XAck(ctx, s.topic, s.group, ids...).Err()
	if err != nil {
		s.logger.Debug("events are not acknowledged", "events", len(ids), "error", err)
	}
	return err
}
