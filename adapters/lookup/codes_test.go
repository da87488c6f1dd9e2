package lookup_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"dropbell/adapters/lookup"
	"dropbell/domain/redeemcode"
	"dropbell/musttest"
)

// ledger is where batches really are, and counts how often it is asked.
type ledger struct {
	mu      sync.Mutex
	batches []redeemcode.Batch // by first number
	asked   atomic.Int64
}

func (l *ledger) BatchOf(_ context.Context, s redeemcode.Serial) (redeemcode.Batch, error) {
	l.asked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		if b.Holds(s) {
			return b, nil
		}
	}
	return redeemcode.Batch{}, redeemcode.ErrBatchNotFound
}

func (l *ledger) Batch(_ context.Context, id int64) (redeemcode.Batch, error) {
	l.asked.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.batches {
		if b.ID == id {
			return b, nil
		}
	}
	return redeemcode.Batch{}, redeemcode.ErrBatchNotFound
}

// TestBatchOfIsExact compares the cache with a search through all batches. The batches have any
// size, with gaps between them, and are looked up in any order.
func TestBatchOfIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := &ledger{}
		next := redeemcode.Serial(1)
		for id := range rapid.Int64Range(1, 40).Draw(t, "batches") {
			next += redeemcode.Serial(rapid.SampledFrom([]int64{0, 0, 0, 1, 7}).Draw(t, "gap"))
			count := rapid.SampledFrom([]int64{1, 1, 2, 3, 50, 1_000_000}).Draw(t, "count")
			source.batches = append(source.batches, redeemcode.Batch{ID: id + 1, First: next, Count: count})
			next += redeemcode.Serial(count)
		}
		codes, err := lookup.NewCodes(source)
		musttest.OK(t, err)
		for _, s := range rapid.SliceOfN(rapid.Int64Range(-1, int64(next)+1), 1, 60).Draw(t, "serials") {
			want, wantErr := source.BatchOf(context.Background(), redeemcode.Serial(s))
			got, err := codes.BatchOf(context.Background(), redeemcode.Serial(s))
			if got.ID != want.ID || !errors.Is(err, wantErr) {
				t.Fatalf("%d belongs to %d (%v), found %d (%v)", s, want.ID, wantErr, got.ID, err)
			}
		}
	})
}

func TestBatchesAreAskedForOnce(t *testing.T) {
	source := &ledger{batches: []redeemcode.Batch{{ID: 1, First: 1, Count: 1000, State: redeemcode.Ready}}}
	codes, err := lookup.NewCodes(source)
	musttest.OK(t, err)
	for s := redeemcode.Serial(1); s <= 1000; s++ {
		if b, err := codes.BatchOf(t.Context(), s); err != nil || b.State != redeemcode.Ready {
			t.Fatal(b, err)
		}
	}
	if n := source.asked.Load(); n > 3 { // once, and the calls of a second
		t.Errorf("the store was asked %d times about one batch", n)
	}
	source.mu.Lock()
	source.batches = slices.Clone(source.batches)
	source.batches[0].State = redeemcode.Revoked
	source.mu.Unlock()
	codes.Forget(1)
	if b, err := codes.BatchOf(t.Context(), 5); err != nil || b.State != redeemcode.Revoked {
		t.Errorf("after the event: %+v, %v", b, err)
	}
}

// TestBatchesAreNeverStale: even if no event arrives, a second is the limit.
func TestBatchesAreNeverStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the second is of the bubble's clock
		source := &ledger{batches: []redeemcode.Batch{{ID: 1, First: 1, Count: 10, State: redeemcode.Ready}}}
		codes, err := lookup.NewCodes(source)
		musttest.OK(t, err)
		defer lookup.StopCodes(codes)
		if _, err := codes.BatchOf(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		source.mu.Lock()
		source.batches[0].State = redeemcode.Revoked
		source.mu.Unlock()
		eventually(t, time.Second, "the batch is revoked", func() bool {
			b, err := codes.BatchOf(t.Context(), 1)
			musttest.OK(t, err)
			return b.State == redeemcode.Revoked
		})
	})
}
