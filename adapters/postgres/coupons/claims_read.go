package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Repetition returns the claim that was issued for the key, or
// [claim.ErrNotFound]. Concurrent calls share one query.
func (s *Claims) Repetition(ctx context.Context, k claim.RepeatKey) (claim.Claim, error) {
	c, err := s.looks.Do(ctx, k)
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
	b.Queue(pg.IndexesOnly)
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
	if err := s.Pool.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	claims := make([]claim.Claim, len(keys))
	for i, k := range keys {
		claims[i] = found[k]
	}
	return claims, nil
}

// ByID returns the user's claim that issued a coupon, or [claim.ErrNotFound].
func (s *Claims) ByID(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error) {
	_, c, err := scanIssued(s.Pool.QueryRow(ctx, `select origin, origin_key, claim_id, template_id, user_id, id, issued_at
		from coupons where user_id = $2 and claim_id = $1`, id, by))
	if errors.Is(err, pgx.ErrNoRows) {
		return c, claim.ErrNotFound
	}
	return c, pg.Translate(err)
}

// Holders returns the set of users who have ever been given a coupon of the
// template, as a function that reports membership.
func (s *Claims) Holders(ctx context.Context, templateID int64) (func(user.ID) bool, error) {
	// Reading millions of rows takes longer than a call of a request may take.
	rows, err := s.Pool.Query(pg.Unlimited(ctx), `select user_id from claim_counts where template_id = $1`, templateID)
	if err != nil {
		return nil, pg.Translate(err)
	}
	set := roaring64.New()
	var id int64
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { set.Add(uint64(id)); return nil }); err != nil {
		return nil, pg.Translate(err)
	}
	return func(by user.ID) bool { return set.Contains(uint64(by)) }, nil
}

// Clock returns the time of the database's clock.
func (s *Claims) Clock(ctx context.Context) (now time.Time, err error) {
	err = s.Pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now, pg.Translate(err)
}

// couponState is the current state of coupon c: an expired coupon counts as
// expired even if the sweep has not stored this yet.
const couponState = `(case when c.state = 'unused' and c.expires_at <= clock_timestamp() then 'expired' else c.state end)`

// Coupons lists a user's coupons, newest first.
func (s *Claims) Coupons(ctx context.Context, q claim.Query) ([]claim.Coupon, error) {
	rows := pg.Rows(ctx, s.Pool, `select c.id, c.claim_id, c.template_id, `+couponState+`, c.issued_at, c.expires_at, c.order_id,
			c.locked_until, c.discount, c.used_at, c.returned
		from coupons c where c.user_id = $1 and ($2::bigint = 0 or c.id < $2) and ($3 = '' or `+couponState+` = $3)
		order by c.id desc limit $4`, q.UserID, q.Before, q.State, max(1, q.Limit))
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c claim.Coupon, err error) {
		err = row.Scan(&c.ID, &c.ClaimID, &c.Template.ID, &c.State, &c.IssuedAt, &c.ExpiresAt, &c.OrderID, &c.LockedUntil, &c.Discount, &c.UsedAt, &c.Returned)
		return c, err
	})
	if err != nil || len(list) == 0 {
		return nil, pg.Translate(err)
	}
	return list, s.addTemplates(ctx, list)
}

func (s *Claims) addTemplates(ctx context.Context, list []claim.Coupon) error {
	ids := make([]int64, len(list))
	for i, c := range list {
		ids[i] = c.Template.ID
	}
	templates, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, `select `+pg.TemplateColumns+pg.TemplateFrom+`where t.id = any($1)`, ids), pg.ScanTemplate)
	byID := make(map[int64]template.Template, len(templates))
	for _, t := range templates {
		byID[t.ID] = t
	}
	for i := range list {
		list[i].Template = byID[ids[i]]
	}
	return pg.Translate(err)
}
