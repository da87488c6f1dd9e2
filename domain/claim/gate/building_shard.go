package gate

import (
	"context"
	"errors"

	"dropbell/domain/user"
)

// A Link is what one shard knows of the moves between it and another one.
type Link struct {
	// Came is what came from the other in all, Gone what went there.
	Came, Gone int64
	// Number is that of the last move from the other that was begun.
	Number int64
	// Whole is false if the shard has received stock of which it does not know where
	// it came from, as from a mover of an earlier version.
	Whole bool
}

// A Past is what a shard is given that takes the place of a lost one, so that
// all that the other shards and the database counted stays true.
type Past struct {
	Stock int64
	// Accepted and Returned are as the database settled and refused.
	Accepted, Returned int64
	// Begun numbers the last move towards the shard: a later one than any before.
	Begun int64
	Links map[int]Link // by the other shard, as that one sees it
}

// movesPerEpoch is more than how many moves towards one shard are begun in one
// epoch: the moves of a shard that is built alone are numbered from its epoch times
// this, so that a move towards the shard it replaces is older than all of them.
const movesPerEpoch = 1_000_000_000

// buildShard makes one shard anew while all others go on. Its remaining stock follows
// from its allotment, from its claims that the database has settled, and from the stock
// that the other shards sent there and got from there. Claims that it accepted and that
// are neither on its stream nor in the database are lost with it.
//
// If that cannot be told, all shards are built.
func (k *Keeper) buildShard(ctx context.Context, plan Plan, shard int, reason string) error {
	err := k.buildOne(ctx, plan, shard, reason)
	if !errors.Is(err, errNeedsAll) {
		return err
	}
	if plan, err = k.Store.Plan(ctx, plan.Template.ID); err != nil {
		return err
	}
	return k.build(ctx, plan, 0, reason)
}

// errNeedsAll says that what a shard had cannot be told from the others.
var errNeedsAll = errors.New("gate: the other shards do not tell what this one had")

func (k *Keeper) buildOne(ctx context.Context, plan Plan, shard int, reason string) error {
	id, before := plan.Template.ID, plan.Template.Issued
	plan, err := k.Store.BeginShard(ctx, id, plan.Epoch, shard, reason, lease)
	if err != nil {
		return err
	}
	epoch := plan.Parts[shard].Epoch
	renew := func() error { return k.Store.RenewShard(ctx, id, shard, epoch, lease) }
	if err := k.Shards.Fence(ctx, id, shard, epoch); err != nil {
		return err
	}
	if err := k.writeAll(ctx, plan, shard, reason, renew); err != nil {
		return err
	}
	links, err := k.detach(ctx, plan, shard, epoch*movesPerEpoch)
	if err != nil {
		return err
	}
	plan, err = k.Store.StartShard(ctx, id, shard, epoch)
	if errors.Is(err, ErrOverAllotted) {
		return errNeedsAll
	}
	if err != nil {
		return err
	}
	read := k.Now()
	past, ok := plan.Parts[shard].past(links, epoch*movesPerEpoch)
	if !ok {
		return errNeedsAll
	}
	if err := k.Shards.Reset(ctx, id, shard, epoch, plan.Parts[shard].Allot); err != nil {
		return err
	}
	if err := k.Shards.Resume(ctx, id, shard, epoch, past); err != nil {
		return err
	}
	atHome := func(by user.ID) bool { return HomeShard(by, plan.Shards) == shard }
	if err := k.load(ctx, plan, atHome, epoch, renew); err != nil {
		return err
	}
	if err := k.Shards.SetTerms(ctx, id, shard, epoch, TermsOf(plan.Template), plan.Now.Add(k.Now().Sub(read))); err != nil {
		return err
	}
	if err := k.Shards.Open(ctx, id, shard, epoch); err != nil {
		return err
	}
	if err := k.Store.FinishShard(ctx, id, shard, epoch); err != nil {
		return err
	}
	return k.built(ctx, plan, reason, before)
}

// detach asks all other shards what they know of one.
func (k *Keeper) detach(ctx context.Context, plan Plan, shard int, number int64) (map[int]Link, error) {
	links := map[int]Link{}
	err := plan.each(func(other int) error {
		if other == shard {
			return nil
		}
		link, err := k.Shards.Detach(ctx, plan.Template.ID, other, plan.Parts[other].Epoch, shard, number)
		links[other] = link
		return err
	})
	return links, err
}

// past returns what a shard of this part has, given what the others know of it;
// false if that does not add up.
func (p Part) past(links map[int]Link, begun int64) (Past, bool) {
	past := Past{Stock: p.Allot - p.Settled + p.Refused, Accepted: p.Settled, Returned: p.Refused, Begun: begun, Links: links}
	for _, l := range links {
		if !l.Whole {
			return past, false
		}
		past.Stock += l.Gone - l.Came
	}
	return past, past.Stock >= 0
}
