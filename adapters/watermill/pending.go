package watermill

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/pause"
)

const (
	// pendingFor is for how long an answer about all groups is used at most.
	pendingFor = claimInterval
	// pendingWithin is how long Redis may take to give it.
	pendingWithin = 500 * time.Millisecond
)

// A consumerGroup is the group of a handler on the stream of a topic.
type consumerGroup struct{ topic, name string }

// pendings knows which groups have no pending events (read and not acknowledged), from one round
// trip for all groups of a process every few seconds. Otherwise each subscription would ask
// Redis itself, in order to take events over from silent consumers. Subscriptions of groups
// without pending events sleep between two answers.
type pendings struct {
	client goredis.UniversalClient
	groups []consumerGroup // each once
	within time.Duration   // in which Redis has to answer
	every  time.Duration   // how often watch asks

	asking sync.Mutex // held while Redis is asked
	last   atomic.Pointer[pendingAnswer]

	mu       sync.Mutex
	answered chan struct{} // closed when watch has the next answer; nil if it is not awaited
}

// A pendingAnswer is the answer of Redis for all groups.
type pendingAnswer struct {
	asked time.Time
	empty map[consumerGroup]bool
}

// none reports whether no event of the group can have been pending for as long as idle: the last
// answer is younger than idle, and the group had no pending events. none returns false, without
// waiting, while another subscription asks.
func (p *pendings) none(ctx context.Context, g consumerGroup, idle time.Duration) bool {
	use := min(idle, pendingFor)
	a := p.last.Load()
	if !a.within(use) {
		if !p.asking.TryLock() {
			return false
		}
		defer p.asking.Unlock()
		if a = p.last.Load(); !a.within(use) { // still old: no other subscription has asked meanwhile
			a = p.ask(ctx)
			p.last.Store(a)
		}
	}
	return a.empty[g] && a.within(idle)
}

// watch asks every few seconds until ctx ends.
func (p *pendings) watch(ctx context.Context) {
	for pause.For(ctx, p.every) {
		p.asking.Lock()
		p.last.Store(p.ask(ctx))
		p.asking.Unlock()
		p.mu.Lock()
		if p.answered != nil {
			close(p.answered)
			p.answered = nil
		}
		p.mu.Unlock()
	}
}

// some returns true as soon as an answer that watch gets from now on shows that the group may
// have pending events. It returns false when ctx or stopping ends.
func (p *pendings) some(ctx context.Context, g consumerGroup, stopping <-chan struct{}) bool {
	for {
		select {
		case <-p.next():
		case <-stopping:
			return false
		case <-ctx.Done():
			return false
		}
		if !p.last.Load().empty[g] {
			return true
		}
	}
}

// next returns the channel that is closed at watch's next answer.
func (p *pendings) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answered == nil {
		p.answered = make(chan struct{})
	}
	return p.answered
}

// within reports whether the answer exists and was asked for less than d ago.
func (a *pendingAnswer) within(d time.Duration) bool { return a != nil && time.Since(a.asked) < d }

// ask asks about all groups. A group that Redis does not answer about is not empty.
func (p *pendings) ask(ctx context.Context) *pendingAnswer {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	a := &pendingAnswer{time.Now(), make(map[consumerGroup]bool, len(p.groups))}
	replies := make([]*goredis.XPendingCmd, len(p.groups))
	// An error about one group is that group's reply. If Redis refuses the connection
	// itself, for a wrong password for example, the groups have neither an error nor a
	// reply.
	_, _ = p.client.Pipelined(ctx, func(c goredis.Pipeliner) error {
		for i, g := range p.groups {
			replies[i] = c.XPending(ctx, g.topic, g.name)
		}
		return nil
	})
	for i, g := range p.groups {
		reply, err := replies[i].Result()
		a.empty[g] = err == nil && reply != nil && reply.Count == 0
	}
	return a
}
