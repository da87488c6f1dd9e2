package lookup

import (
	"context"
	"slices"
	"sync"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/redeemcode"
)

// CodeSource is where batches of codes really are.
type CodeSource interface {
	// BatchOf returns [redeemcode.ErrBatchNotFound] if no batch holds s.
	BatchOf(ctx context.Context, s redeemcode.Serial) (redeemcode.Batch, error)
	// Batch returns [redeemcode.ErrBatchNotFound] if there is none.
	Batch(ctx context.Context, id int64) (redeemcode.Batch, error)
}

// maxSpans is the largest number of known ranges, at 24 bytes each.
const maxSpans = 100_000

// span is the range of one batch, from first to last inclusive. A range never changes, so a
// known range is never stale.
type span struct {
	first, last redeemcode.Serial
	batch       int64
}

// Codes finds the batch of a serial number. Ranges are read once. A batch's fields that may
// change are at most a second old. A serial number that belongs to no batch costs one query.
// Only a holder of the key can make such a number: invented codes are refused before this
// look-up.
type Codes struct {
	source CodeSource
	cache  *otter.Cache[int64, redeemcode.Batch]
	mu     sync.RWMutex
	spans  []span // by first, without overlaps
}

// NewCodes returns an empty cache in front of source.
func NewCodes(source CodeSource) (*Codes, error) {
	cache, err := otter.New(&otter.Options[int64, redeemcode.Batch]{
		MaximumSize:       maxEntries,
		ExpiryCalculator:  otter.ExpiryWriting[int64, redeemcode.Batch](life),
		RefreshCalculator: otter.RefreshWriting[int64, redeemcode.Batch](refreshAfter),
		Logger:            &otter.NoopLogger{}, // a failed refresh shows when the entry expires
	})
	return &Codes{source: source, cache: cache}, err
}

// BatchOf returns the batch whose range contains s, at most a second old, or
// [redeemcode.ErrBatchNotFound].
func (c *Codes) BatchOf(ctx context.Context, s redeemcode.Serial) (redeemcode.Batch, error) {
	if id, ok := c.find(s); ok {
		return c.cache.Get(ctx, id, otter.LoaderFunc[int64, redeemcode.Batch](c.load))
	}
	b, err := c.source.BatchOf(ctx, s)
	if err != nil {
		return b, err
	}
	c.learn(span{b.First, b.First + redeemcode.Serial(b.Count) - 1, b.ID})
	c.cache.Set(b.ID, b)
	return b, nil
}

func (c *Codes) load(ctx context.Context, id int64) (redeemcode.Batch, error) {
	// One caller loads for many: its hanging up must not fail the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	return c.source.Batch(ctx, id)
}

// find returns the batch whose known range holds s.
func (c *Codes) find(s redeemcode.Serial) (int64, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	i, exact := slices.BinarySearchFunc(c.spans, s, byFirst)
	if !exact {
		i-- // the last range that begins before s
	}
	if i < 0 || s > c.spans[i].last {
		return 0, false
	}
	return c.spans[i].batch, true
}

func byFirst(r span, s redeemcode.Serial) int {
	switch {
	case r.first < s:
		return -1
	case r.first > s:
		return 1
	}
	return 0
}

func (c *Codes) learn(r span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spans) >= maxSpans {
		c.spans = nil // more batches than are ever in use: start again
	}
	i, known := slices.BinarySearchFunc(c.spans, r.first, byFirst)
	if !known {
		c.spans = slices.Insert(c.spans, i, r)
	}
}

// Forget makes the next look-up load the batch again. Call Forget when this process or another
// has changed the batch.
func (c *Codes) Forget(id int64) { c.cache.Invalidate(id) }
