package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/claim"
)

// Repetition returns what was issued for the key, or [claim.ErrNotFound].
// Looks that arrive together share one query.
func (s *Claims) Repetition(ctx context.Context, k claim.RepeatKey) (claim.Claim, error) {
	c, err := s.looks.do(ctx, k)
	if err == nil && c.ID == 0 {
		err = claim.ErrNotFound
	}
	return c, err
}

func (s *Claims) repetitions(ctx context.Context, keys []claim.RepeatKey) ([]claim.Claim, error) {
	origins, texts := make([]string, len(keys)), make([]string, len(keys))
	for i, k := range keys {
		origins[i], texts[i] = string(k.Origin), k.Key
	}
	found := make(map[claim.RepeatKey]claim.Claim, len(keys))
	b := &pgx.Batch{} // a transaction of its own
	b.Queue(indexesOnly)
	b.Queue(loadKnown, origins, texts).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			k, c, err := scanIssued(rows)
			if err != nil {
				return err
			}
			found[k] = c
		}
		return nil
	})
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	claims := make([]claim.Claim, len(keys))
	for i, k := range keys {
		claims[i] = found[k]
	}
	return claims, nil
}

// ByID returns the claim that issued a coupon, or [claim.ErrNotFound].
func (s *Claims) ByID(ctx context.Context, id claim.ID) (claim.Claim, error) {
	_, c, err := scanIssued(s.pool.QueryRow(ctx, `select origin, origin_key, claim_id, template_id, user_id, id, issued_at
		from coupons where claim_id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, claim.ErrNotFound
	}
	return c, translate(err)
}
