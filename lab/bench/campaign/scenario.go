// Package campaign measures how long a campaign takes from its start until its audience is cut,
// delivered over the app channel and accounted for, through a real worker. It also measures the
// worker's memory.
//
// The same run measures two comparisons. The floor streams the same user ids out of PostgreSQL.
// The simplest design queues a task for each user, whose handler records that the message is in
// the user's inbox.
//
//	go tool task bench:campaign -- -n 1000000 -runs 3 -tasks 50000
//	go tool task bench:campaign -- -sizes 10000,100000,1000000,5000000
package campaign

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// maxMiB is the greatest memory allowed to a worker, in MiB, at any size.
const maxMiB = 200

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "users in the audience"), f.Runs(3)
	tasks := f.Int("tasks", 50_000, "users to whom the queue brings a task each, 0 = none")
	sizes := f.Numbers("sizes", "", "measure these audiences instead, once each, with a new worker")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *n, *runs, *tasks, *sizes) })
}

func bench(ctx context.Context, s *stack.Stack, n, runs, tasks int, sizes []int) error {
	fmt.Printf("%10s %8s %8s %10s %12s %10s %13s %10s\n", "users", "floor", "cut", "accounted", "per second", "all/floor", "CPU of floor", "peak MiB")
	if len(sizes) > 0 {
		return curve(ctx, s, sizes)
	}
	if err := people(ctx, s, n); err != nil {
		return err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Stop()
	var floors, used, peers []float64
	for range runs {
		r, err := once(ctx, s, worker, n)
		if err != nil {
			return err
		}
		floors, used = append(floors, r.all.Seconds()/r.floor.Seconds()), append(used, r.processor.Seconds()/r.floorUsed.Seconds())
		if tasks == 0 {
			continue
		}
		took, err := oneTaskEach(ctx, s, tasks)
		if err != nil {
			return err
		}
		perSecond := float64(tasks) / took.Seconds()
		fmt.Printf("%10d users, a task each: recorded after %.2fs, %.0f per second\n", tasks, took.Seconds(), perSecond)
		peers = append(peers, float64(n)/r.all.Seconds()/perSecond)
	}
	fmt.Printf("median of all/floor: %.2f, of processor time: %.2f\n", stack.Median(floors), stack.Median(used))
	if tasks > 0 {
		fmt.Printf("median of users per second, Dropbell to a task each: %.1f\n", stack.Median(peers))
	}
	return nil
}

// people inserts users 1…n, as far as they do not exist.
func people(ctx context.Context, s *stack.Stack, n int) error {
	_, err := s.SQL.Exec(ctx, `insert into users (id) select i from generate_series((select coalesce(max(id), 0) + 1 from users), $1::bigint) as i`, n)
	if err == nil {
		_, err = s.SQL.Exec(ctx, `vacuum analyze users`)
	}
	return err
}

// A result has the measurements of one campaign.
type result struct {
	floor, all           time.Duration
	floorUsed, processor time.Duration // by all processes
	peakMiB              float64
}

func once(ctx context.Context, s *stack.Stack, worker *stack.Process, n int) (r result, err error) {
	if r.floorUsed, err = s.UsedWhile(ctx, nil, func() (err error) { r.floor, err = stream(ctx, s, n); return err }); err != nil {
		return r, err
	}
	var took stack.Took
	if r.processor, err = s.UsedWhile(ctx, worker, func() (err error) {
		took, err = s.SendCampaign(ctx, campaign.Spec{Channel: delivery.App, Audience: campaign.Audience{Kind: campaign.Everybody},
			Content: stack.Wording("Everything must go")}, n)
		return err
	}); err != nil {
		return r, err
	}
	_, r.peakMiB = worker.Memory()
	r.all = took.All
	fmt.Printf("%10d %7.2fs %7.2fs %9.2fs %12.0f %10.2f %6.2f/%5.2fs %10.0f\n", n, r.floor.Seconds(), took.Cut.Seconds(), took.All.Seconds(),
		float64(n)/took.All.Seconds(), took.All.Seconds()/r.floor.Seconds(), r.processor.Seconds(), r.floorUsed.Seconds(), r.peakMiB)
	return r, nil
}

// stream reads the ids as the cutter must.
func stream(ctx context.Context, s *stack.Stack, n int) (time.Duration, error) {
	start := time.Now()
	rows, err := s.SQL.Query(ctx, `select id from users where id > 0 order by id`)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	seen := 0
	for rows.Next() {
		seen++
	}
	if seen != n {
		return 0, fmt.Errorf("%d of %d users were read", seen, n)
	}
	return time.Since(start), rows.Err()
}

// curve sends campaigns to ever larger audiences and prints whether time and memory grow no
// faster than the audience. Each step may cost a fifth more than its share, since results vary
// that much between runs.
func curve(ctx context.Context, s *stack.Stack, sizes []int) error {
	linear, small := "yes", "yes"
	var before result
	last := 0
	for _, n := range sizes {
		if n <= last {
			return errors.New("sizes must be ascending numbers")
		}
		r, err := grown(ctx, s, n)
		if err != nil {
			return fmt.Errorf("%d users: %w", n, err)
		}
		if last > 0 && r.all.Seconds()/before.all.Seconds() > 1.2*float64(n)/float64(last) {
			linear = "NO"
		}
		if r.peakMiB >= maxMiB {
			small = "NO"
		}
		before, last = r, n
	}
	fmt.Printf("time at most linear: %s   worker below %d MiB: %s\n", linear, maxMiB, small)
	return nil
}

// grown sends to n users with a worker that has done no other work.
func grown(ctx context.Context, s *stack.Stack, n int) (result, error) {
	if err := people(ctx, s, n); err != nil {
		return result{}, err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return result{}, err
	}
	defer worker.Stop()
	return once(ctx, s, worker, n)
}
