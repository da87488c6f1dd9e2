package redisgate

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/user"

	goredis "github.com/redis/go-redis/v9"
)

// standingFor is how long the list of templates with shards is believed.
const standingFor = 500 * time.Millisecond

// activeGates caches the list of templates with shards.
type activeGates struct {
	mu     sync.Mutex
	shards map[int64]int
	until  time.Time
}

func (s *activeGates) list(ctx context.Context, info Info) (map[int64]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.until) {
		return s.shards, nil
	}
	shards, err := info.Active(ctx)
	if err == nil {
		s.shards, s.until = shards, time.Now().Add(standingFor)
	}
	return shards, err
}

// ByID returns the user's claim of that name: accepted while it waits to be
// written, then what became of it, or [claim.ErrNotFound]. It looks at the
// shards first: what is written in between is in the database by the second look.
func (g *Gate) ByID(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error) {
	c, err := g.pending(ctx, by, id)
	if errors.Is(err, claim.ErrNotFound) {
		c, err = g.info.Decided(ctx, by, id)
	}
	if err == nil && c.UserID != by {
		return claim.Claim{}, claim.ErrNotFound
	}
	return c, err
}

// pending reads one shard of each template that the claim's id can belong to:
// the user's home shard.
func (g *Gate) pending(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error) {
	drops, err := g.active.list(ctx, g.info)
	if err != nil {
		return claim.Claim{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	replies := map[int64]*goredis.StringCmd{}
	pipe := g.client.Pipeline()
	for template, shards := range drops {
		if !id.MayBeOf(template) {
			continue
		}
		replies[template] = pipe.HGet(ctx, keysOf(template, gate.HomeShard(by, shards)).claims, id.String())
	}
	if len(replies) == 0 {
		return claim.Claim{}, claim.ErrNotFound
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return claim.Claim{}, redisclient.Unavailable("claim", err)
	}
	for template, reply := range replies {
		userText, at, _ := strings.Cut(reply.Val(), " ")
		if owner, err := user.ParseID(userText); err == nil {
			return claim.Claim{ID: id, TemplateID: template, UserID: owner, State: claim.Accepted, At: g.acceptedAt(at)}, nil
		}
	}
	return claim.Claim{}, claim.ErrNotFound
}
