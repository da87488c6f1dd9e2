// Package peers compares Dropbell with the usual designs. It enqueues the same reminders ahead
// as one asynq task each and as one River job each, all due at the same instant. Then it
// measures Dropbell's fan-out on the same machine in the same run.
//
//	go tool task bench:peers -- -n 1000000 -runs 3
//
// The comparison favours the peers. Their handlers do nothing, while Dropbell records every
// recipient. Their time ends when the last handler was called, Dropbell's time when the last
// outcome is committed. Their servers are tuned and their Redis syncs every second, while
// Dropbell runs with defaults and its Redis syncs every write.
package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "reminders due at the same instant"), f.Runs(3)
	only := f.String("only", "asynq,river,dropbell", "what to measure")
	return func(ctx context.Context) error { return bench(ctx, *n, *runs, strings.Split(*only, ",")) }
}

// outcome has the measurements of one contender.
type outcome struct {
	First, All time.Duration // after the due instant
	Enqueued   float64       // per second
	Bytes      float64       // waiting, per reminder
}

type contender struct {
	name, title string
	run         func(ctx context.Context, n int) (outcome, error)
}

var contenders = []contender{
	{"asynq", "asynq, a task each", runAsynq},
	{"river", "River, a job each", runRiver},
	{"dropbell", "Dropbell", runDropbell},
}

func bench(ctx context.Context, n, runs int, names []string) error {
	times := map[string][]float64{}
	fmt.Printf("%-20s %10s %9s %9s %11s %13s %14s\n", "", "reminders", "first", "all", "per second", "enqueued/s", "bytes waiting")
	for range runs {
		for _, c := range contenders {
			if !slices.Contains(names, c.name) {
				continue
			}
			o, err := c.run(ctx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			times[c.name] = append(times[c.name], o.All.Seconds())
			enqueued := "-" // Dropbell enqueues nothing
			if o.Enqueued > 0 {
				enqueued = strconv.FormatFloat(o.Enqueued, 'f', 0, 64)
			}
			fmt.Printf("%-20s %10d %8.2fs %8.2fs %11.0f %13s %14.1f\n", c.title, n, o.First.Seconds(), o.All.Seconds(),
				float64(n)/o.All.Seconds(), enqueued, o.Bytes)
		}
	}
	for _, peer := range []string{"asynq", "river"} {
		if ratios := quotients(times[peer], times["dropbell"]); len(ratios) > 0 {
			fmt.Printf("Dropbell is %.1f times as fast as %s (median)\n", stack.Median(ratios), peer)
		}
	}
	return nil
}

// quotients divides run by run, since runs differ more than contenders of one run.
func quotients(a, b []float64) []float64 {
	var list []float64
	for i := range min(len(a), len(b)) {
		list = append(list, a[i]/b[i])
	}
	return list
}

// dueAfter returns when n reminders are due. By that time all are enqueued, if at least
// perSecond are enqueued per second.
func dueAfter(n, perSecond int) time.Time {
	return time.Now().Add(time.Duration(n/perSecond)*time.Second + 6*time.Second).Truncate(time.Second)
}

// errTooSlow is returned when the instant came before everything was enqueued.
var errTooSlow = errors.New("the reminders were due before all of them were enqueued; the machine is too busy")

// A watch notes when handlers are called.
type watch struct {
	n           int64
	calls       atomic.Int64
	first, last atomic.Int64 // nanoseconds since 1970
	done        chan struct{}
}

func newWatch(n int) *watch { return &watch{n: int64(n), done: make(chan struct{})} }

func (w *watch) called() {
	switch w.calls.Add(1) {
	case 1:
		w.first.Store(time.Now().UnixNano())
	case w.n:
		w.last.Store(time.Now().UnixNano())
		close(w.done)
	}
}

// wait returns when all reminders were executed. first and all are the times from due until the
// first and the last execution.
func (w *watch) wait(ctx context.Context, due time.Time) (first, all time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Until(due)+time.Duration(w.n)*time.Millisecond+time.Minute)
	defer cancel()
	select {
	case <-w.done:
		return time.Unix(0, w.first.Load()).Sub(due), time.Unix(0, w.last.Load()).Sub(due), nil
	case <-ctx.Done():
		return 0, 0, fmt.Errorf("%d of %d were executed", w.calls.Load(), w.n)
	}
}

// inParallel divides 0…n-1 among goroutines in chunks and returns the number enqueued per
// second.
func inParallel(n, chunk, goroutines int, enqueue func(from, to int) error) (float64, error) {
	start := time.Now()
	err := scenario.Each((n+chunk-1)/chunk, goroutines, func(i int) error { return enqueue(i*chunk, min(n, (i+1)*chunk)) })
	return float64(n) / time.Since(start).Seconds(), err
}
