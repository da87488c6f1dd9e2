package redisgate

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"

	goredis "github.com/redis/go-redis/v9"
)

// LoadUserCounts implements [gate.Shards].
func (s Shards) LoadUserCounts(ctx context.Context, templateID int64, epochs []int64, list []gate.UserCount) error {
	fields := make([][]any, len(epochs))
	for _, h := range list {
		home := gate.HomeShard(h.UserID, h.Household, len(epochs))
		if h.Household != 0 {
			fields[home] = append(fields[home], householdKey(h.Household), h.HouseholdCount)
		}
		if h.UserID == 0 {
			continue
		}
		if h.Household != 0 && h.Count > 0 {
			fields[home] = append(fields[home], "of:"+h.UserID.String(), h.Household)
		}
		fields[home] = append(fields[home], int64(h.UserID), h.Count)
	}
	return s.load(ctx, templateID, epochs, fields, func(k shardKeys) string { return k.users })
}

// LoadIdempotencyRecords implements [gate.Shards].
func (s Shards) LoadIdempotencyRecords(ctx context.Context, templateID int64, epochs []int64, list []gate.IdempotencyRecord) error {
	fields := make([][]any, len(epochs))
	for _, p := range list {
		home := gate.HomeShard(p.UserID, p.Household, len(epochs))
		fields[home] = append(fields[home], recordKey(p.Origin, p.Key), p.Claim.String()+" "+p.UserID.String())
	}
	return s.load(ctx, templateID, epochs, fields, func(k shardKeys) string { return k.keys })
}

// householdKey is the field of a household among the counts of users.
func householdKey(number int64) string { return "h" + strconv.FormatInt(number, 10) }

// recordKey is how the claim script names a request.
func recordKey(o claim.Origin, key string) string { return string(o) + ":" + key }

// loadAtOnce is how many arguments one call has; Lua accepts fewer than 8,000.
const loadAtOnce = 2000

func (s Shards) load(ctx context.Context, templateID int64, epochs []int64, fields [][]any, hash func(shardKeys) string) error {
	pipe := s.client.Pipeline()
	var replies []*goredis.Cmd
	for shard, list := range fields {
		k := keysOf(templateID, shard)
		for part := range slices.Chunk(list, loadAtOnce) {
			replies = append(replies, s.scripts.load.Eval(ctx, pipe, []string{k.shard, hash(k)}, append([]any{epochs[shard]}, part...)...))
		}
	}
	if len(replies) == 0 {
		return nil
	}
	if err := execute(ctx, pipe, "fill shards"); err != nil {
		return err
	}
	for _, reply := range replies {
		if n, err := reply.Int(); err != nil || n != 1 {
			return errors.Join(err, gate.ErrStaleEpoch)
		}
	}
	return nil
}
