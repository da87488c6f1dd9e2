// Claimgate measures the claim gate: claims per second decided in Redis by one
// script call per group, against one call per claim, alone or in pipelines,
// with the log synced at every write and once a second; and how fast accepted
// claims are written to PostgreSQL, against a bare COPY of their coupons.
//
//	go -C lab run ./bench/claimgate
//
// With -refill it measures how soon after Redis was emptied a claim is accepted, for
// drops that have issued coupons.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
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
	"dropbell/lab/bench/stack"
)

func main() {
	callers := flag.Int("callers", 1024, "concurrent callers")
	shards := flag.Int("shards", 1, "shards of the grouped runs")
	seconds := flag.Int("seconds", 5, "seconds per measurement")
	runs := flag.Int("runs", 3, "repetitions")
	refills := flag.String("refill", "", "measure instead the first claim after Redis was emptied, for drops with so many issued coupons, e.g. 0,100000,1000000")
	flag.Parse()
	if *refills != "" {
		if err := refill(context.Background(), *refills, *shards, *runs); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := bench(context.Background(), *callers, *shards, time.Duration(*seconds)*time.Second, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, callers, shards int, lasting time.Duration, runs int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
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
	fmt.Println(stack.Machine(ctx, s))
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
			ratios, pipes = append(ratios, grouped.perSecond/single.perSecond), append(pipes, grouped.perSecond/pipe.perSecond)
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
func (f facts) Held(context.Context, int64, []user.ID) ([]gate.UserCount, []gate.IdempotencyRecord, error) {
	return nil, nil, nil
}
func (f facts) Ready(context.Context, int64) (time.Duration, error) { return 0, nil }
func (f facts) Template(context.Context, int64) (template.Template, error) {
	return template.Template{Stored: template.Published}, nil
}

// rate is what a run came to.
type rate struct {
	perSecond float64
	p50, p99  time.Duration
}

func (r rate) String() string {
	return fmt.Sprintf("%.0f/s p50 %.1f ms p99 %.1f ms", r.perSecond, float64(r.p50.Microseconds())/1000, float64(r.p99.Microseconds())/1000)
}

// drive claims from many callers, each claim by another user with a key.
func (b *gateBench) drive(ctx context.Context, client goredis.UniversalClient, shards, group int) (rate, error) {
	b.drop++
	if err := errors.Join(b.client.FlushDB(ctx).Err(), stack.FillShards(ctx, b.client, b.drop, shards)); err != nil {
		return rate{}, err
	}
	gate := redisgate.New(client, facts{shards}, redisgate.Options{MaxGroup: group})
	var next atomic.Int64
	var failed atomic.Value
	took := make([][]time.Duration, b.callers)
	until := time.Now().Add(b.lasting)
	var all sync.WaitGroup
	for c := range b.callers {
		all.Go(func() {
			for time.Now().Before(until) {
				by, began := user.ID(next.Add(1)), time.Now()
				_, err := gate.Claim(ctx, claim.Request{ID: claim.ID(by), TemplateID: b.drop, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "k")})
				if err != nil {
					failed.Store(err.Error())
					return
				}
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	all.Wait()
	if msg := failed.Load(); msg != nil {
		return rate{}, fmt.Errorf("claim: %v", msg)
	}
	durations := slices.Sorted(slices.Values(slices.Concat(took...)))
	n := len(durations)
	return rate{float64(n) / b.lasting.Seconds(), durations[n/2], durations[n*99/100]}, nil
}

// write brings claims that wait into the database, with as many writers as
// there are shards, and returns how many a second.
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
