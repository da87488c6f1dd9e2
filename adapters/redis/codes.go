package redis

import (
	"context"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
	"dropbell/domain/redeemcode"
	"dropbell/killpoint"
)

// markLife is how long the bitmap of a batch is kept after its last mark. An expired bitmap
// costs one transaction per code, no more.
const markLife = 7 * 24 * time.Hour

// CodeMarks keeps a bitmap per batch of codes: bit i is set once the coupon of the batch's i-th
// code is stored. A million codes take 125 kB at most. A marked code is refused without a
// transaction. Losing a bitmap costs these transactions and nothing else.
type CodeMarks struct{ client goredis.UniversalClient }

// NewCodeMarks returns marks that use client and do not close it.
func NewCodeMarks(client goredis.UniversalClient) CodeMarks { return CodeMarks{client} }

// marksKey contains the batch's id, first serial number and instant of creation, so that a
// database made anew does not read the marks of another database that used the same Redis.
func marksKey(b redeemcode.Batch) string {
	return "dropbell:codes:" + strconv.FormatInt(b.ID, 10) + ":" + strconv.FormatInt(int64(b.First), 10) + ":" +
		strconv.FormatInt(b.CreatedAt.UnixMicro(), 36)
}

// Used reports whether the code is marked. It returns [redisclient.ErrUnavailable] when
// Redis does not answer within half a second.
func (m CodeMarks) Used(ctx context.Context, b redeemcode.Batch, s redeemcode.Serial) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	bit, err := m.client.GetBit(ctx, marksKey(b), int64(s-b.First)).Result()
	if err != nil {
		return false, redisclient.Unavailable("code mark", err)
	}
	return bit == 1, nil
}

// Mark marks a code; the mark lasts until it expires or Redis loses it. It
// returns [redisclient.ErrUnavailable] when Redis does not answer within half a
// second.
func (m CodeMarks) Mark(ctx context.Context, b redeemcode.Batch, s redeemcode.Serial) error {
	return m.MarkAll(ctx, b, []redeemcode.Serial{s})
}

// MarkAll marks many codes of one batch, like Mark.
func (m CodeMarks) MarkAll(ctx context.Context, b redeemcode.Batch, list []redeemcode.Serial) error {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	key := marksKey(b)
	set := func(p goredis.Pipeliner) error {
		for _, s := range list {
			p.SetBit(ctx, key, int64(s-b.First), 1)
		}
		p.Expire(ctx, key, markLife)
		return nil
	}
	if err := killpoint.Around("codes.mark", func() error {
		_, err := m.client.Pipelined(ctx, set)
		return err
	}); err != nil {
		return redisclient.Unavailable("code mark", err)
	}
	return nil
}
