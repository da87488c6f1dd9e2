package redisgate

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/claim"
	"dropbell/domain/template"
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

// Asking for a claim costs as much with hundreds of drops at the gate as with
// one: its id says which few it can be of.
func TestAClaimIsSoughtAtFewGates(t *testing.T) {
	client := newClient(t)
	newShards(t, NewShards(client), 7, 1, openTerms(5), 10)
	counted := &looks{}
	client.AddHook(counted)
	g := New(client, crowded{unwritten{template.Template{ID: 7}}, 300}, Options{})
	c, err := g.Claim(t.Context(), claim.Request{ID: claim.NewID(1<<40, 7), TemplateID: 7, UserID: 7, Origin: claim.ByTap, Key: "k"})
	must(t, err)
	counted.Store(0)
	seen, err := g.ByID(t.Context(), 7, c.ID)
	must(t, err)
	if seen.ID != c.ID || seen.TemplateID != 7 || counted.Load() > 2 {
		t.Errorf("found %+v after %d looks, of 300 gates", seen, counted.Load())
	}
}
