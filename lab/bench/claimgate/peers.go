package claimgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redis"
	"dropbell/domain/claim"
	"dropbell/domain/user"
)

// pipelined returns a client that sends concurrent script calls as one pipeline. This is the
// best that a design with one call per claim can do.
func pipelined(url string) (goredis.UniversalClient, error) {
	asking, err := redis.Open(url)
	if err != nil {
		return nil, err
	}
	sending, err := redis.Open(url)
	if err != nil {
		return nil, errors.Join(err, asking.Close())
	}
	p := &pipeline{UniversalClient: asking, sending: sending, queue: make(chan queued, 1024), ended: make(chan struct{})}
	asking.AddHook(p)
	for range 2 {
		p.senders.Go(p.send)
	}
	return p, nil
}

type queued struct {
	cmd  goredis.Cmder
	done chan error
}

type pipeline struct {
	goredis.UniversalClient
	sending goredis.UniversalClient
	queue   chan queued
	ended   chan struct{}
	senders sync.WaitGroup
}

// Close ends both clients.
func (p *pipeline) Close() error {
	close(p.ended)
	p.senders.Wait()
	return errors.Join(p.UniversalClient.Close(), p.sending.Close())
}

// send takes all waiting requests as one pipeline.
func (p *pipeline) send() {
	for {
		var group []queued
		select {
		case q := <-p.queue:
			group = append(group, q)
		case <-p.ended:
			return
		}
		for more := true; more && len(group) < 128; {
			select {
			case q := <-p.queue:
				group = append(group, q)
			default:
				more = false
			}
		}
		pipe := p.sending.Pipeline()
		for _, q := range group {
			_ = pipe.Process(context.Background(), q.cmd)
		}
		_, _ = pipe.Exec(context.Background()) // every command has its own error
		for _, q := range group {
			q.done <- q.cmd.Err()
		}
	}
}

func (p *pipeline) DialHook(next goredis.DialHook) goredis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *pipeline) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func (p *pipeline) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		q := queued{cmd, make(chan error, 1)}
		p.queue <- q
		return <-q.done
	}
}

// copyBare copies coupons into the database, in groups as large as the writer's groups and over
// as many connections. It decides and counts nothing.
func (b *gateBench) copyBare(ctx context.Context, connections int) (float64, error) {
	const group = 500
	var next atomic.Int64
	errs, until := make([]error, connections), time.Now().Add(b.lasting)
	began := time.Now()
	var all sync.WaitGroup
	for c := range connections {
		all.Go(func() {
			for time.Now().Before(until) && errs[c] == nil {
				first := next.Add(group) - group + 1
				_, errs[c] = b.SQL.CopyFrom(ctx, pgx.Identifier{"coupons"},
					[]string{"template_id", "user_id", "claim_id", "origin", "origin_key", "issued_at", "expires_at"},
					pgx.CopyFromSlice(group, func(i int) ([]any, error) {
						by, now := user.ID(first+int64(i)), time.Now()
						return []any{b.drop, int64(by), int64(claim.NewID(rand.Uint64(), b.drop)), "claim", claim.TapKey(by, "bare"), now, now.Add(24 * time.Hour)}, nil
					}))
			}
		})
	}
	all.Wait()
	took := time.Since(began).Seconds()
	_, err := b.SQL.Exec(ctx, `truncate coupons`)
	return float64(next.Load()) / took, errors.Join(append(errs, err)...)
}
