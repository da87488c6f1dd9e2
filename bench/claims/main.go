// Claims measures the durable gate on one hot template: claims per second of
// many callers through the gate and through HTTP, against the bare grouped
// insert and against one transaction per claim. Every run ends with an audit
// of the stock ledger.
//
//	go run ./bench/claims
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/bench/load"
	"dropbell/bench/stack"
	"dropbell/domain/claim"
	"dropbell/domain/user"
)

func main() {
	callers := flag.String("callers", "64,256,1024", "concurrent callers, separated by commas")
	seconds := flag.Int("seconds", 5, "seconds per measurement")
	runs := flag.Int("runs", 3, "repetitions")
	group := flag.Int("group", 0, "claims per transaction at most, 0 = what the product uses")
	workers := flag.Int("workers", 0, "transactions in flight, 0 = what the product uses")
	flag.Parse()
	b := bench{lasting: time.Duration(*seconds) * time.Second, grouping: postgres.Grouping{MaxGroup: *group, Workers: *workers}}
	if err := b.run(context.Background(), *callers, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const stock = 1_000_000_000

type bench struct {
	*stack.Stack
	lasting  time.Duration
	grouping postgres.Grouping
	template int64
	web      *stack.Process
}

// result is what one measurement showed.
type result struct {
	perSecond float64
	p50, p99  time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("%8.0f/s  p50 %7s  p99 %7s", r.perSecond, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond))
}

func (b *bench) run(ctx context.Context, callers string, runs int) (err error) {
	if b.Stack, err = stack.Start(ctx); err != nil {
		return err
	}
	defer b.Close()
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return err
	}
	b.template = t.ID
	const key = "dbk_benchmarkofclaimsbenchmark"
	if b.web, err = b.StartProgram(ctx, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=warn"); err != nil {
		return err
	}
	defer b.web.Stop()
	fmt.Println(stack.Machine(ctx, b.Stack))
	for _, word := range strings.Split(callers, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-callers: %q is not a number of callers", word)
		}
		var ofFloor, ofSingle []float64
		for range runs {
			floor, err := b.measured(ctx, b.floor)
			gate, err2 := b.measured(ctx, func(ctx context.Context) (result, error) { return b.gate(ctx, b.grouping, n) })
			single, err3 := b.measured(ctx, func(ctx context.Context) (result, error) {
				return b.gate(ctx, postgres.Grouping{Workers: 16, MaxGroup: 1}, n)
			})
			http, err4 := b.measured(ctx, func(context.Context) (result, error) { return b.http(key, n) })
			if err := errors.Join(err, err2, err3, err4); err != nil {
				return err
			}
			ofFloor, ofSingle = append(ofFloor, gate.perSecond/floor.perSecond), append(ofSingle, gate.perSecond/single.perSecond)
			fmt.Printf("%5d callers\n  bare grouped insert        %8.0f/s\n  gate                       %s\n  one transaction per claim  %s\n  over HTTP                  %s\n",
				n, floor.perSecond, gate, single, http)
		}
		fmt.Printf("%5d callers: median gate/bare %.2f, gate/single %.1f\n", n, stack.Median(ofFloor), stack.Median(ofSingle))
	}
	return nil
}

// measured starts from an open, unsold template and audits it afterwards.
func (b *bench) measured(ctx context.Context, do func(context.Context) (result, error)) (result, error) {
	if _, err := b.SQL.Exec(ctx, `truncate coupons, claim_counts, claim_seconds, outbox`); err != nil {
		return result{}, err
	}
	if _, err := b.SQL.Exec(ctx, `update templates set issued = 0, stock = $2, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`,
		b.template, stock); err != nil {
		return result{}, err
	}
	r, err := do(ctx)
	if err != nil {
		return r, err
	}
	l, err := postgres.NewLedgers(b.DB).Ledger(ctx, b.template)
	if err == nil && l.Difference() != 0 {
		err = fmt.Errorf("the ledger is off by %d: %+v", l.Difference(), l)
	}
	return r, err
}

// gate claims from many callers, each time as another user.
func (b *bench) gate(ctx context.Context, g postgres.Grouping, callers int) (result, error) {
	gate := postgres.NewClaims(b.DB, g)
	defer gate.Close()
	var next atomic.Int64
	until := time.Now().Add(b.lasting)
	took, errs := make([][]time.Duration, callers), make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for begin := time.Now(); begin.Before(until); begin = time.Now() {
				r := claim.Request{ID: claim.NewID(rand.Uint64()), TemplateID: b.template, UserID: user.ID(next.Add(1)), Origin: claim.ByTap}
				r.Key = claim.TapKey(r.UserID, "k")
				if _, errs[i] = gate.Claim(ctx, r); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	all.Wait()
	times := slices.Concat(took...)
	slices.Sort(times)
	if err := errors.Join(errs...); err != nil || len(times) == 0 {
		return result{}, fmt.Errorf("claim: %w", err)
	}
	return result{float64(len(times)) / b.lasting.Seconds(), times[len(times)/2], times[len(times)*99/100]}, nil
}

// http claims through the whole server, with an idempotency key each.
func (b *bench) http(key string, callers int) (result, error) {
	r, err := load.Run(load.Plan{Addr: b.web.Addr, Connections: callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{201},
		Request: func(buf []byte, i int64) []byte {
			body := fmt.Sprintf(`{"template_id":"%d"}`, b.template)
			return fmt.Appendf(buf, "POST /api/v1/claims HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer %s\r\nX-User-ID: %d\r\n"+
				"Idempotency-Key: %d\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, i+1, i, len(body), body)
		}})
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d requests failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	return result{r.PerSecond, r.P50, r.P99}, err
}

// floor is the least a group could do: insert 256 coupons with their counts,
// twice at a time, without deciding, locking or answering anybody.
func (b *bench) floor(ctx context.Context) (result, error) {
	var next atomic.Int64
	until := time.Now().Add(b.lasting)
	errs := make([]error, 2)
	var all sync.WaitGroup
	for w := range errs {
		all.Go(func() {
			for time.Now().Before(until) && errs[w] == nil {
				errs[w] = b.insert(ctx, next.Add(256)-256)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	// So that the audit, which this is not about, finds what it expects.
	_, err := b.SQL.Exec(ctx, `update templates set issued = $2 where id = $1`, b.template, next.Load())
	return result{perSecond: float64(next.Load()) / b.lasting.Seconds()}, err
}

func (b *bench) insert(ctx context.Context, after int64) error {
	users, ids, keys := make([]int64, 256), make([]int64, 256), make([]string, 256)
	for i := range users {
		users[i], ids[i] = after+int64(i)+1, int64(claim.NewID(rand.Uint64()))
		keys[i] = claim.TapKey(user.ID(users[i]), "k")
	}
	_, err := b.SQL.Exec(ctx, `
		with counted as (
			insert into claim_counts (template_id, user_id, issued) select $1, u, 1 from unnest($2::bigint[]) u
		)
		insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		select $1, u, c, 'claim', k, now(), now() + interval '1 day' from unnest($2::bigint[], $3::bigint[], $4::text[]) as a (u, c, k)`,
		b.template, users, ids, keys)
	return err
}
