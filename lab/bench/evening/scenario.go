// Package evening measures many drops that share an instant. The same number of reminders is
// sent as one drop, as hundreds and as thousands of drops, through the real worker and queue, to
// users whose ids are scattered over a large table. The time of each shape, from the due instant
// until all outcomes are recorded, is compared with the time of the one drop.
//
//	go tool task bench:evening -- -users 4000000 -runs 3
package evening

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// options are the command's flags.
type options struct {
	users, workers, runs, others, statements int
	shops                                    int
	shapes                                   []shape
	keep, worker                             string
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var o options
	shapes := f.String("shapes", "1x1000000,200x5000,2000x500", "drops x reservers of each; the first is the dense one")
	f.IntVar(&o.users, "users", 4_000_000, "users in the table, among whom the reservers are scattered")
	f.IntVar(&o.workers, "workers", 1, "worker processes")
	f.IntVar(&o.runs, "runs", 3, "repetitions of each shape, after one that does not count")
	f.IntVar(&o.others, "others", 1, "percent of the reservers on each of e-mail, SMS and webhook; the rest is in the app")
	f.IntVar(&o.shops, "shops", 0, "shops that share the drops, each with texts, languages, a brand and providers of its own; 0 = one shop with the built-in texts")
	f.StringVar(&o.keep, "keep", "", "folder that keeps the filled database for the next time; empty = none")
	f.StringVar(&o.worker, "worker", "", "worker program to measure; empty = built from this checkout")
	f.IntVar(&o.statements, "statements", 0, "print so many of PostgreSQL's statements that took longest in each repetition; needs pg_stat_statements")
	return func(ctx context.Context) (err error) {
		if o.shapes, err = parseShapes(*shapes); err != nil {
			return err
		}
		return bench(ctx, o)
	}
}

// A shape is how many drops share the instant and how many users reserved each.
type shape struct{ drops, reservers int }

func (s shape) String() string { return fmt.Sprintf("%d x %d", s.drops, s.reservers) }

func parseShapes(list string) (shapes []shape, err error) {
	for one := range strings.SplitSeq(list, ",") {
		drops, reservers, _ := strings.Cut(one, "x")
		var s shape
		var err1, err2 error
		s.drops, err1 = strconv.Atoi(drops)
		s.reservers, err2 = strconv.Atoi(reservers)
		if err := errors.Join(err1, err2); err != nil || s.drops < 1 || s.reservers < 1 {
			return nil, fmt.Errorf("shape %q is not like 200x5000", one)
		}
		shapes = append(shapes, s)
	}
	return shapes, nil
}

// atMost is how many times as long as the dense shape another shape may take, and
// atMostCPU how many times as much processor time, with shops of their own.
const (
	atMost    = 2
	atMostCPU = 1.5
)

// result is one repetition of one shape. All times count from the due instant: cut until all
// batches are stored, app until each recipient in the app has an outcome, recorded until each
// recipient on any channel has an outcome, and finished until the last drop is finished.
type result struct {
	cut, app, recorded, finished time.Duration
	worker, postgres, redis      time.Duration // processor time
	peakMiB                      float64
	statements                   []string
}

func bench(ctx context.Context, o options) error {
	var settings []string
	if o.statements > 0 {
		settings = []string{"shared_preload_libraries=pg_stat_statements", "pg_stat_statements.track_planning=on"}
	}
	s, err := stack.StartKept(ctx, o.keep, settings...)
	if err != nil {
		return err
	}
	defer s.Close()
	f := &filling{Stack: s, options: o}
	if err := f.fill(ctx); err != nil {
		return err
	}
	if err := f.emptyQueue(ctx); err != nil {
		return err
	}
	fleet, err := startFleet(ctx, s, o)
	if err != nil {
		return err
	}
	defer fleet.stop()
	fmt.Printf("%s; %d users, %d worker(s)\n", stack.Machine(ctx, s), o.users, o.workers)
	fmt.Printf("%-14s %8s %9s %9s %9s %11s %8s %9s %9s\n", "drops", "cut", "app", "recorded", "finished",
		"worker CPU", "PG CPU", "Redis CPU", "peak MiB")
	times, spent := make([][]time.Duration, len(o.shapes)), make([][]time.Duration, len(o.shapes))
	for run := range o.runs + 1 { // the first warms up
		for i, sh := range o.shapes {
			r, err := f.once(ctx, fleet, sh)
			if err != nil {
				return fmt.Errorf("%s: %w", sh, err)
			}
			note := ""
			if run == 0 {
				note = "  (warm-up)"
			} else {
				times[i], spent[i] = append(times[i], r.recorded), append(spent[i], r.worker+r.postgres+r.redis)
			}
			fmt.Printf("%-14s %7.2fs %8.2fs %8.2fs %8.2fs %10.2fs %7.2fs %8.2fs %9.0f%s\n", sh, r.cut.Seconds(), r.app.Seconds(),
				r.recorded.Seconds(), r.finished.Seconds(), r.worker.Seconds(), r.postgres.Seconds(), r.redis.Seconds(), r.peakMiB, note)
			for _, line := range r.statements {
				fmt.Println("    " + line)
			}
		}
	}
	if o.runs == 0 {
		return nil
	}
	judge(o.shapes, "time", times, atMost)
	judge(o.shapes, "processor time", spent, atMostCPU)
	return nil
}

// judge compares the medians of each shape with the medians of the first.
func judge(shapes []shape, what string, measured [][]time.Duration, most float64) {
	dense := stack.Median(measured[0])
	for i, sh := range shapes {
		ratio := stack.Median(measured[i]).Seconds() / dense.Seconds()
		met := "yes"
		if ratio > most {
			met = "NO"
		}
		fmt.Printf("%s: median of the %s %.2fs, %.2f times the first; at most %.1f: %s\n", sh, what, stack.Median(measured[i]).Seconds(), ratio, most, met)
	}
}
