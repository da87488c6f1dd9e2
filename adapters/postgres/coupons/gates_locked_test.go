package coupons_test

import (
	"context"
	"testing"
	"time"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
)

// openShards are shards that take every allotted coupon and accept no claims.
type openShards struct {
	gate.Shards
	allot map[int64][]int64 // by template
}

func (s openShards) Look(_ context.Context, id int64, shards int) ([]gate.Shard, error) {
	list := make([]gate.Shard, shards)
	for i := range list {
		allot := s.allot[id][i]
		list[i] = gate.Shard{Number: i, Epoch: 1, Open: true, Version: 1 << 40, Allot: allot, Stock: allot, Still: true, Clock: time.Now()}
	}
	return list, nil
}

func (s openShards) Fill(_ context.Context, id int64, shard int, _, allot int64, _ int) error {
	s.allot[id][shard] = allot
	return nil
}

// TestALockedDropStopsNoOtherGate: a session holds the row of the drop that the keeper reaches
// first. The keeper gives up soon and divides the new stock of the other drops in the same
// sweep, which reports the lock. The first sweep after the lock ends divides the stock of the locked drop.
func TestALockedDropStopsNoOtherGate(t *testing.T) {
	h := newClaimFixture(t, 1)
	shards := openShards{allot: map[int64][]int64{}}
	var drops []int64
	for range 4 {
		drop := h.behindGate(2, 1) // which gives 2 to each of two shards
		h.Exec(`update templates set claim_mode = 'gate', stock = 6 where id = $1`, drop.ID)
		drops, shards.allot[drop.ID] = append(drops, drop.ID), []int64{2, 2}
	}
	divided := func() (n int) {
		for _, allot := range shards.allot {
			if allot[0]+allot[1] == 6 {
				n++
			}
		}
		return n
	}
	keeper := &gate.Keeper{Store: couponsdb.NewGates(h.DB), Shards: shards, Now: time.Now}
	_, end := h.Hold(`select from templates where id = $1 for update`, drops[0])
	began := time.Now()
	if err := keeper.Sweep(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("the sweep does not report the lock: %v", err)
	}
	if took := time.Since(began); took < couponsdb.LockWait || took > 10*couponsdb.LockWait {
		t.Errorf("the sweep took %v", took)
	}
	if n := divided(); n != 3 || shards.allot[drops[0]][0] != 2 {
		t.Errorf("the stock of %d drops is divided, want 3: %v", n, shards.allot)
	}
	end()
	h.Must(keeper.Sweep(t.Context()))
	if n := divided(); n != 4 {
		t.Errorf("after the lock the stock of %d drops is divided: %v", n, shards.allot)
	}
}
