package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/claim/gate"
)

// BeginShards implements [gate.Store]. All other shards keep their epochs.
func (s Gates) BeginShards(ctx context.Context, of gate.Plan, shards []int, reason string, lease time.Duration) (plan gate.Plan, err error) {
	templateID, epoch := of.Template.ID, of.Epoch
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update gates g set epoch = epoch + 1, reason = $4 where template_id = $1 and epoch = $2 and state = 'standing' and built_at is not distinct from $5
			and not exists (select from gate_shards f where f.template_id = $1 and f.shard = any($3) and f.lease_until > clock_timestamp())`,
			templateID, epoch, shards, reason, builtAt(of))
		if err := fencedBy(tag.RowsAffected(), err); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update gate_shards set epoch = $2::bigint + 1, lease_until = clock_timestamp() + $4::interval
			where template_id = $1 and shard = any($3)`, templateID, epoch, shards, lease)
		if err != nil {
			return err
		}
		plan, err = readPlan(ctx, tx, templateID)
		return err
	})
	return plan, err
}

// RenewShards implements [gate.Store].
func (s Gates) RenewShards(ctx context.Context, templateID int64, shards []int, epoch int64, lease, ready time.Duration) error {
	tag, err := s.Pool.Exec(ctx, `with held as (
			update gate_shards set lease_until = clock_timestamp() + $4::interval where template_id = $1 and shard = any($2) and epoch = $3 returning shard
		)
		update gates set ready_at = clock_timestamp() + $5::interval where template_id = $1 and (select count(*) from held) = cardinality($2::int[])`,
		templateID, shards, epoch, lease, ready)
	return fencedBy(tag.RowsAffected(), err)
}

// StartShards implements [gate.Store]. After the template is locked, no claim of
// an earlier epoch is being written.
func (s Gates) StartShards(ctx context.Context, templateID int64, shards []int, epoch int64) (plan gate.Plan, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		var begun int
		var allot, excess int64
		err := tx.QueryRow(ctx, `select count(*), coalesce(sum(f.allot), 0)::bigint,
				greatest(0, g.base + (select sum(allot) from gate_shards where template_id = $1)::bigint - (t.stock - t.held))
			from gate_shards f join gates g on g.template_id = f.template_id join templates t on t.id = f.template_id
			where f.template_id = $1 and f.shard = any($2) and f.epoch = $3 and g.state = 'standing' group by g.base, t.stock, t.held`,
			templateID, shards, epoch).Scan(&begun, &allot, &excess)
		switch {
		case errors.Is(err, pgx.ErrNoRows), err == nil && begun < len(shards):
			return gate.ErrStaleEpoch
		case err != nil:
			return err
		case excess > allot:
			return gate.ErrOverAllotted
		}
		// The first shard gives up to its whole allotment, and each next shard
		// the remaining number.
		_, err = tx.Exec(ctx, `update gate_shards f set allot = f.allot - greatest(0, least(f.allot, $3::bigint - before))
			from (select shard, coalesce(sum(allot) over (order by shard rows between unbounded preceding and 1 preceding), 0)::bigint as before
				from gate_shards where template_id = $1 and shard = any($2)) b
			where f.template_id = $1 and f.shard = b.shard`, templateID, shards, excess)
		if err != nil {
			return err
		}
		plan, err = readPlan(ctx, tx, templateID)
		return err
	})
	return plan, err
}

// FinishShards implements [gate.Store].
func (s Gates) FinishShards(ctx context.Context, templateID int64, shards []int, epoch int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := lockTemplate(ctx, tx, templateID); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `update gate_shards set lease_until = null where template_id = $1 and shard = any($2) and epoch = $3`, templateID, shards, epoch)
		if err := fencedBy(tag.RowsAffected(), err); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `update gates set built_at = clock_timestamp() where template_id = $1`, templateID)
		return err
	})
}
