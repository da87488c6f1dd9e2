// Fanout measures how long it takes from a slot's instant until every
// reminder is recorded as delivered, through the real worker and queue, and
// compares it with the floor: streaming the same ids out of PostgreSQL with
// two readers.
//
//	go run ./bench/fanout -n 1000000 -runs 3
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/bench/stack"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

func main() {
	n := flag.Int("n", 1_000_000, "reminders due in the same second")
	runs := flag.Int("runs", 3, "repetitions")
	flag.Parse()
	if err := bench(context.Background(), *n, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type result struct {
	floor, first, p50, p99, all time.Duration
	peakMiB                     float64
}

func bench(ctx context.Context, n, runs int) error {
	s, err := stack.Start(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	fmt.Println(stack.Machine(ctx, s))
	fmt.Printf("%12s %8s %8s %8s %8s %8s %8s %9s\n", "reminders", "floor", "first", "p50", "p99", "all", "all/floor", "peak MiB")
	var ratios []float64
	for range runs {
		r, err := once(ctx, s, n)
		if err != nil {
			return err
		}
		ratio := r.all.Seconds() / r.floor.Seconds()
		ratios = append(ratios, ratio)
		fmt.Printf("%12d %7.2fs %7.2fs %7.2fs %7.2fs %7.2fs %9.2f %9.0f\n", n, r.floor.Seconds(), r.first.Seconds(),
			r.p50.Seconds(), r.p99.Seconds(), r.all.Seconds(), ratio, r.peakMiB)
	}
	fmt.Printf("median of all/floor: %.2f\n", stack.Median(ratios))
	return nil
}

func once(ctx context.Context, s *stack.Stack, n int) (result, error) {
	var r result
	if _, err := s.SQL.Exec(ctx, `truncate reservations, bookings, batches, exceptions`); err != nil {
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
	if err := s.Reserve(ctx, t.ID, n, 1); err != nil {
		return r, err
	}
	if r.floor, err = floor(ctx, s, t.ID, n); err != nil {
		return r, err
	}
	// Move the opening so that the five-minute slot is due in a few seconds:
	// the timer takes the way it always takes.
	spec := t.Spec
	spec.OpensAt = time.Now().Add(5*time.Minute + 4*time.Second).Truncate(time.Second)
	service := &template.Service{Store: postgres.NewTemplates(s.DB), Now: time.Now}
	if _, err := service.Edit(ctx, staff.System(), t.ID, t.Version, spec); err != nil {
		return r, err
	}
	if err := waitFinished(ctx, s, t.ID); err != nil {
		return r, err
	}
	_, r.peakMiB = worker.Memory()
	return r, measure(ctx, s, t.ID, n, &r)
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

func waitFinished(ctx context.Context, s *stack.Stack, templateID int64) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		var done bool
		if err := s.SQL.QueryRow(ctx, `select exists (select from slots s join templates t on t.id = s.template_id
			where t.id = $1 and s.opens_at = t.opens_at and s.slot = 1 and s.state = 'finished')`, templateID).Scan(&done); err != nil || done {
			return err
		}
		<-tick.C
	}
}

// measure reads the lateness of every recipient from when its batch was recorded.
func measure(ctx context.Context, s *stack.Stack, templateID int64, n int, r *result) error {
	var sent int
	err := s.SQL.QueryRow(ctx, `
		with b as (select finished_at - due_at as late, sent_count from batches where template_id = $1)
		select sum(sent_count), min(late), percentile_disc(0.5) within group (order by late),
			percentile_disc(0.99) within group (order by late), max(late) from b`, templateID).
		Scan(&sent, &r.first, &r.p50, &r.p99, &r.all)
	if err == nil && sent != n {
		return fmt.Errorf("%d of %d were sent", sent, n)
	}
	return err
}
