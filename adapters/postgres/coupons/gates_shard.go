package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/claim/gate"
)

// BeginShard implements [gate.Store]. All other shards keep their epochs, which are
// written down if programs of an earlier version built them.
func (s Gates) BeginShard(ctx context.Context, templateID, epoch int64, shard int, reason string, lease time.Duration) (plan gate.Plan, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update gates g set epoch = epoch + 1, reason = $4 where template_id = $1 and epoch = $2 and state = 'standing'
			and exists (select from gate_shards f where f.template_id = $1 and f.shard = $3 and coalesce(f.lease_until, '-infinity') <= clock_timestamp())`,
			templateID, epoch, shard, reason)
		if err := fencedBy(tag.RowsAffected(), err); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update gate_shards set epoch = case when shard = $3 then $2::bigint + 1 else coalesce(nullif(epoch, 0), $2) end,
				lease_until = case when shard = $3 then clock_timestamp() + $4::interval else lease_until end
			where template_id = $1`, templateID, epoch, shard, lease)
		if err != nil {
			return err
		}
		plan, err = readPlan(ctx, tx, templateID)
		return err
	})
	return plan, err
}

// RenewShard implements [gate.Store].
func (s Gates) RenewShard(ctx context.Context, templateID int64, shard int, epoch int64, lease time.Duration) error {
	tag, err := s.Pool.Exec(ctx, `update gate_shards set lease_until = clock_timestamp() + $4::interval
		where template_id = $1 and shard = $2 and epoch = $3`, templateID, shard, epoch, lease)
	return fencedBy(tag.RowsAffected(), err)
}

// StartShard implements [gate.Store]. Behind the template's lock no claim of an
// earlier epoch is being written.
func (s Gates) StartShard(ctx context.Context, templateID int64, shard int, epoch int64) (plan gate.Plan, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		var allot, excess int64
		err := tx.QueryRow(ctx, `select f.allot, greatest(0, g.base + (select sum(allot) from gate_shards where template_id = $1)::bigint - t.stock)
			from gate_shards f join gates g on g.template_id = f.template_id join templates t on t.id = f.template_id
			where f.template_id = $1 and f.shard = $2 and f.epoch = $3 and g.state = 'standing'`, templateID, shard, epoch).Scan(&allot, &excess)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return gate.ErrStaleEpoch
		case err != nil:
			return err
		case excess > allot:
			return gate.ErrOverAllotted
		}
		if _, err := tx.Exec(ctx, `update gate_shards set allot = allot - $3 where template_id = $1 and shard = $2`, templateID, shard, excess); err != nil {
			return err
		}
		plan, err = readPlan(ctx, tx, templateID)
		return err
	})
	return plan, err
}

// FinishShard implements [gate.Store].
func (s Gates) FinishShard(ctx context.Context, templateID int64, shard int, epoch int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update gate_shards set lease_until = null where template_id = $1 and shard = $2 and epoch = $3`, templateID, shard, epoch)
		if err := fencedBy(tag.RowsAffected(), err); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update gates set built_at = clock_timestamp() where template_id = $1`, templateID)
		return err
	})
}
