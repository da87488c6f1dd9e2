// Package qualify measures POST /coupons/qualify over HTTP: users with 30 coupons of 30 drops, and orders
// of 20 lines. The comparison is a server that parses and answers the same requests without coupons.
//
//	go tool task bench:qualify
package qualify

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/lookup"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/cart"
	"dropbell/domain/user"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/serve"
	"dropbell/lab/bench/stack"
	"dropbell/web/api/coupons"
)

const (
	key   = "dbk_benchmarkofqualifybenchmarks"
	drops = cart.MaxCandidates
	lines = 20
	// goal is the aim for the 99th percentile of an answer.
	goal = 10 * time.Millisecond
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs, bin := f.CallersInTurn("1,16,256"), f.Lasting(5), f.Runs(3), f.Bin()
	users := f.Int("users", 2_000, "users with coupons")
	serving := f.String("serve", "", "internal: be the server that only `parses`, or `remembers` the coupons of one user")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := bench{Stack: s, lasting: *lasting, users: int64(*users)}
		return b.run(ctx, *bin, *callers, *runs)
	})
	return func(ctx context.Context) error {
		if *serving != "" {
			return answer(*serving == "remembers")
		}
		return measure(ctx)
	}
}

type bench struct {
	*stack.Stack
	lasting time.Duration
	users   int64
}

func (b *bench) run(ctx context.Context, bin string, callers scenario.Numbers, runs int) error {
	if err := b.fill(ctx); err != nil {
		return err
	}
	web, err := b.StartBuilt(ctx, bin, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer web.Stop()
	parser, err := scenario.Serve(ctx, []string{"DATABASE_URL=" + b.PostgresURL}, "qualify", "-serve", "parses")
	if err != nil {
		return err
	}
	defer parser.Stop()
	memory, err := scenario.Serve(ctx, []string{"DATABASE_URL=" + b.PostgresURL}, "qualify", "-serve", "remembers")
	if err != nil {
		return err
	}
	defer memory.Stop()
	for _, c := range callers {
		var ratios, ofMemory []float64
		for range runs {
			parsed, err := b.measured(parser.Ready, c)
			if err != nil {
				return err
			}
			remembered, err := b.measured(memory.Ready, c)
			if err != nil {
				return err
			}
			done, err := b.measured(web.Addr, c)
			if err != nil {
				return err
			}
			fmt.Printf("%d callers: parsed %7.0f/s p99 %s; without a database %7.0f/s; qualify %7.0f/s p50 %s p99 %s (aim of one caller: p99 %s)\n", c, parsed.PerSecond, parsed.P99.Round(10*time.Microsecond),
				remembered.PerSecond, done.PerSecond, done.P50.Round(10*time.Microsecond), done.P99.Round(10*time.Microsecond), goal)
			ratios, ofMemory = append(ratios, done.PerSecond/parsed.PerSecond), append(ofMemory, done.PerSecond/remembered.PerSecond)
		}
		fmt.Printf("%d callers: %s of a parsed request; %s of an answer without a database\n", c, stack.Spread(ratios), stack.Spread(ofMemory))
	}
	return nil
}

// fill gives each user a coupon of each drop: amounts off, thresholds and percentages, of products and of the
// whole shop, in three groups that go together.
func (b *bench) fill(ctx context.Context) error {
	var ids []int64
	for range drops {
		t, err := b.Drop(ctx, time.Hour)
		if err != nil {
			return err
		}
		ids = append(ids, t.ID)
	}
	for _, sql := range []string{
		`update templates t set stack_group = 'g' || d.n % 3, stacks_with = array_to_string(array(select 'g' || g from generate_series(0, 2) g where g <> d.n % 3), ' '),
			kind = case when d.n % 3 = 0 then 'percent_off' when d.n % 3 = 1 then 'threshold_off' else 'amount_off' end,
			amount_off = case when d.n % 3 = 0 then 0 else 500 + 37 * d.n end, threshold = case when d.n % 3 = 1 then 5000 + 1000 * d.n else 0 end,
			percent_off = case when d.n % 3 = 0 then 5 + d.n % 7 else 0 end, max_off = case when d.n % 3 = 0 then 4000 else 0 end,
			target = case when d.n % 5 = 0 then 'product' else 'shop' end, product = case when d.n % 5 = 0 then 'p' || d.n % 4 else '' end
		from unnest($1::bigint[]) with ordinality d (id, n) where t.id = d.id and $2 > 0`,
		`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
			select d.id, u, u * 100 + d.n, 'claim', now(), now() + interval '1 day' from generate_series(1, $2) u, unnest($1::bigint[]) with ordinality d (id, n)`,
	} {
		if _, err := b.SQL.Exec(ctx, sql, ids, b.users); err != nil {
			return err
		}
	}
	_, err := b.SQL.Exec(ctx, `vacuum analyze coupons`)
	return err
}

func (b *bench) measured(addr string, callers int) (load.Result, error) {
	var order strings.Builder
	for i := range lines {
		fmt.Fprintf(&order, `,{"id":"%d","product":"p%d","quantity":2,"amount":%d}`, i, i%6, 1500+131*i)
	}
	body := `","order":{"currency":"CNY","lines":[` + order.String()[1:] + `]}}`
	r, err := load.Run(load.Plan{Addr: addr, Connections: callers, Warmup: time.Second, Duration: b.lasting, Expect: []int{http.StatusOK},
		Request: func(buf []byte, i int64) []byte {
			return load.Post(buf, "/api/v1/coupons/qualify", key, "", `{"user_id":"`+strconv.FormatInt(1+i%b.users, 10)+body)
		}})
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d requests failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	return r, err
}

// answering are the coupons of every user, without a database.
type answering []cart.Owned

func (a answering) Owned(context.Context, user.ID, []int64, int) ([]cart.Owned, time.Time, error) {
	return a, time.Now(), nil
}

// answer serves the requests without reading coupons. Without remembers no user has any.
func answer(remembers bool) error {
	return serve.Coupons("qualify", func(ctx context.Context, db *postgres.DB) (d coupons.Deps, err error) {
		templates, err := lookup.New(dropsdb.NewTemplates(db), time.Now)
		var own answering
		if err == nil && remembers {
			carts := couponsdb.NewCarts(db, postgres.Grouping{})
			defer carts.Close()
			own, _, err = carts.Owned(ctx, 1, nil, drops)
		}
		return coupons.Deps{Carts: &cart.Service{Store: own, Templates: templates}}, err
	})
}
