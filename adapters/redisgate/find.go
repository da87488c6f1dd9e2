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

// ByID returns the user's claim with that id: an accepted claim while it waits to be written,
// afterwards its outcome, or [claim.ErrNotFound]. ByID reads the shards before the database: a
// claim that is written in between is found by the second read. ByID looks at the user's home
// shard of each template that the claim's id may name, which is almost always one template.
func (g *Gate) ByID(ctx context.Context, by user.ID, id claim.ID) (claim.Claim, error) {
	gates, err := g.active.list(ctx, g.info)
	if err != nil {
		return claim.Claim{}, err
	}
	named := map[int64]int{}
	for template, shards := range gates {
		if id.Names(template) {
			named[template] = shards
		}
	}
	c, err := g.pending(ctx, by, id, named)
	if errors.Is(err, claim.ErrNotFound) {
		c, err = g.info.Decided(ctx, by, id)
	}
	if err == nil && c.UserID != by {
		return claim.Claim{}, claim.ErrNotFound
	}
	return c, err
}

// pending looks for a claim that waits to be written at the user's home shard of
// each of the gates.
func (g *Gate) pending(ctx context.Context, by user.ID, id claim.ID, gates map[int64]int) (claim.Claim, error) {
	if len(gates) == 0 {
		return claim.Claim{}, claim.ErrNotFound
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	replies := map[int64]*goredis.StringCmd{}
	pipe := g.client.Pipeline()
	for template, shards := range gates {
		household, err := g.household(ctx, template, by)
		if err != nil {
			return claim.Claim{}, err
		}
		replies[template] = pipe.HGet(ctx, keysOf(template, gate.HomeShard(by, household, shards)).claims, id.String())
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

// household returns the user's household if the template has a household limit, otherwise 0.
func (g *Gate) household(ctx context.Context, templateID int64, by user.ID) (int64, error) {
	t, err := g.info.Template(ctx, templateID)
	if err != nil || t.HouseholdLimit == 0 {
		return 0, err
	}
	return g.info.Household(ctx, templateID, by)
}
