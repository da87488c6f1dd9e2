// Package coupons measures payment: how many coupons per second are locked for an order and
// confirmed, through the use case that payment calls. The comparison is the bare pair of
// statements that any implementation needs. Every run ends with a count of the rows in coupons,
// log and outbox.
//
//	go tool task bench:coupons
package coupons

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/coupon"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	callers, lasting, runs := f.CallersInTurn("16,64,256"), f.Lasting(5), f.Runs(3)
	n := f.Int("n", 200_000, "coupons to begin with")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := bench{Stack: s, lasting: *lasting, n: *n}
		return b.run(ctx, *callers, *runs)
	})
}

type bench struct {
	*stack.Stack
	lasting  time.Duration
	n        int
	template int64
	pool     *pgxpool.Pool // as many connections as the use case has
}

// result has the measurements of one run. A pair is a lock and its confirmation.
type result struct {
	scenario.Work
}

func (r result) String() string {
	return fmt.Sprintf("%7.0f/s  p50 %8s  p99 %8s", r.PerSecond, r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond))
}

func (b *bench) run(ctx context.Context, callers scenario.Numbers, runs int) (err error) {
	t, err := b.Drop(ctx, time.Hour)
	if err != nil {
		return err
	}
	b.template = t.ID
	cfg, err := pgxpool.ParseConfig(b.PostgresURL)
	if err != nil {
		return err
	}
	cfg.MaxConns = 24
	if b.pool, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	defer b.pool.Close()
	var rows []string
	for _, n := range callers {
		var ratios []float64
		var bare, product result
		for range runs {
			if bare, err = b.bare(ctx, n); err != nil {
				return err
			}
			if product, err = b.lockAndConfirm(ctx, n); err != nil {
				return err
			}
			ratios = append(ratios, product.PerSecond/bare.PerSecond)
			fmt.Printf("%5d callers\n  bare two statements  %s\n  lock and confirm     %s\n", n, bare, product)
		}
		rows = append(rows, fmt.Sprintf("| %s | A | `-callers %s -seconds %.0f -runs %d` | %d | %.0f/s, %s / %s | %.0f/s, %s / %s | %.2f |", time.Now().UTC().Format(time.DateOnly),
			callers, b.lasting.Seconds(), runs, n, bare.PerSecond, ms(bare.P50), ms(bare.P99), product.PerSecond, ms(product.P50), ms(product.P99), stack.Median(ratios)))
	}
	fmt.Println("\nfor results/coupons.md (the last run's figures, the median ratio):\n" + strings.Join(rows, "\n"))
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond)) }

// fresh makes unused coupons, with ids from 1 on.
func (b *bench) fresh(ctx context.Context) error {
	_, err := b.SQL.Exec(ctx, `truncate coupons, coupon_operations, outbox restart identity`)
	if err == nil {
		_, err = b.SQL.Exec(ctx, `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
			select $1, n, n, 'claim', now(), now() + interval '1 day' from generate_series(1, $2) n`, b.template, b.n)
	}
	if err == nil {
		_, err = b.SQL.Exec(ctx, `vacuum analyze coupons`)
	}
	return err
}

// pairs calls pay for one coupon after another, from many callers, until the time is over.
func (b *bench) pairs(ctx context.Context, callers int, pay func(ctx context.Context, id int64, order string) error) (result, error) {
	if err := b.fresh(ctx); err != nil {
		return result{}, err
	}
	w, err := scenario.Drive(callers, b.lasting, func(id int64) error {
		if id > int64(b.n) {
			return fmt.Errorf("%d coupons are not enough; ask for more with -n", b.n)
		}
		return pay(ctx, id, "order-"+strconv.FormatInt(id, 10))
	})
	if err != nil {
		return result{}, fmt.Errorf("pay: %w", err)
	}
	r := result{w}
	var used int
	err = b.SQL.QueryRow(ctx, `select count(*) from coupons where state = 'used' and discount > 0`).Scan(&used)
	if err == nil && used != r.Calls {
		err = fmt.Errorf("%d coupons are used after %d pairs", used, r.Calls)
	}
	return r, err
}

// lockAndConfirm pays like the product: it reads rule and history, logs the steps and announces
// them.
func (b *bench) lockAndConfirm(ctx context.Context, callers int) (result, error) {
	payments := couponsdb.NewPayments(b.DB, postgres.Grouping{})
	defer payments.Close()
	steps := &coupon.Service{Store: payments, LockFor: time.Hour}
	r, err := b.pairs(ctx, callers, func(ctx context.Context, id int64, order string) error {
		if _, err := steps.Lock(ctx, "bench", id, coupon.Order{ID: order, Amount: 1_000_000}); err != nil {
			return err
		}
		_, err := steps.Confirm(ctx, "bench", id, order)
		return err
	})
	if err != nil {
		return r, err
	}
	var logged, announced int
	err = b.SQL.QueryRow(ctx, `select (select count(*) from coupon_operations where outcome = 'done'), (select coalesce(sum(jsonb_array_length(payload -> 'changes')), 0) from outbox)`).Scan(&logged, &announced)
	if err == nil && (logged != 2*r.Calls || announced != 2*r.Calls) {
		err = fmt.Errorf("%d lines in the log and %d events after %d pairs", logged, announced, r.Calls)
	}
	return r, err
}

// bare updates the row twice, in two transactions, without owner, rule, history, log or event.
func (b *bench) bare(ctx context.Context, callers int) (result, error) {
	return b.pairs(ctx, callers, func(ctx context.Context, id int64, order string) error {
		tag, err := b.pool.Exec(ctx, `update coupons set state = 'locked', order_id = $2, discount = 1000, locked_at = now(), locked_until = now() + interval '1 hour'
			where id = $1 and state = 'unused' and expires_at > now()`, id, order)
		if err == nil && tag.RowsAffected() == 1 {
			tag, err = b.pool.Exec(ctx, `update coupons set state = 'used', used_at = now() where id = $1 and state = 'locked' and order_id = $2`, id, order)
		}
		if err == nil && tag.RowsAffected() != 1 {
			err = fmt.Errorf("coupon %d is not there", id)
		}
		return err
	})
}
