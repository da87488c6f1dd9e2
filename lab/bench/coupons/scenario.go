// Package coupons measures payment: how many coupons per second are locked for an order and
// confirmed, through the store that payment calls and over HTTP, on one drop and on several. The
// comparisons are bare updates that are grouped as the product's steps are, the same with the
// lines of the log and the event that no product can leave out, two bare updates of each coupon
// alone, and a server that parses and answers the same requests without a store. A
// worker counts the steps meanwhile. Every run ends with a count of the rows in coupons and log,
// and with the time until the tallies hold them.
//
//	go tool task bench:coupons
package coupons

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/cell"
	"dropbell/domain/coupon"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs, bin := f.CallersInTurn("1,16,256"), f.Lasting(5), f.Runs(3), f.Bin()
	drops := f.Numbers("drops", "1,50", "drops of the coupons, in turn")
	n := f.Int("n", 100_000, "coupons to begin with")
	serving := f.Bool("serve", false, "internal: be the server that only parses")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := bench{Stack: s, lasting: *lasting, n: int64(*n), bin: *bin}
		return b.run(ctx, *drops, *callers, *runs)
	})
	return func(ctx context.Context) error {
		if *serving {
			return answer()
		}
		return measure(ctx)
	}
}

type bench struct {
	*stack.Stack
	lasting     time.Duration
	n           int64
	first       int64 // the id before the first coupon: ids of a cell are cell.Count apart
	bin         string
	pool        *pgxpool.Pool // as many connections as the store has
	web, worker *stack.Process
	parser      *scenario.Server
}

// payer locks a coupon for an order and confirms it.
type payer func(ctx context.Context, id int64, order string) error

// result has the measurements of one run. A pair is a lock and its confirmation; p50 and p99
// are of a pair, or of one of its requests over HTTP.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	// counted is how long after the last payment the tallies had all steps; -1 = not measured.
	counted time.Duration
	spent   string // processor time per pair
	// parsed is how many pairs a server without a store answered, warm-up included.
	parsed int
}

func (r result) String() string {
	s := fmt.Sprintf("%7.0f/s  p50 %8s  p99 %8s", r.perSecond, r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond))
	if r.counted >= 0 {
		s += fmt.Sprintf("  counted after %.2f s", r.counted.Seconds())
	}
	return s + r.spent
}

const key = "dbk_benchmarkofpaymentsbenchmark"

