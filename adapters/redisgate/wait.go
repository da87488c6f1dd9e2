package redisgate

import (
	"context"
	"errors"
	"strconv"
	"time"
)

const (
	// patience is how long a claim waits for shards: building them takes some
	// ten milliseconds for a new drop, and begins within a second when they
	// were lost.
	patience = 2 * time.Second
	// lookEvery is how often the shards are looked for, once for all waiting
	// claims of a process.
	lookEvery = 20 * time.Millisecond
)

// errNoShards says that there is nothing to decide at, yet.
var errNoShards = errors.New("gate: no shards")

// waitingRoom holds the claims of one template that wait for its shards.
type waitingRoom struct {
	waiting int
	opened  chan struct{}
}

// await returns true as soon as the template's shards seem to be open, and
// false when they are not until end, ctx is over, or too many wait already.
func (g *Gate) await(ctx context.Context, templateID int64, end time.Time) bool {
	r := g.enter(templateID)
	if r == nil {
		return false
	}
	defer g.leave(r)
	late := time.NewTimer(time.Until(end))
	defer late.Stop()
	select {
	case <-r.opened:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

func (g *Gate) enter(templateID int64) *waitingRoom {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := g.rooms[templateID]
	if r == nil {
		r = &waitingRoom{opened: make(chan struct{})}
		g.rooms[templateID] = r
		go g.watch(templateID, r)
	}
	if r.waiting >= maxQueue {
		return nil
	}
	r.waiting++
	return r
}

func (g *Gate) leave(r *waitingRoom) {
	g.mu.Lock()
	defer g.mu.Unlock()
	r.waiting--
}

// watch looks for the shards as long as claims wait for them.
func (g *Gate) watch(templateID int64, r *waitingRoom) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for range tick.C {
		open := g.open(templateID)
		g.mu.Lock()
		if open || r.waiting == 0 {
			delete(g.rooms, templateID)
			delete(g.none, templateID)
			g.mu.Unlock()
			close(r.opened)
			return
		}
		g.mu.Unlock()
	}
}

// open reports whether every shard of the template is there and open. What
// cannot be found out is not.
func (g *Gate) open(templateID int64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	shards, err := g.info.Shards(ctx, templateID)
	if err != nil || shards == 0 {
		return false
	}
	list, err := Shards{client: g.client, scripts: g.scripts}.peek(ctx, templateID, shards)
	if err != nil {
		return false
	}
	for _, s := range list {
		if !s.Open {
			return false
		}
	}
	return true
}

// shards reads the number of shards once for concurrent callers: at the
// beginning of a rush it is not cached.
func (g *Gate) shards(ctx context.Context, templateID int64) (int, error) {
	answer := g.asked.DoChan(strconv.FormatInt(templateID, 10), func() (any, error) {
		// One caller's hanging up must not fail the others.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return g.info.Shards(ctx, templateID)
	})
	select {
	case a := <-answer:
		n, _ := a.Val.(int)
		return n, a.Err
	case <-ctx.Done():
		return 0, overloaded("it takes too long")
	}
}
