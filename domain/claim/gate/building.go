package gate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/claim"
)

// lease is how long a builder may be silent before another process takes over. A
// builder renews the lease four times in this time, whatever step it is at.
const lease = 2 * time.Second

// hold runs do under a lease, and then finish, which ends the lease. renew extends the
// lease, and ends it when called with 0. The context of do is cancelled when the lease is
// lost. The lease is not renewed while finish runs: a renewal after it would make a gate
// that is open look as if it were being built. After a failure hold ends the lease, so
// that the next builder need not wait for it.
func hold(ctx context.Context, renew func(ctx context.Context, lease time.Duration) error, do, finish func(ctx context.Context) error) error {
	held, end := context.WithCancelCause(ctx)
	defer end(nil)
	if err := renew(held, lease); err != nil {
		return err
	}
	var renewing sync.WaitGroup
	renewing.Go(func() {
		tick := time.NewTicker(lease / 4)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
			}
			if err := renew(held, lease); errors.Is(err, ErrStaleEpoch) {
				end(err)
				return
			}
		}
	})
	err := do(held)
	end(nil)
	renewing.Wait()
	if err == nil {
		err = finish(ctx)
	}
	if err == nil {
		return nil
	}
	if lost := context.Cause(held); errors.Is(lost, ErrStaleEpoch) {
		return lost
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = renew(ending, 0) // or it ends by itself
	return err
}

// work is the progress of a builder. Writing the claims that wait on the streams takes
// long; all other steps take milliseconds.
type work struct {
	began time.Time
	total int64 // entries that waited at the beginning
	done  atomic.Int64
}

// entriesPerSecond is the assumed rate at which entries are written, used until the first
// entries are written.
const entriesPerSecond = 100

// ready estimates the time until the work is done.
func (w *work) ready(now time.Time) time.Duration {
	done := w.done.Load()
	left := max(0, w.total-done)
	if done == 0 {
		return time.Duration(left)*time.Second/entriesPerSecond + time.Second
	}
	return time.Duration(float64(now.Sub(w.began))*float64(left)/float64(done)) + time.Second
}

// build makes all shards from the state of the database. How much stock is left is
// known only after all accepted claims are written. The first shard may open only
// when every shard is filled. newest is the latest epoch of a shard; entries is the
// number of groups of claims that wait to be written.
func (k *Keeper) build(ctx context.Context, plan Plan, newest, entries int64, reason string) error {
	id, shards := plan.Template.ID, plan.Shards
	if shards == 0 {
		shards = k.divide(plan.Template.Stock, k.Shards.Machines(ctx))
		var err error
		if newest, err = k.leftovers(ctx, id, shards); err != nil {
			return err
		}
	}
	before := plan.Template.Issued
	err := k.drained(ctx, plan, newest, entries, shards, reason, func(ctx context.Context, begun Plan) (err error) {
		if plan, err = k.Store.StartEpoch(ctx, id, begun.Epoch); err != nil {
			return err
		}
		err = each(plan.all(), func(s int) error { return k.Shards.Reset(ctx, id, s, plan.Epoch, plan.Parts[s].Allot) })
		if err != nil {
			return err
		}
		return k.fillAndOpen(ctx, plan, plan.all())
	}, func(ctx context.Context, begun Plan) error { return k.Store.Activate(ctx, id, begun.Epoch) })
	if err != nil {
		return err
	}
	return k.built(ctx, plan, reason, before)
}

// fillAndOpen completes the building of shards that were reset. A shard with few
// users knows all of them before it opens. Other shards are filled while they decide
// claims.
func (k *Keeper) fillAndOpen(ctx context.Context, plan Plan, shards []int) error {
	whole, err := k.loadFirst(ctx, plan, shards)
	if err != nil {
		return err
	}
	if err := k.setTerms(ctx, plan, shards); err != nil {
		return err
	}
	return k.open(ctx, plan, shards, whole)
}

// leftovers returns the latest epoch of shards that exist under the id of a
// template without a gate in the database. Such shards are of a drop that a
// restored database does not know, or whose id it has given to another drop. Their
// contents do not count.
func (k *Keeper) leftovers(ctx context.Context, id int64, shards int) (int64, error) {
	seen, err := k.Shards.Look(ctx, id, shards)
	return newest(seen), err
}

// built reports a completed building. issued is the number of coupons before it.
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

// drained begins a new epoch, fences the shards, writes every claim accepted before the
// epoch to the database, and then calls do and finish with the plan of the new epoch. The order
// matters: the claims on the streams are complete only once no shard accepts claims any
// more.
func (k *Keeper) drained(ctx context.Context, plan Plan, newest, entries int64, shards int, reason string,
	do, finish func(ctx context.Context, begun Plan) error) error {
	id, w := plan.Template.ID, &work{began: k.Now(), total: entries}
	plan, err := k.Store.Begin(ctx, plan, newest, shards, reason, lease)
	if err != nil {
		return err
	}
	renew := func(ctx context.Context, lease time.Duration) error {
		return k.Store.Renew(ctx, id, plan.Epoch, lease, w.ready(k.Now()))
	}
	return hold(ctx, renew, func(ctx context.Context) error {
		err := each(plan.all(), func(s int) error { return k.Shards.Fence(ctx, id, s, plan.Epoch) })
		if err == nil && reason != ReasonNew {
			err = each(plan.all(), func(s int) error { return k.writeAll(ctx, plan, s, reason, w) })
		}
		if err != nil {
			return err
		}
		return do(ctx, plan)
	}, func(ctx context.Context) error { return finish(ctx, plan) })
}

// writeAll writes the claims that wait on a fenced shard. If the database has lost
// transactions, it also writes all other claims that the shard accepted. A claim
// that the database knows keeps its verdict. Any other claim is decided now by stock
// and limit, like a claim that was late to be written.
func (k *Keeper) writeAll(ctx context.Context, plan Plan, shard int, reason string, w *work) error {
	id := plan.Template.ID
	err := k.Writer.WriteAll(ctx, id, shard, func(entries int) { w.done.Add(int64(entries)) })
	if err != nil || reason != ReasonRestored {
		return err
	}
	return k.Shards.Remembered(ctx, id, shard, func(list []Accepted) error {
		return k.Writer.write(ctx, id, shard, []Group{{At: plan.Now, Claims: list}}, map[claim.ID]Settlement{})
	})
}

// clear takes the gate down. It fences the shards first, because coupons that staff
// still grant after the end must not reach a shard that is no longer written. It
// retires the plan before it removes the shards, so that the gate is not built
// anew.
func (k *Keeper) clear(ctx context.Context, plan Plan) error {
	nothing := func(context.Context, Plan) error { return nil }
	err := k.drained(ctx, plan, 0, 0, plan.Shards, ReasonEnded, nothing, func(ctx context.Context, begun Plan) error {
		return k.Store.Retire(ctx, begun.Template.ID, begun.Epoch)
	})
	if err != nil {
		return err
	}
	if k.Cleared != nil {
		k.Cleared(plan.Template.ID)
	}
	k.forget(plan.Template.ID)
	return k.Shards.Clear(ctx, plan.Template.ID, plan.Shards)
}
