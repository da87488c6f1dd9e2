// Package claimgate measures the claim gate. It compares claims per second decided in Redis by
// one script call per group with one call per claim, alone or in pipelines, with the Redis log
// synced at every write and once a second. It also measures how fast accepted claims are written
// to PostgreSQL, compared with a bare COPY of their coupons.
//
//	go tool task bench:claimgate
//
// With -refill it measures how soon a claim is accepted after Redis was emptied, for drops that
// have issued coupons.
package claimgate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redis"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.Callers(1024), f.Lasting(5), f.Runs(3)
	shards := f.Int("shards", 1, "shards of the grouped runs")
	refills := f.Numbers("refill", "", "measure instead the first claim after Redis was emptied, for drops with so many issued coupons, e.g. 0,100000,1000000")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		if len(*refills) > 0 {
			return refill(ctx, s, *refills, *shards, *runs)
		}
		return bench(ctx, s, *callers, *shards, *lasting, *runs)
	})
}

func bench(ctx context.Context, s *stack.Stack, callers, shards int, lasting time.Duration, runs int) error {
	client, err := redis.Open(s.RedisURL)
	if err != nil {
		return err
	}
	defer client.Close()
	piped, err := pipelined(s.RedisURL)
	if err != nil {
		return err
	}
	defer piped.Close()
	b := &gateBench{Stack: s, client: client, callers: callers, lasting: lasting}
	var ratios, pipes, copies []float64
	for range runs {
		for _, fsync := range []string{"always", "everysec"} {
			if err := client.ConfigSet(ctx, "appendfsync", fsync).Err(); err != nil {
				return err
			}
			grouped, err := b.drive(ctx, client, shards, 0)
			if err != nil {
				return err
			}
			// As many calls on their way as there are shards.
			single, err := b.drive(ctx, client, gate.MaxShards, 1)
			if err != nil {
				return err
			}
			pipe, err := b.drive(ctx, piped, gate.MaxShards, 1)
			if err != nil {
				return err
			}
			fmt.Printf("%-8s  grouped        %s\n%8s  one call each  %s\n%8s  in pipelines   %s\n", fsync, grouped, "", single, "", pipe)
			ratios, pipes = append(ratios, grouped.PerSecond/single.PerSecond), append(pipes, grouped.PerSecond/pipe.PerSecond)
		}
		written, err := b.write(ctx, shards)
		if err != nil {
			return err
		}
		bare, err := b.copyBare(ctx, shards)
		if err != nil {
			return err
		}
		fmt.Printf("written to PostgreSQL %.0f/s, bare COPY %.0f/s\n", written, bare)
		copies = append(copies, written/bare)
	}
	fmt.Printf("medians: grouped/one call each %.1f, grouped/in pipelines %.1f, written/bare COPY %.2f\n",
		stack.Median(ratios), stack.Median(pipes), stack.Median(copies))
	return nil
}

type gateBench struct {
	*stack.Stack
	client  goredis.UniversalClient
	callers int
	lasting time.Duration
	drop    int64 // the newest one
}

// facts name a gate that stands for itself, without a database.
type facts struct{ shards int }

func (f facts) Shards(context.Context, int64) (int, error)    { return f.shards, nil }
func (f facts) Active(context.Context) (map[int64]int, error) { return nil, nil }
func (f facts) Retired(context.Context, int64) (bool, error)  { return false, nil }
func (f facts) Known(context.Context, claim.Request) (claim.Claim, error) {
	return claim.Claim{}, claim.ErrNotFound
}
func (f facts) Decided(context.Context, user.ID, claim.ID) (claim.Claim, error) {
	return claim.Claim{}, claim.ErrNotFound
}
func (f facts) Held(context.Context, int64, []user.ID, []int64) ([]gate.UserCount, []gate.IdempotencyRecord, error) {
	return nil, nil, nil
}
func (f facts) Household(context.Context, int64, user.ID) (int64, error) { return 0, nil }
func (f facts) Ready(context.Context, int64) (time.Duration, error)      { return 0, nil }
func (f facts) Template(context.Context, int64) (template.Template, error) {
	return template.Template{Stored: template.Published}, nil
}

// rate is the result of a run.
type rate struct{ scenario.Work }

func (r rate) String() string {
	return fmt.Sprintf("%.0f/s p50 %.1f ms p99 %.1f ms", r.PerSecond, float64(r.P50.Microseconds())/1000, float64(r.P99.Microseconds())/1000)
}

// drive claims from many callers, each claim by another user with a key.
func (b *gateBench) drive(ctx context.Context, client goredis.UniversalClient, shards, group int) (rate, error) {
	b.drop++
	if err := errors.Join(b.client.FlushDB(ctx).Err(), stack.FillShards(ctx, b.client, b.drop, shards)); err != nil {
		return rate{}, err
	}
	gate := redisgate.New(client, facts{shards}, redisgate.Options{MaxGroup: group})
	w, err := scenario.Drive(b.callers, b.lasting, func(i int64) error {
		by := user.ID(i)
		_, err := gate.Claim(ctx, claim.Request{ID: claim.ID(by), TemplateID: b.drop, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "k")})
		return err
	})
	if err != nil {
		return rate{}, fmt.Errorf("claim: %w", err)
	}
	return rate{w}, nil
}

// write writes the waiting claims into the database, with one writer per shard, and returns the
// claims per second.
func (b *gateBench) write(ctx context.Context, shards int) (float64, error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return 0, err
	}
	b.drop = t.ID - 1
	if _, err := b.drive(ctx, b.client, shards, 0); err != nil {
		return 0, err
	}
	if err := b.ActivateGate(ctx, t.ID, shards); err != nil {
		return 0, err
	}
	var written atomic.Int64
	stream := redisgate.NewStream(b.client, "bench")
	w := &gate.Writer{Stream: stream, Recorder: couponsdb.NewGateRecorder(b.DB), Wrote: func(issued, _ int) { written.Add(int64(issued)) }}
	errs, began := make([]error, shards), time.Now()
	var all sync.WaitGroup
	for shard := range shards {
		all.Go(func() {
			for n := 1; n > 0 && errs[shard] == nil; {
				n, errs[shard] = w.Step(ctx, t.ID, shard)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	var coupons, settled int64
	if err := b.SQL.QueryRow(ctx, `select (select count(*) from coupons where template_id = $1), (select sum(settled) from gate_shards where template_id = $1)`,
		t.ID).Scan(&coupons, &settled); err != nil {
		return 0, err
	}
	if coupons != written.Load() || settled != coupons {
		return 0, fmt.Errorf("%d claims written, %d settled, %d coupons", written.Load(), settled, coupons)
	}
	return float64(coupons) / took.Seconds(), nil
}
