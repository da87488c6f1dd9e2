package gate

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// lease is how long a builder may be silent before another takes over: longer
// than a page of its work takes, shorter than a crowd should wait.
const lease = 5 * time.Second

// build makes the shards from what the database knows. Only what is written
// tells what is left, and only when every shard is filled may the first one
// open. newest is the latest epoch that a shard has.
func (k *Keeper) build(ctx context.Context, plan Plan, newest int64, reason string) error {
	id, shards := plan.Template.ID, plan.Shards
	if shards == 0 {
		shards = k.divide(plan.Template.Stock, k.Shards.Machines(ctx))
		var err error
		if newest, err = k.leftovers(ctx, id, shards); err != nil {
			return err
		}
	}
	before := plan.Template.Issued
	plan, err := k.drain(ctx, plan, newest, shards, reason)
	if err != nil {
		return err
	}
	if plan, err = k.Store.StartEpoch(ctx, id, plan.Epoch); err != nil {
		return err
	}
	read := k.Now()
	err = plan.each(func(s int) error { return k.Shards.Reset(ctx, id, s, plan.Epoch, plan.Parts[s].Allot) })
	if err != nil {
		return err
	}
	if err := k.load(ctx, plan, func(user.ID) bool { return true }, plan.Epoch, func() error { return k.renew(ctx, plan) }); err != nil {
		return err
	}
	if err := k.setTerms(ctx, plan, plan.Now.Add(k.Now().Sub(read))); err != nil {
		return err
	}
	err = plan.each(func(s int) error { return k.Shards.Open(ctx, id, s, plan.Epoch) })
	if err != nil {
		return err
	}
	if err := k.Store.Activate(ctx, id, plan.Epoch); err != nil {
		return err
	}
	return k.built(ctx, plan, reason, before)
}

// leftovers returns the latest epoch of shards under the number of a template for
// which the database has no gate: of a drop that a restored database has forgotten,
// or whose number it has given to another. Nothing of them counts.
func (k *Keeper) leftovers(ctx context.Context, id int64, shards int) (int64, error) {
	seen, err := k.Shards.Look(ctx, id, shards)
	return newest(seen), err
}

// built tells what was built. issued is how many coupons there were before.
func (k *Keeper) built(ctx context.Context, plan Plan, reason string, issued int64) error {
	if k.Built != nil {
		k.Built(plan.Template.ID, reason)
	}
	if k.Restored != nil && reason == ReasonRestored {
		k.Restored(plan.Template.ID, plan.Template.Issued-issued)
	}
	return k.Store.Refilled(ctx, plan.Template.ID)
}

func (k *Keeper) divide(stock int64, machines int) int {
	if k.Divide == nil {
		return ShardCount(stock, machines)
	}
	return k.Divide(stock, machines)
}

// load fills the shards of chosen users with what these have. It calls renew before
// each page.
func (k *Keeper) load(ctx context.Context, plan Plan, chosen func(user.ID) bool, epoch int64, renew func() error) error {
	id := plan.Template.ID
	err := k.Store.UserCounts(ctx, id, func(list []UserCount) error {
		if err := renew(); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(c UserCount) bool { return !chosen(c.UserID) })
		return k.Shards.LoadUserCounts(ctx, id, plan.Shards, epoch, list)
	})
	if err != nil {
		return err
	}
	return k.Store.IdempotencyRecords(ctx, id, func(list []IdempotencyRecord) error {
		if err := renew(); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(p IdempotencyRecord) bool { return !chosen(p.UserID) })
		k.Writer.reportUsedCodes(ctx, codeKeysOf(list))
		return k.Shards.LoadIdempotencyRecords(ctx, id, plan.Shards, epoch, list)
	})
}

// codeKeysOf returns the keys of redeem codes among idempotency records.
func codeKeysOf(list []IdempotencyRecord) (keys []string) {
	for _, p := range list {
		if p.Origin == claim.ByCode {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// renew extends the builder's lease. The work between two calls is one page, so
// the lease can be short.
func (k *Keeper) renew(ctx context.Context, plan Plan) error {
	return k.Store.Renew(ctx, plan.Template.ID, plan.Epoch, lease)
}

// drain begins a new epoch and brings everything that was accepted before it
// into the database. Order matters: only once no shard takes claims any more
// is what waits to be written complete.
func (k *Keeper) drain(ctx context.Context, plan Plan, newest int64, shards int, reason string) (Plan, error) {
	id := plan.Template.ID
	plan, err := k.Store.Begin(ctx, id, plan.Epoch, newest, shards, reason, lease)
	if err != nil {
		return plan, err
	}
	err = plan.each(func(s int) error { return k.Shards.Fence(ctx, id, s, plan.Epoch) })
	if err != nil || reason == ReasonNew {
		return plan, err
	}
	for s := range plan.Shards {
		if err := k.writeAll(ctx, plan, s, reason, func() error { return k.renew(ctx, plan) }); err != nil {
			return plan, err
		}
	}
	return plan, nil
}

// writeAll writes what waits on a fenced shard and, for a database that has lost
// transactions, all other claims that the shard accepted: a claim that the database
// knows keeps its verdict, another one is decided now by stock and limit, as a claim
// that was late to be written.
func (k *Keeper) writeAll(ctx context.Context, plan Plan, shard int, reason string, renew func() error) error {
	id := plan.Template.ID
	if err := k.Writer.WriteAll(ctx, id, shard, renew); err != nil || reason != ReasonRestored {
		return err
	}
	return k.Shards.Remembered(ctx, id, shard, func(list []Accepted) error {
		if err := renew(); err != nil {
			return err
		}
		return k.Writer.write(ctx, id, shard, []Group{{At: plan.Now, Claims: list}}, map[claim.ID]Settlement{})
	})
}

// clear fences the gate first: coupons that staff still grant after the end must
// not reach a shard that is no longer written. Since it is retired before its
// shards are removed, the gate is not built anew.
func (k *Keeper) clear(ctx context.Context, plan Plan) error {
	plan, err := k.drain(ctx, plan, 0, plan.Shards, ReasonEnded)
	if err != nil {
		return err
	}
	if err := k.Store.Retire(ctx, plan.Template.ID, plan.Epoch); err != nil {
		return err
	}
	if k.Cleared != nil {
		k.Cleared(plan.Template.ID)
	}
	k.forget(plan.Template.ID)
	return k.Shards.Clear(ctx, plan.Template.ID, plan.Shards)
}
