// Package claims measures claims per second of many callers on one hot template. The durable
// gate is measured directly and over HTTP. The comparisons are the bare grouped insert, one
// transaction per claim, a server that parses and answers the same requests without a store, and
// a server that makes a bare insert for them. Claims over HTTP that the Redis gate accepts are
// measured too. Every run of the durable gate ends with an audit of the stock ledger.
//
//	go tool task bench:claims
package claims

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim"
	"dropbell/domain/user"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.CallersInTurn("64,256,1024"), f.Lasting(5), f.Runs(3)
	group := f.Int("group", 0, "claims per transaction at most, 0 = what the product uses")
	workers := f.Int("workers", 0, "transactions in flight, 0 = what the product uses")
	web := f.Bool("http", false, "only over HTTP")
	bin := f.Bin()
	only := f.String("only", "", "names of measurements, separated by semicolons; empty = all")
	serving := f.String("serve", "", "internal: be the server that only parses, or inserts as well")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := bench{Stack: s, lasting: *lasting, grouping: postgres.Grouping{MaxGroup: *group, Workers: *workers}, httpOnly: *web, bin: *bin,
			only: strings.FieldsFunc(*only, func(r rune) bool { return r == ';' })}
		return b.run(ctx, *callers, *runs)
	})
	return func(ctx context.Context) error {
		if *serving != "" {
			return answer(*serving == inserts)
		}
		return measure(ctx)
	}
}

const stock = 1_000_000_000

type bench struct {
	*stack.Stack
	lasting  time.Duration
	grouping postgres.Grouping
	httpOnly bool
	template int64
	web      *stack.Process
	parser   *scenario.Server
	inserter *scenario.Server
	bin      string
	only     []string // names of measurements; empty = all
}

// result has the measurements of one run.
type result struct {
	perSecond float64
	p50, p99  time.Duration
	group     float64 // claims per transaction, if known
	spent     string  // processor time per request, if known
}

func (r result) String() string {
	s := fmt.Sprintf("%8.0f/s", r.perSecond)
	if r.p50 > 0 {
		s += fmt.Sprintf("  p50 %7s  p99 %7s", r.p50.Round(10*time.Microsecond), r.p99.Round(10*time.Microsecond))
	}
	if r.group > 0 {
		s += fmt.Sprintf("  %5.1f in a transaction", r.group)
	}
	return s + r.spent
}

func (b *bench) run(ctx context.Context, callers []int, runs int) (err error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return err
	}
	b.template = t.ID
	const key = "dbk_benchmarkofclaimsbenchmark"
	if b.web, err = b.StartBuilt(ctx, b.bin, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=warn", "PASS_SECRET="+passSecret); err != nil {
		return err
	}
	defer b.web.Stop()
	database := []string{"DATABASE_URL=" + b.PostgresURL}
	if b.parser, err = scenario.Serve(ctx, database, "claims", "-serve", parses); err != nil {
		return err
	}
	defer b.parser.Stop()
	if b.inserter, err = scenario.Serve(ctx, database, "claims", "-serve", inserts); err != nil {
		return err
	}
	defer b.inserter.Stop()
	for _, n := range callers {
		if err := b.compare(ctx, key, n, runs); err != nil {
			return err
		}
	}
	return nil
}