func (b *bench) run(ctx context.Context, drops, callers scenario.Numbers, runs int) (err error) {
	cfg, err := pgxpool.ParseConfig(b.PostgresURL)
	if err != nil {
		return err
	}
	cfg.MaxConns = 24
	if b.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	defer b.pool.Close()
	if b.web, err = b.StartBuilt(ctx, b.bin, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=warn"); err != nil {
		return err
	}
	defer b.web.Stop()
	if b.worker, err = b.StartBuilt(ctx, b.bin, "worker", "LOG_LEVEL=warn"); err != nil {
		return err
	}
	defer b.worker.Stop()
	if b.parser, err = scenario.Serve(ctx, []string{"DATABASE_URL=" + b.PostgresURL}, "coupons", "-serve"); err != nil {
		return err
	}
	defer b.parser.Stop()
	for _, d := range drops {
		var templates []int64
		for range d {
			t, err := b.Drop(ctx, time.Hour)
			if err != nil {
				return err
			}
			templates = append(templates, t.ID)
		}
		for _, c := range callers {
			if err := b.compare(ctx, templates, c, runs); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare measures everything with so many callers, in turns, and prints it.
func (b *bench) compare(ctx context.Context, templates []int64, callers, runs int) error {
	const two, grouped, logged, parsed = "two bare updates", "bare grouped updates", "with log and event", "HTTP, parsed only"
	inGroups := func(lock, confirm string) func(context.Context) (result, error) {
		return func(ctx context.Context) (result, error) {
			g := newGroupedUpdates(ctx, b.pool, lock, confirm)
			defer g.close()
			return b.direct(callers, g.pay)(ctx)
		}
	}
	list := []struct {
		name  string
		do    func(context.Context) (result, error)
		pays  bool
		peers []string
	}{
		{two, b.direct(callers, lonely(b.pool)), false, nil},
		{grouped, inGroups(lockSQL, confirmSQL), false, nil},
		{logged, inGroups(lockLoggedSQL, confirmLoggedSQL), false, nil},
		{"lock and confirm", func(ctx context.Context) (result, error) {
			payments := couponsdb.NewPayments(b.DB, postgres.Grouping{})
			defer payments.Close()
			return b.direct(callers, lockAndConfirm(payments))(ctx)
		}, true, []string{two, grouped, logged}},
		{parsed, func(ctx context.Context) (result, error) {
			r, err := b.http(callers, b.parser.Ready)(ctx)
			r.parsed = int(r.perSecond * (warmup + b.lasting).Seconds())
			return r, err
		}, false, nil},
		{"HTTP, lock and confirm", b.http(callers, b.web.Addr), true, []string{parsed}},
	}
	ratios := map[string][]float64{}
	for range runs {
		fmt.Printf("%d drops, %d callers\n", len(templates), callers)
		seen := map[string]float64{}
		for _, m := range list {
			r, err := b.measured(ctx, templates, m.pays, m.do)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			seen[m.name] = r.perSecond
			fmt.Printf("  %-22s %s\n", m.name, r)
			for _, peer := range m.peers {
				ratios[m.name+" / "+peer] = append(ratios[m.name+" / "+peer], r.perSecond/seen[peer])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		fmt.Printf("%d drops, %d callers: %s: %s\n", len(templates), callers, stack.Spread(ratios[name]), name)
	}
	return nil
}

// measured starts from unused coupons of the drops and checks the rows afterwards.
func (b *bench) measured(ctx context.Context, templates []int64, pays bool, do func(context.Context) (result, error)) (result, error) {
	if err := b.fresh(ctx, templates); err != nil {
		return result{}, err
	}
	before, err := b.spenders(ctx)
	if err != nil {
		return result{}, err
	}
	r, err := do(ctx)
	if r.counted = -1; err != nil {
		return r, err
	}
	if pays {
		if r.counted, err = b.counted(ctx); err != nil {
			return r, err
		}
	}
	after, err := b.spenders(ctx)
	if err != nil {
		return r, err
	}
	var used, locked, logged int
	if err := b.SQL.QueryRow(ctx, `select count(*) filter (where state = 'used'), count(*) filter (where state = 'locked'),
		(select count(*) from coupon_operations where outcome = 'done') from coupons`).Scan(&used, &locked, &logged); err != nil {
		return r, err
	}
	if pays && logged != 2*used+locked {
		return r, fmt.Errorf("%d lines in the log of %d used and %d locked coupons", logged, used, locked)
	}
	if pairs := max(used+locked/2, r.parsed); pairs > 0 {
		r.spent = spentEach(before, after, pairs)
	}
	return r, nil
}

// fresh makes unused coupons of the drops, in turns, once the worker has counted all steps before.
func (b *bench) fresh(ctx context.Context, templates []int64) error {
	for _, sql := range []string{`truncate coupons, coupon_operations, coupon_tallies, sale_hours`, `vacuum analyze coupon_operations`} {
		if _, err := b.SQL.Exec(ctx, sql); err != nil {
			return err
		}
	}
	_, err := b.SQL.Exec(ctx, `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		select ($1::bigint[])[1 + n % cardinality($1)], n, n, 'claim', now(), now() + interval '1 day' from generate_series(1, $2) n`, templates, b.n)
	if err == nil {
		_, err = b.SQL.Exec(ctx, `update templates t set issued = c.n from (select template_id, count(*) as n from coupons group by 1) c where t.id = c.template_id`)
	}
	if err == nil {
		err = b.SQL.QueryRow(ctx, `select min(id) - $1 from coupons`, cell.Count).Scan(&b.first)
	}
	for _, sql := range []string{`vacuum analyze coupons`, `checkpoint`} {
		if err == nil {
			_, err = b.SQL.Exec(ctx, sql)
		}
	}
	return err
}

// counted waits until the tallies hold every coupon and returns how long that took.
func (b *bench) counted(ctx context.Context) (time.Duration, error) {
	start := time.Now()
	var used, locked int64
	if err := b.SQL.QueryRow(ctx, `select count(*) filter (where state = 'used'), count(*) filter (where state = 'locked') from coupons`).Scan(&used, &locked); err != nil {
		return 0, err
	}
	err := stack.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		var u, l, orders int64
		err := b.SQL.QueryRow(ctx, `select coalesce(sum(used), 0), coalesce(sum(locked), 0), (select coalesce(sum(orders), 0) from sale_hours) from coupon_tallies`).Scan(&u, &l, &orders)
		return u == used && l == locked && orders == used, err
	})
	return time.Since(start), err
}

// direct pays for one coupon after another, from many callers, until the time is over.
func (b *bench) direct(callers int, pay payer) func(context.Context) (result, error) {
	return func(ctx context.Context) (result, error) {
		w, err := scenario.Drive(callers, b.lasting, func(i int64) error {
			if i > b.n {
				return fmt.Errorf("%d coupons are not enough; ask for more with -n", b.n)
			}
			return pay(ctx, b.first+i*cell.Count, "order-"+strconv.FormatInt(i, 10))
		})
		return result{perSecond: w.PerSecond, p50: w.P50, p99: w.P99}, err
	}
}

// lockAndConfirm pays as the product does.
func lockAndConfirm(store coupon.Store) payer {
	steps := &coupon.Service{Store: store, LockFor: time.Hour}
	return func(ctx context.Context, id int64, order string) error {
		if _, err := steps.Lock(ctx, "bench", id, coupon.Order{ID: order, Amount: 1_000_000}); err != nil {
			return err
		}
		_, err := steps.Confirm(ctx, "bench", id, order)
		return err
	}
}

// behind is how many coupons a confirmation over HTTP is behind the newest lock: more than the
// connections, so that its lock was answered.
const behind = 4096

const warmup = time.Second

// http pays over HTTP. Each second request confirms the coupon that was locked long enough
// before; at the beginning it locks another coupon instead.
func (b *bench) http(callers int, addr string) func(context.Context) (result, error) {
	return func(ctx context.Context) (result, error) {
		r, err := load.Run(load.Plan{Addr: addr, Connections: callers, Warmup: warmup, Duration: b.lasting, Expect: []int{http.StatusOK},
			Request: func(buf []byte, i int64) []byte {
				n, step, body := i/2+1, "lock", `,"order_amount":1000000}`
				switch {
				case i%2 == 1 && n > behind:
					n, step, body = n-behind, "confirm", `}`
				case i%2 == 1:
					n += b.n - behind
				}
				id := strconv.FormatInt(b.first+n*cell.Count, 10)
				return load.Post(buf, "/api/v1/coupons/"+id+"/"+step, key, "", `{"order_id":"order-`+id+`"`+body)
			}})
		if err == nil && r.Failures > 0 {
			err = fmt.Errorf("%d of %d requests failed, one with %s", r.Failures, r.Requests, r.Example)
		}
		return result{perSecond: r.PerSecond / 2, p50: r.P50, p99: r.P99}, err
	}
}

// spenders returns the processor time used so far by each of the names in spenderNames.
func (b *bench) spenders(ctx context.Context) (list [6]time.Duration, err error) {
	var errs [6]error
	list[0], errs[0] = b.web.CPU()
	list[1], errs[1] = b.worker.CPU()
	list[2], errs[2] = b.parser.CPU()
	list[3], errs[3] = b.PostgresCPU(ctx)
	list[4], errs[4] = b.RedisCPU(ctx)
	list[5], errs[5] = stack.CPUOf(os.Getpid())
	return list, errors.Join(errs[:]...)
}

var spenderNames = [6]string{"web", "worker", "parser", "PostgreSQL", "Redis", "load"}

// spentEach describes the processor time per pair, in microseconds, for n pairs.
func spentEach(before, after [6]time.Duration, n int) string {
	var list []string
	for i, name := range spenderNames {
		if each := float64((after[i] - before[i]).Nanoseconds()) / 1000 / float64(n); each >= 0.5 {
			list = append(list, fmt.Sprintf("%s %.0f", name, each))
		}
	}
	return "  us of a processor: " + strings.Join(list, ", ")
}
