// Package large measures the cost of large tables. It measures reservations, claims, the cutting
// of a slot, and pages of the console over HTTP, alternately in a database with large tables and
// in a second database with empty tables. With -standby it then measures the writes in the large
// database with a synchronous standby and without. Last it measures the large database while a
// transaction keeps an old snapshot open, and the same tables after the end of the transaction.
// Only these last two measurements have the same rows.
//
//	go tool task bench:large -- -reservations 100000000 -coupons 50000000 -users 20000000
package large

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// size is how large the tables are.
type size struct{ reservations, coupons, users int }

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var b bench
	f.IntVar(&b.n.reservations, "reservations", 1_000_000, "reservations, over as many drops as there are millions of them, and four more")
	f.IntVar(&b.n.coupons, "coupons", 500_000, "coupons of these drops")
	f.IntVar(&b.n.users, "users", 1_000_000, "users, among whom those who reserve and claim are scattered")
	callers := f.Callers(256)
	f.DurationVar(&b.lasting, "lasting", 3*time.Second, "how long each rate is measured")
	f.IntVar(&b.due, "due", 200_000, "reservations of the drop whose slot is cut")
	f.IntVar(&b.looks, "looks", 20, "requests for each page")
	f.StringVar(&b.buffers, "shared-buffers", "4GB", "memory of PostgreSQL; the handbook recommends a quarter of the machine's")
	f.BoolVar(&b.standby, "standby", false, "compare with a synchronous standby, which takes as much disk again")
	f.DurationVar(&b.snapshot, "snapshot", 30*time.Second, "age of the snapshot at the first measurement beside it, 0 = without")
	runs := f.Int("runs", 3, "repetitions, after one that is not counted")
	return func(ctx context.Context) error {
		b.callers = *callers
		return b.run(ctx, *runs)
	}
}

type bench struct {
	n                   size
	callers, due, looks int
	lasting, snapshot   time.Duration
	standby             bool
	buffers             string

	empty, large *side
	next         int64 // number of the next requesting user
}

// The aims are the least accepted ratios: to the rate with empty tables, and to the rate without
// a synchronous standby.
const (
	aim        = 0.8
	aimStandby = 0.6
)

func (b *bench) run(ctx context.Context, runs int) error {
	// These are the settings that the handbook recommends. The time between two checkpoints
	// decides how often a page is written whole.
	s, err := stack.StartKept(ctx, "", "shared_buffers="+b.buffers, "max_wal_size=8GB", "min_wal_size=2GB", "checkpoint_timeout=15min", "checkpoint_completion_target=0.9")
	if err != nil {
		return err
	}
	defer s.Close()
	beside, err := s.Beside(ctx, "large")
	if err != nil {
		return err
	}
	defer beside.Close()
	fmt.Println(stack.Machine(ctx, s))
	began := time.Now()
	if err := fill(ctx, beside, b.n); err != nil {
		return err
	}
	var bytes string
	if err := beside.SQL.QueryRow(ctx, `select pg_size_pretty(pg_database_size(current_database()))`).Scan(&bytes); err != nil {
		return err
	}
	fmt.Printf("filled in %v: %+v, %s\n", time.Since(began).Round(time.Second), b.n, bytes)
	if b.empty, err = b.open(ctx, s); err != nil {
		return err
	}
	defer b.empty.close()
	if b.large, err = b.open(ctx, beside); err != nil {
		return err
	}
	defer b.large.close()
	if _, err := b.compare(ctx, "large tables, of empty ones", runs, measurements, aim, b.always(b.empty), b.always(b.large)); err != nil {
		return err
	}
	if b.standby {
		if err := b.withStandby(ctx, s, runs); err != nil {
			return err
		}
	}
	if b.snapshot == 0 {
		return nil
	}
	return b.besideSnapshot(ctx, runs)
}

// A choice makes everything ready for a measurement and returns the side that it is of.
type choice func(context.Context) (*side, error)

func (b *bench) always(d *side) choice { return func(context.Context) (*side, error) { return d, nil } }

