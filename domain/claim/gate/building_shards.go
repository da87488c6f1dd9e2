package gate

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A Link holds the counters of one shard about moves of stock between it and
// another shard.
type Link struct {
	// Came is the stock that arrived from the other shard in all, Gone the stock sent
	// there.
	Came, Gone int64
	// Number is the number of the last move from the other shard that was begun.
	Number int64
	// Whole is false if the shard has received more stock than its sums per donor add
	// up to: some of the sums were lost.
	Whole bool
}

// A Past is the state given to a shard that replaces a lost shard, so that the
// counters of the other shards and of the database stay true.
type Past struct {
	Stock int64
	// Accepted and Returned are the claims that the database has settled and refused.
	Accepted, Returned int64
	// Begun is the number of the last move towards the shard, above the numbers of all
	// earlier moves.
	Begun int64
	Links map[int]Link // by the other shard, as the other shard sees the moves
}

// movesPerEpoch is more than the number of moves towards one shard that are begun
// in one epoch. Moves towards a shard that was built alone are numbered from its
// epoch times movesPerEpoch, so every move towards the shard that it replaces has a
// lower number.
const movesPerEpoch = 1_000_000_000

// buildShards makes some shards anew while all other shards go on. The joint stock of
// these shards follows from their allotments, from their claims that the database has
// settled, and from the stock that the other shards sent to them and got from them.
// Stock that moved between two of these shards stays among them. Accepted claims that
// are neither on their streams nor in the database are lost with them.
//
// If the joint stock cannot be determined, all shards are built.
func (k *Keeper) buildShards(ctx context.Context, plan Plan, shards []int, entries int64, reason string) error {
	err := k.buildSome(ctx, plan, shards, entries, reason)
	if !errors.Is(err, errNeedsAll) {
		return err
	}
	if plan, err = k.Store.Plan(ctx, plan.Template.ID); err != nil {
		return err
	}
	return k.build(ctx, plan, 0, entries, reason)
}

// errNeedsAll says that the other shards do not tell how much stock the lost shards
// had.
var errNeedsAll = errors.New("gate: the other shards do not tell what these had")

func (k *Keeper) buildSome(ctx context.Context, plan Plan, shards []int, entries int64, reason string) error {
	id, before, w := plan.Template.ID, plan.Template.Issued, &work{began: k.Now(), total: entries}
	plan, err := k.Store.BeginShards(ctx, plan, shards, reason, lease)
	if err != nil {
		return err
	}
	epoch := plan.Parts[shards[0]].Epoch
	renew := func(ctx context.Context, lease time.Duration) error {
		return k.Store.RenewShards(ctx, id, shards, epoch, lease, w.ready(k.Now()))
	}
	err = hold(ctx, renew, func(ctx context.Context) error {
		err := each(shards, func(s int) error { return k.Shards.Fence(ctx, id, s, epoch) })
		if err != nil {
			return err
		}
		if err := each(shards, func(s int) error { return k.writeAll(ctx, plan, s, reason, w) }); err != nil {
			return err
		}
		links, err := k.detach(ctx, plan, shards, epoch*movesPerEpoch)
		if err != nil {
			return err
		}
		plan, err = k.Store.StartShards(ctx, id, shards, epoch)
		if errors.Is(err, ErrOverAllotted) {
			return errNeedsAll
		}
		if err != nil {
			return err
		}
		pasts, ok := plan.pasts(shards, links, epoch*movesPerEpoch)
		if !ok {
			return errNeedsAll
		}
		err = each(shards, func(s int) error {
			if err := k.Shards.Reset(ctx, id, s, epoch, plan.Parts[s].Allot); err != nil {
				return err
			}
			return k.Shards.Resume(ctx, id, s, epoch, pasts[s])
		})
		if err != nil {
			return err
		}
		return k.fillAndOpen(ctx, plan, shards)
	}, func(ctx context.Context) error { return k.Store.FinishShards(ctx, id, shards, epoch) })
	if err != nil {
		return err
	}
	return k.built(ctx, plan, reason, before)
}

// detach ends the moves between the lost shards and all other shards, and returns the
// links of the other shards to the lost shards: per lost shard, by the other shard.
func (k *Keeper) detach(ctx context.Context, plan Plan, lost []int, number int64) (map[int]map[int]Link, error) {
	links := map[int]map[int]Link{}
	for _, s := range lost {
		links[s] = map[int]Link{}
	}
	var mu sync.Mutex
	err := each(plan.all(), func(other int) error {
		if links[other] != nil {
			return nil
		}
		for _, s := range lost {
			link, err := k.Shards.Detach(ctx, plan.Template.ID, other, plan.Parts[other].Epoch, s, number)
			if err != nil {
				return err
			}
			mu.Lock()
			links[s][other] = link
			mu.Unlock()
		}
		return nil
	})
	return links, err
}

// pasts returns the states of the lost shards, computed from the links of the other
// shards; false if the numbers do not add up. A lost shard that got stock from another
// lost shard seems to have less than nothing. The other lost shards give it the missing
// stock, as moves in the past.
func (p Plan) pasts(lost []int, links map[int]map[int]Link, begun int64) (map[int]Past, bool) {
	pasts := make(map[int]Past, len(lost))
	for _, s := range lost {
		part := p.Parts[s]
		past := Past{Stock: part.Allot - part.Settled + part.Refused, Accepted: part.Settled, Returned: part.Refused, Begun: begun, Links: links[s]}
		for _, l := range links[s] {
			if !l.Whole {
				return nil, false
			}
			past.Stock += l.Gone - l.Came
		}
		pasts[s] = past
	}
	for _, to := range lost {
		for _, from := range lost {
			amount := min(-pasts[to].Stock, pasts[from].Stock)
			if from == to {
				continue
			}
			giver, taker := pasts[from], pasts[to]
			if amount > 0 {
				giver.Stock, taker.Stock = giver.Stock-amount, taker.Stock+amount
			}
			// A link holds the counters of the other shard.
			giver.Links[to] = Link{Came: giver.Links[to].Came + max(0, amount), Gone: giver.Links[to].Gone, Number: begun, Whole: true}
			taker.Links[from] = Link{Gone: taker.Links[from].Gone + max(0, amount), Came: taker.Links[from].Came, Number: begun, Whole: true}
			pasts[from], pasts[to] = giver, taker
		}
	}
	for _, past := range pasts {
		if past.Stock < 0 {
			return nil, false
		}
	}
	return pasts, true
}
