package redis

import (
	"context"
	"errors"
	"time"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// Shared keeps one value for all processes until the value expires, and lets one process at a
// time make the next value. Its methods return [redisclient.ErrUnavailable] when Redis does not
// answer.
type Shared struct {
	client goredis.UniversalClient
	name   string
}

// NewShared returns the value of that name.
func NewShared(client goredis.UniversalClient, name string) *Shared { return &Shared{client, name} }

// Load returns the value, or nil if there is none.
func (s *Shared) Load(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	value, err := s.client.Get(ctx, "shared:"+s.name).Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	return value, wrapShared(err)
}

// Store keeps the value for so long, and ends the turn.
func (s *Shared) Store(ctx context.Context, value []byte, lasting time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	if err := s.client.Set(ctx, "shared:"+s.name, value, lasting).Err(); err != nil {
		return wrapShared(err)
	}
	return wrapShared(s.client.Del(ctx, "turn:"+s.name).Err())
}

// Turn reports whether the caller has the turn to make the next value, for so long.
func (s *Shared) Turn(ctx context.Context, lasting time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	mine, err := s.client.SetNX(ctx, "turn:"+s.name, 1, lasting).Result()
	return mine, wrapShared(err)
}

func wrapShared(err error) error {
	if err == nil {
		return nil
	}
	return redisclient.Unavailable("shared", err)
}
