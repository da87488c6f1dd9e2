// Package waitlist measures a rush in which every refused user joins the waitlist: joins over HTTP
// beside refusals for lack of stock, and then the filler, with a million users who wait.
//
//	go tool task bench:waitlist
package waitlist

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/task"
	"dropbell/domain/waitlist"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.Callers(256), f.Lasting(5), f.Runs(3)
	waiting := f.Int("waiting", 1_000_000, "users who wait when the filler begins")
	raised := f.Int("raised", 10_000, "coupons by which the stock is raised")
	bin := f.Bin()
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := bench{Stack: s, callers: *callers, lasting: *lasting, bin: *bin}
		if err := b.rush(ctx, *runs); err != nil {
			return err
		}
		return b.fill(ctx, *waiting, *raised, *runs)
	})
}

const key = "dbk_benchmarkofwaitlistsbenchmark"

type bench struct {
	*stack.Stack
	callers  int
	lasting  time.Duration
	bin      string
	template int64
	users    int64 // joined before
}

// rush compares joins with refusals, in turns.
func (b *bench) rush(ctx context.Context, runs int) error {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return err
	}
	b.template = t.ID
	if _, err := b.SQL.Exec(ctx, `update templates set waitlist = 'issue', issued = stock, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, t.ID); err != nil {
		return err
	}
	if _, err := b.SQL.Exec(ctx, `insert into waitlists (template_id) values ($1)`, t.ID); err != nil {
		return err
	}
	web, err := b.StartBuilt(ctx, b.bin, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer web.Stop()
	var ratios []float64
	for range runs {
		body := fmt.Sprintf(`{"template_id":"%d"}`, t.ID)
		refused, err := b.drive(web.Addr, http.StatusConflict, func(buf []byte, i int64) []byte {
			return load.Post(buf, "/api/v1/claims", key, fmt.Sprintf("X-User-ID: %d\r\nIdempotency-Key: %d\r\n", i+2, i), body)
		})
		if err != nil {
			return err
		}
		before := b.users
		joined, err := b.drive(web.Addr, http.StatusCreated, func(buf []byte, i int64) []byte {
			return load.Put(buf, fmt.Sprintf("/api/v1/waitlist/%d", t.ID), key, fmt.Sprintf("X-User-ID: %d\r\n", before+i+2))
		})
		if err != nil {
			return err
		}
		b.users += joined.All + int64(b.callers)
		ratios = append(ratios, joined.PerSecond/refused.PerSecond)
		fmt.Printf("%d callers: refused %8.0f/s p99 %v   joined %8.0f/s p99 %v (%.2f of it)\n", b.callers, refused.PerSecond, refused.P99, joined.PerSecond, joined.P99,
			joined.PerSecond/refused.PerSecond)
	}
	fmt.Printf("%s: joined / refused\n", stack.Spread(ratios))
	return nil
}

func (b *bench) drive(addr string, expect int, request func(buf []byte, i int64) []byte) (load.Result, error) {
	r, err := load.Run(load.Plan{Addr: addr, Connections: b.callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{expect}, Request: request})
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d requests failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	return r, err
}

// silent is a queue that nothing reads.
type silent struct{}

func (silent) Enqueue(context.Context, ...task.Task) error { return nil }

// fill raises the stock of a drop for which so many users wait, and gives all of it.
func (b *bench) fill(ctx context.Context, waiting, raised, runs int) error {
	lists := couponsdb.NewWaitlists(b.DB, postgres.Grouping{})
	defer lists.Close()
	for range runs {
		_, err := b.SQL.Exec(ctx, `truncate waiters, coupons, claim_counts, claim_seconds, outbox, batches, announcements cascade`)
		if err == nil {
			_, err = b.SQL.Exec(ctx, `insert into waiters (template_id, user_id, joined_at) select $1::bigint, $2::bigint - n, now() + n * interval '1 microsecond' from generate_series(1, $2::bigint - 1) n`,
				b.template, waiting+1)
		}
		if err == nil {
			_, err = b.SQL.Exec(ctx, `update waitlists set joined = $2, waiting = $2, filled = 0, skipped = 0, "left" = 0, put = $3, released = 0 where template_id = $1`, b.template, waiting, raised)
		}
		if err == nil {
			_, err = b.SQL.Exec(ctx, `update templates set issued = stock - $2, held = $2 where id = $1`, b.template, raised)
		}
		if err == nil {
			_, err = b.SQL.Exec(ctx, `vacuum (analyze) waiters`)
		}
		if err != nil {
			return err
		}
		given := 0
		filler := waitlist.Filler{Store: lists, Queue: silent{}, Done: func(_ int64, f waitlist.Filling) { given += f.Filled }}
		began := time.Now()
		if err := filler.Sweep(ctx); err != nil {
			return err
		}
		fmt.Printf("%d users wait: %d coupons given in %v\n", waiting, given, time.Since(began).Round(time.Millisecond))
		if given != raised {
			return errors.New("not all stock was given")
		}
	}
	return nil
}
