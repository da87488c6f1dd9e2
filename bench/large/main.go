// Large measures what the size of the tables costs: reservations, claims, the
// cutting of a slot, and lists of the console, in a database whose tables are
// large and in one beside it whose tables are empty, in turns; then in the large
// one while a transaction keeps an old snapshot open.
//
//	go run ./bench/large -reservations 100000000 -coupons 50000000 -users 20000000
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/bench/stack"
)

// size is how large the tables are.
type size struct{ reservations, coupons, users int }

func main() {
	var b bench
	flag.IntVar(&b.n.reservations, "reservations", 1_000_000, "reservations, over as many drops as there are millions of them, and four more")
	flag.IntVar(&b.n.coupons, "coupons", 500_000, "coupons of these drops")
	flag.IntVar(&b.n.users, "users", 1_000_000, "users, among whom those who reserve and claim are scattered")
	flag.IntVar(&b.callers, "callers", 256, "concurrent callers")
	flag.DurationVar(&b.lasting, "lasting", 3*time.Second, "how long each rate is measured")
	flag.IntVar(&b.due, "due", 200_000, "reservations of the drop whose slot is cut")
	flag.IntVar(&b.looks, "looks", 50, "requests for each list")
	flag.DurationVar(&b.snapshot, "snapshot", 30*time.Second, "age of the snapshot at the first measurement beside it, 0 = without")
	runs := flag.Int("runs", 3, "repetitions, after one that is not counted")
	flag.Parse()
	if err := b.run(context.Background(), *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type bench struct {
	n                   size
	callers, due, looks int
	lasting, snapshot   time.Duration

	empty, large *side
	next         int64 // number of the next user who asks
}

// aim is the least share of the empty tables' rate.
const aim = 0.8

func (b *bench) run(ctx context.Context, runs int) error {
	s, err := stack.Start(ctx)
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
	b.empty, b.large = b.open(s), b.open(beside)
	defer b.empty.close()
	defer b.large.close()
	if err := b.compare(ctx, "large tables, of empty ones", b.empty, b.large, runs); err != nil || b.snapshot == 0 {
		return err
	}
	return b.besideSnapshot(ctx, runs)
}

// besideSnapshot compares the empty and the large tables once more, while a
// transaction reads the large ones as they were.
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
	return b.compare(ctx, "large tables with a snapshot open, of empty ones", b.empty, b.large, runs)
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
	{"lists of coupons", "/s", (*side).look},
}

// compare measures both sides in turns and prints the medians, the least and
// greatest of each, and the ratio of the second one to the first.
func (b *bench) compare(ctx context.Context, title string, first, second *side, runs int) error {
	fmt.Println(title)
	met := true
	for _, m := range measurements {
		var ones, others, ratios []float64
		for i := range runs + 1 {
			one, err := m.of(first, ctx)
			if err != nil {
				return fmt.Errorf("%s, first: %w", m.name, err)
			}
			other, err := m.of(second, ctx)
			if err != nil {
				return fmt.Errorf("%s, second: %w", m.name, err)
			}
			if i > 0 { // the first warms both up
				ones, others, ratios = append(ones, one), append(others, other), append(ratios, other/one)
			}
		}
		fmt.Printf("  %-22s %s %s   %s   ratio %.2f (%.2f–%.2f)\n", m.name, m.unit, spread(ones), spread(others),
			stack.Median(ratios), slices.Min(ratios), slices.Max(ratios))
		met = met && stack.Median(ratios) >= aim
	}
	fmt.Printf("  each at least %.1f: %v\n", aim, met)
	return nil
}

func spread(v []float64) string {
	return fmt.Sprintf("%9.0f (%.0f–%.0f)", stack.Median(v), slices.Min(v), slices.Max(v))
}
