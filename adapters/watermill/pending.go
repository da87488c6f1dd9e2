package watermill

import (
	"context"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

const (
	// pendingFor is for how long an answer about all groups is used at most.
	pendingFor = claimInterval
	// pendingAnswer is how long Redis may take to give it.
	pendingAnswer = 3 * time.Second
)

// A consumerGroup is the group of a handler on the stream of a topic.
type consumerGroup struct{ topic, name string }

// pendings knows which groups have no events that are read and not acknowledged, from
// one round trip for all groups of a process: each subscription would ask that for
// itself every few seconds otherwise, to take events over from consumers that fell
// silent.
type pendings struct {
	client goredis.UniversalClient
	groups []consumerGroup // each once

	mu    sync.Mutex
	asked time.Time
	empty map[consumerGroup]bool
}

// none reports whether no event of the group can have been pending for as long as idle:
// none was when the groups were asked, less than idle ago.
func (p *pendings) none(ctx context.Context, g consumerGroup, idle time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) >= min(idle, pendingFor) {
		p.ask(ctx)
	}
	return p.empty[g] && time.Since(p.asked) < idle
}

// ask asks about all groups. A group that Redis does not answer about is not empty.
func (p *pendings) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, pendingAnswer)
	defer cancel()
	p.asked, p.empty = time.Now(), make(map[consumerGroup]bool, len(p.groups))
	replies := make([]*goredis.XPendingCmd, len(p.groups))
	// An error is one of the replies, too.
	_, _ = p.client.Pipelined(ctx, func(c goredis.Pipeliner) error {
		for i, g := range p.groups {
			replies[i] = c.XPending(ctx, g.topic, g.name)
		}
		return nil
	})
	for i, g := range p.groups {
		reply, err := replies[i].Result()
		p.empty[g] = err == nil && reply.Count == 0
	}
}
