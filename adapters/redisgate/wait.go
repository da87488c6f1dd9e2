package redisgate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
)

const (
	// patience is how long a claim waits for shards. Building the shards of a new drop takes
	// some ten milliseconds. Rebuilding lost shards begins within a second.
	patience = 2 * time.Second
	// lookEvery is the interval at which a process looks for the shards, once for all waiting
	// claims.
	lookEvery = 20 * time.Millisecond
	// callEvery is after how many looks the keeper is called again.
	callEvery = 25
)

// errNoShards says that there is nothing to decide at, yet: no shards, or none with the share of a door
// that is open.
var errNoShards = errors.New("gate: no shards")

// roomKey names the shard, or all shards of a template, that claims wait for.
type roomKey struct {
	template int64
	shard    int // allShards while it is not known how many there are
}

const allShards = -1

// waitingRoom holds the claims that wait for one shard.
type waitingRoom struct {
	waiting int
	opened  chan struct{}
}

// await returns true as soon as the shard of the claim's user seems to be open. It returns false
// at end, when ctx is over, or if too many claims wait already.
func (g *Gate) await(ctx context.Context, q claim.Request, end time.Time) bool {
	r := g.enter(q)
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

func (g *Gate) enter(q claim.Request) *waitingRoom {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := roomKey{q.TemplateID, allShards}
	if d := g.drops[q.TemplateID]; d != nil && !d.households {
		key.shard = gate.HomeShard(q.UserID, 0, d.shards)
	}
	r := g.rooms[key]
	if r == nil {
		r = &waitingRoom{opened: make(chan struct{})}
		g.rooms[key] = r
		go g.watch(key, r)
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

// watch calls the gate's keeper and looks for the shard as long as claims wait for the shard.
func (g *Gate) watch(key roomKey, r *waitingRoom) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		if looks%callEvery == 0 {
			g.caller.call(callMissing, key.template)
		}
		<-tick.C
		open := g.open(key)
		g.mu.Lock()
		if open || r.waiting == 0 {
			delete(g.rooms, key)
			delete(g.none, key.template)
			g.mu.Unlock()
			close(r.opened)
			return
		}
		g.mu.Unlock()
	}
}

// open reports whether the shard, or every shard of the template, exists, is open and has the shares of
// the doors that are open. It also
// returns true if the number of shards has become known or has changed, since the claims then
// wait for another shard. A shard that cannot be read is not open.
func (g *Gate) open(key roomKey) bool {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	shards, err := g.info.Shards(ctx, key.template)
	if err != nil || shards == 0 {
		return false
	}
	g.mu.Lock()
	d := g.drops[key.template]
	if d != nil && d.shards != shards { // by a database that was restored and has built the gate anew
		delete(g.drops, key.template)
	}
	g.mu.Unlock()
	if key.shard >= shards || d != nil && d.shards != shards {
		return true
	}
	list := []int{key.shard}
	if key.shard == allShards {
		list = list[:0]
		for shard := range shards {
			list = append(list, shard)
		}
	}
	look := Shards{client: g.client, scripts: g.scripts}
	epochs, err := look.openEpochs(ctx, key.template, list...)
	if err != nil || slices.Contains(epochs, 0) {
		return false
	}
	t, err := g.info.Template(ctx, key.template)
	now := g.options.Now().Add(shareMargin)
	if err != nil || t.SharesOpen(now) == 0 {
		return err == nil
	}
	seen, err := look.peek(ctx, key.template, shards)
	return err == nil && !gate.ShareDue(&t, seen, now)
}

// shards reads the number of shards once for concurrent callers: at the beginning of a rush the
// number is not cached.
func (g *Gate) shards(ctx context.Context, templateID int64) (int, error) {
	answer := g.asked.DoChan(strconv.FormatInt(templateID, 10), func() (any, error) {
		// A caller that hangs up must not fail the concurrent callers.
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
