package gate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// loadSlice is the time for which shards are filled between two looks at them.
const loadSlice = 200 * time.Millisecond

// A filling is the progress of loading user counts and idempotency records into
// shards. A keeper that takes over begins anew. That does no harm: a shard keeps
// the entries that it has.
type filling struct {
	shards   string // their numbers and epochs
	coupons  int64  // the records of coupons before this one are loaded
	counting bool   // all records are loaded; records come first, because a user with a count passes as known
	counts   int64  // the counts of users up to this one are loaded
}

// load fills open shards for a moment, and opens them as whole once everything is loaded.
func (k *Keeper) load(ctx context.Context, plan Plan, shards []Shard, g *gateState) error {
	list, which := []int{}, ""
	for _, s := range shards {
		if s.Filling {
			list, which = append(list, s.Number), which+fmt.Sprint(s.Number, " ", s.Epoch, " ")
		}
	}
	if g.filling.shards != which {
		g.filling = filling{shards: which}
	}
	for end := k.Now().Add(loadSlice); ; {
		done, err := k.loadPage(ctx, plan, list, &g.filling)
		if err != nil {
			return err
		}
		if done {
			return k.open(ctx, plan, list, true)
		}
		if !k.Now().Before(end) {
			return nil
		}
	}
}

// loadFirst loads into shards that are being built all records of refused claims, then
// the first page of coupon records and, if that was the only page, of user counts. whole
// reports whether everything is loaded.
func (k *Keeper) loadFirst(ctx context.Context, plan Plan, shards []int) (whole bool, err error) {
	for after := int64(0); ; {
		list, next, err := k.Store.RefusedRecords(ctx, plan.Template.ID, after)
		if err == nil {
			err = k.loadRecords(ctx, plan, shards, list)
		}
		if err != nil {
			return false, err
		}
		if after = next; after == 0 {
			break
		}
	}
	var f filling
	for range 2 {
		if whole, err = k.loadPage(ctx, plan, shards, &f); err != nil || whole {
			return whole, err
		}
		if !f.counting {
			return false, nil
		}
	}
	return false, nil
}

// loadPage loads the next page into these shards. It returns whether it was the last.
func (k *Keeper) loadPage(ctx context.Context, plan Plan, shards []int, f *filling) (done bool, err error) {
	id := plan.Template.ID
	if !f.counting {
		list, next, err := k.Store.CouponRecords(ctx, id, f.coupons)
		if err != nil {
			return false, err
		}
		f.coupons, f.counting = next, next == 0
		return false, k.loadRecords(ctx, plan, shards, list)
	}
	list, next, err := k.Store.UserCounts(ctx, id, f.counts)
	if err != nil {
		return false, err
	}
	f.counts = next
	list = slices.DeleteFunc(list, func(c UserCount) bool { return !plan.home(shards, c.UserID, c.Household) })
	return next == 0, k.Shards.LoadUserCounts(ctx, id, plan.epochs(), list)
}

func (k *Keeper) loadRecords(ctx context.Context, plan Plan, shards []int, list []IdempotencyRecord) error {
	list = slices.DeleteFunc(list, func(p IdempotencyRecord) bool { return !plan.home(shards, p.UserID, p.Household) })
	k.Writer.reportUsedCodes(ctx, codeKeysOf(list))
	return k.Shards.LoadIdempotencyRecords(ctx, plan.Template.ID, plan.epochs(), list)
}

// home reports whether the user's home shard is one of these.
func (p Plan) home(shards []int, by user.ID, household int64) bool {
	return slices.Contains(shards, HomeShard(by, household, p.Shards))
}

// open lets shards decide claims.
func (k *Keeper) open(ctx context.Context, plan Plan, shards []int, whole bool) error {
	return each(shards, func(s int) error { return k.Shards.Open(ctx, plan.Template.ID, s, plan.Parts[s].Epoch, whole) })
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