// withStandby compares the writes of the large tables while commits wait for a standby and while
// they do not. In both cases the standby runs on the same machine.
func (b *bench) withStandby(ctx context.Context, s *stack.Stack, runs int) error {
	began := time.Now()
	standby, err := localstack.StartStandby(ctx, s.Postgres, localstack.Options{Durable: true, Log: io.Discard})
	if err != nil {
		return err
	}
	defer func() { _ = standby.Stop(context.WithoutCancel(ctx)) }()
	fmt.Printf("standby made in %v\n", time.Since(began).Round(time.Second))
	waiting := func(names, state string) choice {
		return func(ctx context.Context) (*side, error) {
			if _, err := s.SQL.Exec(ctx, `alter system set synchronous_standby_names = '`+names+`'`); err != nil {
				return nil, err
			}
			if _, err := s.SQL.Exec(ctx, `select pg_reload_conf()`); err != nil {
				return nil, err
			}
			return b.large, stack.Until(ctx, 50*time.Millisecond, func() (ok bool, err error) {
				err = s.SQL.QueryRow(ctx, `select exists (select from pg_stat_replication where state = 'streaming' and sync_state = $1)`, state).Scan(&ok)
				return ok, err
			})
		}
	}
	without := waiting("", "async")
	defer func() { _, _ = without(context.WithoutCancel(ctx)) }()
	_, err = b.compare(ctx, "with a synchronous standby, of without", runs, measurements[:3], aimStandby, without, waiting("*", "sync"))
	return err
}

// besideSnapshot compares the empty and the large tables twice more: while a transaction holds
// an old snapshot of the large tables, and after its end. The results of the empty tables show
// how fast the machine was each time.
func (b *bench) besideSnapshot(ctx context.Context, runs int) error {
	old, err := b.large.SQL.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return err
	}
	defer func() { _ = old.Rollback(ctx) }()
	if _, err := old.Exec(ctx, `select from templates limit 1`); err != nil {
		return err
	}
	fmt.Printf("the large tables have a snapshot open; the first measurement is %v later, with work in between\n", b.snapshot)
	for end := time.Now().Add(b.snapshot); time.Now().Before(end); {
		if _, err := b.large.reserve(ctx); err != nil {
			return err
		}
		if _, err := b.large.claim(ctx); err != nil {
			return err
		}
	}
	with, err := b.compare(ctx, "large tables with a snapshot open, of empty ones", runs, measurements, aim, b.always(b.empty), b.always(b.large))
	if err != nil {
		return err
	}
	if err := old.Rollback(ctx); err != nil {
		return err
	}
	if _, err := b.large.SQL.Exec(ctx, `vacuum`); err != nil {
		return err
	}
	without, err := b.compare(ctx, "the same tables after the snapshot's end, of empty ones", runs, measurements, aim, b.always(b.empty), b.always(b.large))
	if err != nil {
		return err
	}
	fmt.Println("with the snapshot, of without, each as a share of the empty tables' rate beside it")
	for i, m := range measurements {
		fmt.Printf("  %-22s ratio %.2f\n", m.name, with[i]/without[i])
	}
	return nil
}

// A measurement returns a rate: the more, the better.
type measurement struct {
	name, unit string
	of         func(*side, context.Context) (float64, error)
}

var measurements = []measurement{
	{"reserve", "/s", (*side).reserve},
	{"claim", "/s", (*side).claim},
	{"cut a slot", "/s", (*side).cut},
	{"pages of the console", "/s", (*side).look},
}

// compare measures both sides alternately. It prints the median, the least and the greatest
// result of each side, and the ratio of second to first. It returns the medians of these ratios.
func (b *bench) compare(ctx context.Context, title string, runs int, list []measurement, aim float64, first, second choice) (all []float64, err error) {
	fmt.Println(title)
	met := true
	for _, m := range list {
		var ones, others, ratios []float64
		for i := range runs + 1 {
			one, err := m.with(ctx, first)
			if err != nil {
				return nil, fmt.Errorf("%s, first: %w", m.name, err)
			}
			other, err := m.with(ctx, second)
			if err != nil {
				return nil, fmt.Errorf("%s, second: %w", m.name, err)
			}
			if i > 0 { // the first warms both up
				ones, others, ratios = append(ones, one), append(others, other), append(ratios, other/one)
			}
		}
		fmt.Printf("  %-22s %s %s   %s   ratio %.2f (%.2f–%.2f)\n", m.name, m.unit, spread(ones), spread(others),
			stack.Median(ratios), slices.Min(ratios), slices.Max(ratios))
		all = append(all, stack.Median(ratios))
		met = met && stack.Median(ratios) >= aim
	}
	fmt.Printf("  each at least %.1f: %v\n", aim, met)
	return all, nil
}

func (m measurement) with(ctx context.Context, choose choice) (float64, error) {
	d, err := choose(ctx)
	if err != nil {
		return 0, err
	}
	return m.of(d, ctx)
}

func spread(v []float64) string {
	return fmt.Sprintf("%9.0f (%.0f–%.0f)", stack.Median(v), slices.Min(v), slices.Max(v))
}
