package program

import (
	"context"
	"errors"
	"strconv"

	"dropbell/adapters/lookup"
	"dropbell/adapters/redis"
	"dropbell/domain/redeemcode"
)

// codeGenerator works off jobs that generate redeem codes.
func (p *program) codeGenerator() *redeemcode.Generator {
	keys, _ := redeemcode.ParseKeys(p.Config.CodeKeys) // config has checked them
	return &redeemcode.Generator{Store: p.Stores.Codes, Keys: keys}
}

// codeMarks marks codes whose coupons the gate's writers have stored, as web
// does for those that it stores itself.
type codeMarks struct {
	batches *lookup.Codes
	marks   redis.CodeMarks
}

func (p *program) newCodeMarks() (codeMarks, error) {
	batches, err := lookup.NewCodes(p.Stores.Codes)
	return codeMarks{batches, redis.NewCodeMarks(p.Redis)}, err
}

// mark marks the codes with these keys.
func (m codeMarks) mark(ctx context.Context, keys []string) error {
	byBatch := map[int64][]redeemcode.Serial{}
	batches := map[int64]redeemcode.Batch{}
	for _, key := range keys {
		n, err := strconv.ParseInt(key, 10, 64)
		if err != nil {
			continue // no code has such a key
		}
		b, err := m.batches.BatchOf(ctx, redeemcode.Serial(n))
		if errors.Is(err, redeemcode.ErrBatchNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		batches[b.ID], byBatch[b.ID] = b, append(byBatch[b.ID], redeemcode.Serial(n))
	}
	for id, serials := range byBatch {
		if err := m.marks.MarkAll(ctx, batches[id], serials); err != nil {
			return err
		}
	}
	return nil
}
