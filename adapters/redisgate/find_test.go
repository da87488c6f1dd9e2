package redisgate

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// crowded says that many templates have shards.
type crowded struct {
	unwritten
	templates int64
}

func (c crowded) Active(context.Context) (map[int64]int, error) {
	list := map[int64]int{}
	for id := range c.templates {
		list[id+1] = 1
	}
	return list, nil
}

// looks counts the reads of hashes in pipelines.
type looks struct{ atomic.Int64 }

func (l *looks) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}
func (l *looks) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }
func (l *looks) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, c := range cmds {
			if c.Name() == "hget" {
				l.Add(1)
			}
		}
		return next(ctx, cmds)
	}
}

// Looking a claim up costs as much with hundreds of drops at the gate as with one drop: the
// claim's id names the gate, and its user determines the shard.
func TestAClaimIsSoughtAtOneShard(t *testing.T) {
	client := newClient(t)
	newShards(t, NewShards(client), 7, 1, openTerms(5), 10)
	counted := &looks{}
	client.AddHook(counted)
	g := New(client, crowded{unwritten{template.Template{ID: 7}}, 600}, Options{})
	accept := func(by user.ID, id claim.ID) claim.ID {
		c, err := g.Claim(t.Context(), claim.Request{ID: id, TemplateID: 7, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "k")})
		must(t, err)
		return c.ID
	}
	find := func(by user.ID, id claim.ID, atMost int64) {
		t.Helper()
		counted.Store(0)
		seen, err := g.ByID(t.Context(), by, id)
		must(t, err)
		if seen.ID != id || seen.TemplateID != 7 || seen.UserID != by || counted.Load() > atMost {
			t.Errorf("found %+v after %d reads, of 600 gates", seen, counted.Load())
		}
	}
	find(7, accept(7, claim.NewID(1<<40, 7)), 1)
	if _, err := g.ByID(t.Context(), 9, claim.NewID(1<<40, 7)); !errors.Is(err, claim.ErrNotFound) {
		t.Errorf("somebody else's claim is shown: %v", err)
	}
}
