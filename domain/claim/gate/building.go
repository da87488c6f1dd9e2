package gate

import (
	"context"
	"time"

	"dropbell/domain/claim"
)

// lease is how long a builder may be silent before another takes over: longer
// than a page of its work takes, shorter than a crowd should wait.
const lease = 5 * time.Second

// build creates the shards from the database. Only stored claims determine what
// is left, and the first shard may open only when every shard is filled.
func (k *Keeper) build(ctx context.Context, plan Plan, reason string) error {
	id, shards := plan.Template.ID, plan.Shards
	if shards == 0 {
		shards = k.divide(plan.Template.Stock, k.Shards.Machines(ctx))
	}
	plan, err := k.drain(ctx, plan, shards, reason)
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
	if err := k.load(ctx, plan); err != nil {
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
	if k.Built != nil {
		k.Built(id, reason)
	}
	return k.Store.Refilled(ctx, id)
}

func (k *Keeper) divide(stock int64, machines int) int {
	if k.Divide == nil {
		return ShardCount(stock, machines)
	}
	return k.Divide(stock, machines)
}

func (k *Keeper) load(ctx context.Context, plan Plan) error {
	id := plan.Template.ID
	err := k.Store.UserCounts(ctx, id, func(list []UserCount) error {
		if err := k.renew(ctx, plan); err != nil {
			return err
		}
		return k.Shards.LoadUserCounts(ctx, id, plan.Shards, plan.Epoch, list)
	})
	if err != nil {
		return err
	}
	return k.Store.IdempotencyRecords(ctx, id, func(list []IdempotencyRecord) error {
		if err := k.renew(ctx, plan); err != nil {
			return err
		}
		k.Writer.reportUsedCodes(ctx, codeKeysOf(list))
		return k.Shards.LoadIdempotencyRecords(ctx, id, plan.Shards, plan.Epoch, list)
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

// drain begins a new epoch and stores everything that was accepted before it in
// the database. Order matters: only once no shard accepts claims any more are
// the waiting ones complete.
func (k *Keeper) drain(ctx context.Context, plan Plan, shards int, reason string) (Plan, error) {
	id := plan.Template.ID
	plan, err := k.Store.Begin(ctx, id, plan.Epoch, shards, reason, lease)
	if err != nil {
		return plan, err
	}
	err = plan.each(func(s int) error { return k.Shards.Fence(ctx, id, s, plan.Epoch) })
	if err != nil {
		return plan, err
	}
	return plan, plan.each(func(s int) error {
		return k.Writer.WriteAll(ctx, id, s, func() error { return k.renew(ctx, plan) })
	})
}

// clear fences the gate first: coupons that staff still grant after the end must
// not reach a shard that is no longer written. Since it is retired before its
// shards are removed, the gate is not built anew.
func (k *Keeper) clear(ctx context.Context, plan Plan) error {
	plan, err := k.drain(ctx, plan, plan.Shards, ReasonEnded)
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
