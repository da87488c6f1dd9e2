// Package curve measures how costs grow with the number of reservations of one template: the
// fan-out, the timers in Redis, reserving at a modest rate with the filled table, and the
// worker's memory.
//
//	go tool task bench:curve -- -sizes 10000,100000,1000000,5000000
package curve

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/delivery"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	sizes := f.Numbers("sizes", "10000,100000,1000000,5000000", "reservations of the template")
	rate := f.Int("rate", 500, "reservations per second while latency is measured")
	seconds := f.Int("seconds", 10, "seconds of measuring latency")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *sizes, pace{*rate, *seconds}) })
}

// maxMiB is the greatest memory allowed to a worker, in MiB, at any size.
const maxMiB = 200

type point struct {
	n        int
	timers   int64
	p50, p99 time.Duration // of reserving
	all      time.Duration // due to everything recorded
	peakMiB  float64
}

func bench(ctx context.Context, s *stack.Stack, sizes []int, p pace) error {
	fmt.Printf("%12s %8s %12s %12s %9s %12s %10s\n", "reservations", "timers", "reserve p50", "reserve p99", "fan-out", "µs/reminder", "peak MiB")
	var points []point
	for _, n := range sizes {
		pt, err := measure(ctx, s, n, p)
		if err != nil {
			return fmt.Errorf("%d reservations: %w", n, err)
		}
		points = append(points, pt)
		fmt.Printf("%12d %8d %12s %12s %8.2fs %12.2f %10.0f\n", n, pt.timers, round(pt.p50), round(pt.p99), pt.all.Seconds(),
			float64(pt.all.Microseconds())/float64(n), pt.peakMiB)
	}
	judge(points)
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

func measure(ctx context.Context, s *stack.Stack, n int, p pace) (pt point, err error) {
	pt.n = n
	if err := s.Empty(ctx); err != nil {
		return pt, err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return pt, err
	}
	defer worker.Stop()
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return pt, err
	}
	if err := s.Reserve(ctx, t.ID, n, stack.Bit(delivery.App)); err != nil {
		return pt, err
	}
	if pt.timers, err = timers(ctx, s); err != nil {
		return pt, err
	}
	if pt.p50, pt.p99, err = p.reserve(ctx, s, t.ID, n); err != nil {
		return pt, err
	}
	if err := s.FireSoon(ctx, t, stack.Ahead(n)); err != nil {
		return pt, err
	}
	if err := s.WaitFinished(ctx, t.ID); err != nil {
		return pt, err
	}
	late, err := s.Lateness(ctx, t.ID, n)
	pt.all = late.Last
	_, pt.peakMiB = worker.Memory()
	return pt, err
}

func timers(ctx context.Context, s *stack.Stack) (int64, error) {
	client, err := s.RedisClient()
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := stack.WaitTimers(ctx, client, 12); err != nil {
		return 0, err
	}
	return stack.Timers(ctx, client)
}

// judge prints whether the fan-out grows no faster than the reservations. Each step may cost a
// fifth more than its share, since results vary that much between runs.
func judge(points []point) {
	linear, constant, small := true, true, true
	for i, pt := range points {
		small = small && pt.peakMiB < maxMiB
		if i == 0 {
			continue
		}
		before := points[i-1]
		linear = linear && pt.all.Seconds()/before.all.Seconds() <= 1.2*float64(pt.n)/float64(before.n)
		constant = constant && pt.timers == before.timers
	}
	fmt.Printf("fan-out at most linear: %s   timers constant: %s   worker below %d MiB: %s\n", yes(linear), yes(constant), maxMiB, yes(small))
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "NO"
}
