// Package fanout measures the time from a slot's instant until every reminder is recorded as
// delivered, through the real worker and queue. It compares the time with the floor: streaming
// the same ids out of PostgreSQL with two readers.
//
//	go tool task bench:fanout -- -n 1000000 -runs 3
//
// With -json it prints a line of JSON per repetition instead, for the benchmark peers.
package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "reminders due in the same second"), f.Runs(3)
	asJSON := f.Bool("json", false, "print JSON")
	return func(ctx context.Context) error { return bench(ctx, *n, *runs, *asJSON) }
}

// result is one repetition, in seconds and bytes.
type result struct {
	Reminders   int     `json:"reminders"`
	Floor       float64 `json:"floor_seconds"`
	First       float64 `json:"first_seconds"`
	P50         float64 `json:"p50_seconds"`
	P99         float64 `json:"p99_seconds"`
	All         float64 `json:"all_seconds"`
	Processor   float64 `json:"processor_seconds"`
	FloorUsed   float64 `json:"floor_processor_seconds"`
	PeakMiB     float64 `json:"peak_mib"`
	RedisPer    float64 `json:"redis_bytes_per_reminder"`
	PostgresPer float64 `json:"postgres_bytes_per_reminder"`
}

func bench(ctx context.Context, n, runs int, asJSON bool) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	show := printTable
	if asJSON {
		show = func(r result) { _ = json.NewEncoder(os.Stdout).Encode(r) }
	} else {
		fmt.Println(stack.Machine(ctx, s))
		fmt.Printf("%12s %8s %8s %8s %8s %8s %9s %13s %9s %11s %11s\n", "reminders", "floor", "first", "p50", "p99", "all",
			"all/floor", "CPU of floor", "peak MiB", "Redis B/r", "PG B/r")
	}
	var ratios, used []float64
	for range runs {
		r, err := once(ctx, s, n)
		if err != nil {
			return err
		}
		show(r)
		ratios, used = append(ratios, r.All/r.Floor), append(used, r.Processor/r.FloorUsed)
	}
	if !asJSON {
		fmt.Printf("median of all/floor: %.2f, of processor time: %.2f\n", stack.Median(ratios), stack.Median(used))
	}
	return nil
}

func printTable(r result) {
	fmt.Printf("%12d %7.2fs %7.2fs %7.2fs %7.2fs %7.2fs %9.2f %6.2f/%5.2fs %9.0f %11.2f %11.1f\n", r.Reminders, r.Floor, r.First, r.P50,
		r.P99, r.All, r.All/r.Floor, r.Processor, r.FloorUsed, r.PeakMiB, r.RedisPer, r.PostgresPer)
}

func once(ctx context.Context, s *stack.Stack, n int) (result, error) {
	r := result{Reminders: n}
	if err := s.Empty(ctx); err != nil {
		return r, err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return r, err
	}
	defer worker.Stop()
	t, err := s.Drop(ctx, time.Hour)
	if err != nil {
		return r, err
	}
	if err := reserve(ctx, s, t.ID, &r); err != nil {
		return r, err
	}
	if r.FloorUsed, err = seconds(s.UsedWhile(ctx, nil, func() error { floor, err := floor(ctx, s, t.ID, n); r.Floor = floor.Seconds(); return err })); err != nil {
		return r, err
	}
	if r.Processor, err = seconds(s.UsedWhile(ctx, worker, func() error { return fire(ctx, s, t, n) })); err != nil {
		return r, err
	}
	_, r.PeakMiB = worker.Memory()
	late, err := s.Lateness(ctx, t.ID, n)
	r.First, r.P50, r.P99, r.All = late.First.Seconds(), late.P50.Seconds(), late.P99.Seconds(), late.Last.Seconds()
	return r, err
}

func seconds(d time.Duration, err error) (float64, error) { return d.Seconds(), err }

func fire(ctx context.Context, s *stack.Stack, t template.Template, n int) error {
	if err := s.FireSoon(ctx, t, stack.Ahead(n)); err != nil {
		return err
	}
	return s.WaitFinished(ctx, t.ID)
}

// reserve stores the reservations and measures the memory that they use while they wait.
func reserve(ctx context.Context, s *stack.Stack, templateID int64, r *result) error {
	client, err := s.RedisClient()
	if err != nil {
		return err
	}
	defer client.Close()
	if err := stack.WaitTimers(ctx, client, 11); err != nil { // the hour's own slot is past
		return err
	}
	before, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return err
	}
	if err := s.Reserve(ctx, templateID, r.Reminders, stack.Bit(delivery.App)); err != nil {
		return err
	}
	after, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return err
	}
	var size int64
	err = s.SQL.QueryRow(ctx, `select pg_total_relation_size('reservations')`).Scan(&size)
	r.RedisPer, r.PostgresPer = float64(after-before)/float64(r.Reminders), float64(size)/float64(r.Reminders)
	return err
}

// floor streams the due ids with two readers, as the cutter must.
func floor(ctx context.Context, s *stack.Stack, templateID int64, n int) (time.Duration, error) {
	start := time.Now()
	var readers sync.WaitGroup
	errs := make([]error, 2)
	for i := range 2 {
		readers.Go(func() {
			rows, err := s.SQL.Query(ctx, `select user_id, slots from reservations where template_id = $1 and slots & 1 <> 0
				and user_id between $2 and $3`, templateID, i*n/2+1, (i+1)*n/2)
			if err != nil {
				errs[i] = err
				return
			}
			for rows.Next() {
				_ = rows.RawValues()
			}
			errs[i] = rows.Err()
		})
	}
	readers.Wait()
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return time.Since(start), nil
}
