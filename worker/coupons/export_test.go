package coupons

import (
	"context"
	"log/slog"

	"dropbell/adapters/redisgate"
	"dropbell/domain/claim/gate"
)

// A RedisWatch notices that another process of Redis answers.
type RedisWatch struct{ work *gateWork }

// WatchRedis returns the watch of a keeper's gates.
func WatchRedis(members redisgate.Members, keeper *gate.Keeper) RedisWatch {
	return RedisWatch{&gateWork{log: slog.New(slog.DiscardHandler), members: members, keeper: keeper, missing: newCallQueue()}}
}

// Beat looks once.
func (w RedisWatch) Beat(ctx context.Context) error { return w.work.beat(ctx) }

// Missing takes a gate that is to be looked at.
func (w RedisWatch) Missing() (templateID int64, ok bool) { return w.work.missing.take() }