// compare measures everything with so many callers, in turns, and prints it.
func (b *bench) compare(ctx context.Context, key string, callers, runs int) error {
	over := func(addr string) func(context.Context) (result, error) {
		return func(ctx context.Context) (result, error) {
			return b.http(ctx, addr, key, plain(b.template), callers, http.StatusCreated)
		}
	}
	type measurement struct {
		name string
		do   func(context.Context) (result, error)
		of   []string // the measurements that it is a part of
	}
	list := []measurement{
		{"bare grouped insert", b.floor, nil},
		{"one transaction per claim", func(ctx context.Context) (result, error) {
			return b.gate(ctx, postgres.Grouping{Workers: 16, MaxGroup: 1}, callers)
		}, nil},
		{"gate", func(ctx context.Context) (result, error) { return b.gate(ctx, b.grouping, callers) }, []string{"bare grouped insert", "one transaction per claim"}},
	}
	const parsed, inserted = "HTTP, parsed only", "HTTP, bare insert"
	if b.httpOnly {
		list = nil
	}
	list = append(list, measurement{parsed, over(b.parser.Ready), nil},
		measurement{inserted, func(ctx context.Context) (result, error) {
			r, err := over(b.inserter.Ready)(ctx)
			return r, errors.Join(err, b.count(ctx))
		}, []string{parsed}},
		measurement{"HTTP, claimed", over(b.web.Addr), []string{parsed, inserted}},
		measurement{"HTTP, claimed with passes", func(ctx context.Context) (result, error) { return b.passed(ctx, key, callers) }, []string{"HTTP, claimed"}},
		measurement{"HTTP, accepted by Redis", func(ctx context.Context) (result, error) { return b.accepted(ctx, key, callers) }, []string{parsed}},
		measurement{"HTTP, sold out", func(ctx context.Context) (result, error) { return b.soldOut(ctx, key, callers) }, []string{parsed}})
	if len(b.only) > 0 {
		list = slices.DeleteFunc(list, func(m measurement) bool { return !slices.Contains(b.only, m.name) })
	}
	if len(list) < len(b.only) {
		return fmt.Errorf("-only: not all of %q are measurements", b.only)
	}
	ratios := map[string][]float64{}
	for range runs {
		seen := map[string]result{}
		fmt.Printf("%5d callers\n", callers)
		for _, m := range list {
			r, err := b.measured(ctx, m.do)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			seen[m.name] = r
			fmt.Printf("  %-26s %s\n", m.name, r)
			for _, peer := range m.of {
				if seen[peer].perSecond == 0 {
					continue // not among those asked for
				}
				ratios[m.name+" / "+peer] = append(ratios[m.name+" / "+peer], r.perSecond/seen[peer].perSecond)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		fmt.Printf("%5d callers: %s: %s\n", callers, stack.Spread(ratios[name]), name)
	}
	return nil
}

// measured starts from an open, unsold template and audits it afterwards.
func (b *bench) measured(ctx context.Context, do func(context.Context) (result, error)) (result, error) {
	if _, err := b.SQL.Exec(ctx, `truncate coupons, claim_counts, claim_seconds, claim_signs, outbox`); err != nil {
		return result{}, err
	}
	if _, err := b.SQL.Exec(ctx, `update templates set issued = 0, stock = $2, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`,
		b.template, stock); err != nil {
		return result{}, err
	}
	// Pages written before are not to be written back meanwhile, and their log is written again.
	if _, err := b.SQL.Exec(ctx, `checkpoint`); err != nil {
		return result{}, err
	}
	r, err := do(ctx)
	if err != nil {
		return r, err
	}
	l, err := couponsdb.NewLedgers(b.DB).Ledger(ctx, b.template)
	if err == nil && l.Difference() != 0 {
		err = fmt.Errorf("the ledger is off by %d: %+v", l.Difference(), l)
	}
	return r, err
}

// gate claims from many callers, each time as another user.
func (b *bench) gate(ctx context.Context, g postgres.Grouping, callers int) (result, error) {
	var groups, grouped atomic.Int64
	g.Observe = func(size int, _ time.Duration) { groups.Add(1); grouped.Add(int64(size)) }
	gate := couponsdb.NewClaims(b.DB, g)
	defer gate.Close()
	w, err := scenario.Drive(callers, b.lasting, func(i int64) error {
		r := claim.Request{ID: claim.NewID(rand.Uint64(), b.template), TemplateID: b.template, UserID: user.ID(i), Origin: claim.ByTap}
		r.Key = claim.TapKey(r.UserID, "k")
		_, err := gate.Claim(ctx, r)
		return err
	})
	if err != nil {
		return result{}, fmt.Errorf("claim: %w", err)
	}
	return result{perSecond: w.PerSecond, p50: w.P50, p99: w.P99, group: float64(grouped.Load()) / float64(max(1, groups.Load()))}, nil
}

// plain is the body of a claim in a drop without protection.
func plain(template int64) func(i int64) string {
	body := fmt.Sprintf(`{"template_id":"%d"}`, template)
	return func(int64) string { return body }
}

// http claims over HTTP, with an idempotency key each.
func (b *bench) http(ctx context.Context, addr, key string, body func(i int64) string, callers, expect int) (result, error) {
	before, err := b.spent(ctx)
	grouped, groups, groupErr := b.grouped(ctx)
	if err := errors.Join(err, groupErr); err != nil {
		return result{}, err
	}
	r, err := load.Run(load.Plan{Addr: addr, Connections: callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{expect},
		Request: func(buf []byte, i int64) []byte {
			return load.Post(buf, "/api/v1/claims", key, fmt.Sprintf("X-User-ID: %d\r\nIdempotency-Key: %d\r\n", i+2, i), body(i))
		}})
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d requests failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	after, spentErr := b.spent(ctx)
	groupedAfter, groupsAfter, groupErr := b.grouped(ctx)
	return result{perSecond: r.PerSecond, p50: r.P50, p99: r.P99, group: (groupedAfter - grouped) / max(1, groupsAfter-groups),
		spent: spentEach(before, after, r.All)}, errors.Join(err, spentErr, groupErr)
}

// grouped returns how many claims the durable gate of web has decided so far, and in how many
// transactions.
func (b *bench) grouped(ctx context.Context) (claims, groups float64, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.web.Addr+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "dropbell_claim_group_size_sum "); ok {
			claims, err = strconv.ParseFloat(v, 64)
		} else if v, ok := strings.CutPrefix(lines.Text(), "dropbell_claim_group_size_count "); ok {
			groups, err = strconv.ParseFloat(v, 64)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	return claims, groups, lines.Err()
}

// spent returns the processor time used so far by each of [spenders], in their order.
func (b *bench) spent(ctx context.Context) (list [6]time.Duration, err error) {
	var errs [6]error
	list[0], errs[0] = b.web.CPU()
	list[1], errs[1] = b.parser.CPU()
	list[2], errs[2] = b.PostgresCPU(ctx)
	list[3], errs[3] = b.RedisCPU(ctx)
	list[4], errs[4] = stack.CPUOf(os.Getpid())
	list[5], errs[5] = b.inserter.CPU()
	return list, errors.Join(errs[:]...)
}

var spenders = [6]string{"web", "parser", "PostgreSQL", "Redis", "load", "inserter"}

// spentEach describes the processor time per request, in microseconds, for n requests.
func spentEach(before, after [6]time.Duration, n int64) string {
	s, separator := "", "  us of a processor: "
	for i, name := range spenders {
		if each := float64((after[i] - before[i]).Nanoseconds()) / 1000 / float64(max(1, n)); each >= 0.1 {
			s += fmt.Sprintf("%s%s %.1f", separator, name, each)
			separator = ", "
		}
	}
	return s
}

// soldOut claims coupons of a drop that is sold out, once the server has noticed.
func (b *bench) soldOut(ctx context.Context, key string, callers int) (result, error) {
	if _, err := b.SQL.Exec(ctx, `
		with counted as (insert into claim_counts (template_id, user_id, issued) values ($1, 1, 1)),
			given as (insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
				values ($1, 1, 1, 'claim', 'first', now(), now() + interval '1 day'))
		update templates set stock = 1, issued = 1 where id = $1`, b.template); err != nil {
		return result{}, err
	}
	err := stack.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.web.Addr+"/api/v1/claims",
			strings.NewReader(fmt.Sprintf(`{"template_id":"%d"}`, b.template)))
		if err != nil {
			return false, err
		}
		r.Header = http.Header{"Authorization": {"Bearer " + key}, "X-User-Id": {"2"}, "Content-Type": {"application/json"}}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false, err
		}
		return answer.StatusCode == http.StatusConflict, answer.Body.Close()
	})
	if err != nil {
		return result{}, err
	}
	return b.http(ctx, b.web.Addr, key, plain(b.template), callers, http.StatusConflict)
}

// accepted claims from a new drop behind the Redis gate. No worker runs, so the accepted claims
// are not written meanwhile.
func (b *bench) accepted(ctx context.Context, key string, callers int) (result, error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return result{}, err
	}
	client, err := b.RedisClient()
	if err != nil {
		return result{}, err
	}
	defer client.Close()
	_, err = b.SQL.Exec(ctx, `update templates set claim_mode = 'gate', stock = $2, opens_at = date_trunc('second', now()) - interval '1 minute' where id = $1`, t.ID, stock)
	if err := errors.Join(err, stack.FillShards(ctx, client, t.ID, 1), b.ActivateGate(ctx, t.ID, 1)); err != nil {
		return result{}, err
	}
	r, err := b.http(ctx, b.web.Addr, key, plain(t.ID), callers, http.StatusAccepted)
	return r, errors.Join(err, client.FlushDB(ctx).Err())
}
