package coupons

import (
	"context"
	"errors"
	"strconv"

	"dropbell/adapters/lookup"
	"dropbell/adapters/redis"
	"dropbell/domain/redeemcode"
)

// CodeMarks marks in Redis the codes of the coupons that the gate's writers have stored. The web
// program marks the codes of the coupons that it stores itself.
type CodeMarks struct {
	Batches *lookup.Codes
	Marks   redis.CodeMarks
}

// mark marks the codes with these keys.
func (m CodeMarks) mark(ctx context.Context, keys []string) error {
	byBatch := map[int64][]redeemcode.Serial{}
	batches := map[int64]redeemcode.Batch{}
	for _, key := range keys {
		n, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			continue // no code has such a key
		}
		b, err := m.Batches.BatchOf(ctx, redeemcode.Serial(n))
		if errors.Is(err, redeemcode.ErrBatchNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		batches[b.ID], byBatch[b.ID] = b, append(byBatch[b.ID], redeemcode.Serial(n))
	}
	for id, serials := range byBatch {
		if err := m.Marks.MarkAll(ctx, batches[id], serials); err != nil {
			return err
		}
	}
	return nil
}
