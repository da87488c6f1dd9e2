package stack

import (
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisgate"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
)

// allot is a stock per shard that does not run out.
const allot = 1 << 40

// FillShards makes the open shards of a gate in epoch 1. Their stock does not run out.
func FillShards(ctx context.Context, client goredis.UniversalClient, templateID int64, shards int) error {
	store := redisgate.NewShards(client)
	terms := gate.Terms{Version: 1, Status: template.Published, Obtain: template.ByClaim, OpensAt: time.Now().Add(-time.Hour),
		ClosesAt: time.Now().Add(time.Hour), PerUserLimit: 1}
	for shard := range shards {
		if err := errors.Join(store.Fence(ctx, templateID, shard, 1), store.Reset(ctx, templateID, shard, 1, allot),
			store.SetTerms(ctx, templateID, shard, 1, terms, &gate.Offset{}), store.Open(ctx, templateID, shard, 1, true)); err != nil {
			return err
		}
	}
	return nil
}

// ActivateGate records in the database the gate that [FillShards] has made, and opens its drop,
// since writers refuse claims before the opening.
func (s *Stack) ActivateGate(ctx context.Context, templateID int64, shards int) error {
	_, err := s.SQL.Exec(ctx, `
		with gate as (insert into gates (template_id, shards, epoch, state, reason, lease_until) values ($1, $2, 1, 'standing', 'bench', now()))
		insert into gate_shards (template_id, shard, epoch, allot) select $1, s, 1, $3 from generate_series(0, $2 - 1) s`, templateID, shards, int64(allot))
	if err != nil {
		return err
	}
	_, err = s.SQL.Exec(ctx, `update templates set opens_at = date_trunc('second', now()) - interval '1 hour' where id = $1`, templateID)
	if err != nil {
		return err
	}
	_, err = s.SQL.Exec(ctx, `checkpoint`)
	return err
}
