// Package years measures the cost of a year of past drops. It fills one database with a month of
// drops and a second one with a year of them, by generate_series and without load, lets
// housekeeping remove what is past its retention, and then measures both in turns: housekeeping
// that has nothing to do, the worker at rest, pages of the console, publishing, firing and
// claims. At scale 1 a year has 730,000 drops, 8.8 million slots, 44 million results, 10 million
// users and 100 million coupons.
//
//	go tool task bench:years -- -scale 0.01 -runs 3
package years

import (
	"context"
	"fmt"
	"slices"
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// aim is how much longer a measurement may take beside a year than beside a month.
const aim = 2.0

// keep are the default retentions.
var keep = workdb.Retention{Delivery: 90 * day, Audit: 1095 * day, Coupons: 400 * day, Operations: 1095 * day, Idempotency: workdb.IdempotencyKeyLife,
	Events: 7 * day, Jobs: 30 * day, Uploads: 7 * day, Hooks: 7 * day}

const day = 24 * time.Hour

type bench struct {
	scale         float64
	runs, callers int
	lasting, rest time.Duration
	due, drops    int
	bin           string
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var b bench
	f.Float64Var(&b.scale, "scale", 0.01, "share of 730,000 drops a year with their rows")
	runs, callers, bin := f.Runs(3), f.Callers(64), f.Bin()
	f.DurationVar(&b.lasting, "lasting", 3*time.Second, "how long claims are measured")
	f.DurationVar(&b.rest, "for", 45*time.Second, "how long the worker at rest is measured")
	f.IntVar(&b.due, "due", 20_000, "reservations of the drop that is fired")
	f.IntVar(&b.drops, "drops", 20, "drops that are published")
	return func(ctx context.Context) error {
		b.runs, b.callers, b.bin = *runs, *callers, *bin
		return b.run(ctx)
	}
}

func (b bench) run(ctx context.Context) error {
	s, err := stack.StartKept(ctx, "", "shared_buffers=2GB", "max_wal_size=8GB", "checkpoint_timeout=15min")
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(stack.Machine(ctx, s))
	beside, err := s.Beside(ctx, "year")
	if err != nil {
		return err
	}
	defer beside.Close()
	month, err := b.side(ctx, s, "a month", 30)
	if err != nil {
		return err
	}
	defer month.close()
	year, err := b.side(ctx, beside, "a year", 365)
	if err != nil {
		return err
	}
	defer year.close()
	return b.compare(ctx, month, year)
}

// side fills a database and lets housekeeping remove what is past its retention.
func (b bench) side(ctx context.Context, s *stack.Stack, name string, days int) (*side, error) {
	began := time.Now()
	n := sizeOf(b.scale, days)
	if err := fill(ctx, s, n, days); err != nil {
		return nil, err
	}
	fmt.Printf("%s filled in %v: %+v, %s\n", name, time.Since(began).Round(time.Second), n, size(ctx, s))
	if err := catchUp(ctx, s, name); err != nil {
		return nil, err
	}
	return b.open(ctx, s, n)
}

// catchUp repeats the cleaning until every step has finished, and prints what it removed.
func catchUp(ctx context.Context, s *stack.Stack, name string) error {
	began, removed, times := time.Now(), int64(0), 0
	house := workdb.NewHousekeeping(s.DB)
	for {
		n, err := house.Clean(ctx, keep, 0)
		if err != nil {
			return err
		}
		removed, times = removed+n, times+1
		steps, err := house.Steps(ctx)
		if err != nil {
			return err
		}
		if len(steps) == 0 || !steps[0].Behind() {
			break
		}
	}
	took := time.Since(began)
	archived, err := house.Archived(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s: housekeeping archived %d drops and removed %d rows in %v, in %d runs", name, archived, removed, took.Round(100*time.Millisecond), times)
	if removed > 0 {
		fmt.Printf(", %.0f rows/s", float64(removed)/took.Seconds())
	}
	if _, err := s.SQL.Exec(ctx, `vacuum (analyze)`); err != nil {
		return err
	}
	if _, err := s.SQL.Exec(ctx, `checkpoint`); err != nil {
		return err
	}
	fmt.Printf("; %s are left\n", size(ctx, s))
	return nil
}

func size(ctx context.Context, s *stack.Stack) (bytes string) {
	_ = s.SQL.QueryRow(ctx, `select pg_size_pretty(pg_database_size(current_database()))`).Scan(&bytes)
	return bytes
}

// compare measures both sides in turns and prints the medians and their ratio.
func (b bench) compare(ctx context.Context, month, year *side) error {
	fmt.Printf("%-34s %12s %12s   ratio\n", "", "a month", "a year")
	met := true
	for _, m := range measurements {
		var ones, others []float64
		for i := range b.runs + 1 {
			one, err := m.of(month, ctx)
			if err != nil {
				return fmt.Errorf("%s, a month: %w", m.name, err)
			}
			other, err := m.of(year, ctx)
			if err != nil {
				return fmt.Errorf("%s, a year: %w", m.name, err)
			}
			if i > 0 { // the first warms both up
				ones, others = append(ones, one), append(others, other)
			}
		}
		one, other := stack.Median(ones), stack.Median(others)
		fmt.Printf("%-34s %12.2f %12.2f   %.2f (%.2f–%.2f and %.2f–%.2f)\n", m.name, one, other, other/one, slices.Min(ones), slices.Max(ones), slices.Min(others), slices.Max(others))
		met = met && other <= aim*one
	}
	fmt.Printf("each at most %.0f times: %v\n", aim, met)
	return nil
}
