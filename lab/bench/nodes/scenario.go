// Package nodes measures the cost of a reservation with one web and one worker process, and with
// four processes of each on one database and one Redis. The cost is the processor time of all
// processes, of PostgreSQL and of Redis per answered reservation. The load is the same in both
// cases. The tests of the package run several processes as in production.
//
//	go tool task bench:nodes -- -seconds 5 -runs 3
package nodes

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	conns, seconds, runs := f.Int("c", 256, "connections in all"), f.Int("seconds", 5, "seconds per measurement"), f.Runs(3)
	many := f.Int("nodes", 4, "web and worker processes of the second shape")
	bin := f.Bin()
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		return bench(ctx, s, *bin, *conns, *seconds, *runs, *many)
	})
}

const (
	// warmup is for how many seconds new processes serve before their cost is measured.
	warmup = 3
	// mostPerSecond is more than two cores answer.
	mostPerSecond = 40_000
)

const benchSecret = "a secret of the benchmark, for HS256"

func bench(ctx context.Context, s *stack.Stack, bin string, conns, seconds, runs, many int) error {
	bin, remove, err := stack.Programs(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	b := &nodes{stack: s, conns: conns, seconds: seconds, bin: bin}
	if b.tokens, err = load.Tokens(benchSecret, seconds*mostPerSecond); err != nil {
		return err
	}
	fmt.Printf("%d connections, %d s each; microseconds of a processor per reservation\n%-6s %9s %8s %8s %8s %8s %8s\n",
		conns, seconds, "nodes", "answered/s", "web", "worker", "database", "Redis", "sum")
	var ratios []float64
	for range runs {
		one, err := b.measure(ctx, 1)
		if err != nil {
			return err
		}
		several, err := b.measure(ctx, many)
		if err != nil {
			return err
		}
		ratios = append(ratios, several.sum()/one.sum())
	}
	fmt.Printf("median: a reservation with %d web and %d worker costs %.2f of one with one of each (must: at most 1)\n", many, many, stack.Median(ratios))
	return nil
}

type nodes struct {
	stack          *stack.Stack
	conns, seconds int
	bin            string // folder with web and worker
	tokens         []string
}

// costs are microseconds of a processor per reservation.
type costs struct{ web, worker, database, redis float64 }

func (c costs) sum() float64 { return c.web + c.worker + c.database + c.redis }

// measure starts the given number of processes of each program and reserves from all
// connections. It prints and returns the cost of a reservation.
func (b *nodes) measure(ctx context.Context, each int) (c costs, err error) {
	if _, err := b.stack.SQL.Exec(ctx, `truncate reservations, outbox, bookings, booking_growth, handled_events`); err != nil {
		return c, err
	}
	before, err := b.stack.Drop(ctx, 3*time.Hour) // for the warm-up
	if err != nil {
		return c, err
	}
	t, err := b.stack.Drop(ctx, 3*time.Hour)
	if err != nil {
		return c, err
	}
	var webs, workers []*stack.Process
	for range each {
		for _, kind := range []string{"worker", "web"} {
			p, err := b.stack.Launch(filepath.Join(b.bin, kind), stack.Launch{Log: io.Discard, Env: []string{"AUTH_JWT_SECRET=" + benchSecret, "RATE_LIMIT_PER_MINUTE=0"}})
			if err != nil {
				return c, err
			}
			defer p.Stop()
			if err := p.Ready(ctx, time.Minute); err != nil {
				return c, err
			}
			if kind == "web" {
				webs = append(webs, p)
			} else {
				workers = append(workers, p)
			}
		}
	}
	if _, err := b.stack.SQL.Exec(ctx, `checkpoint`); err != nil {
		return c, err
	}
	// New processes open connections, fill their caches and have each statement planned once.
	warm, _, err := b.reserve(before.ID, webs, warmup)
	if err != nil {
		return c, err
	}
	if err := b.handled(ctx, warm); err != nil {
		return c, err
	}
	from, err := b.used(ctx, webs, workers)
	if err != nil {
		return c, err
	}
	answered, rate, err := b.reserve(t.ID, webs, b.seconds)
	if err != nil {
		return c, err
	}
	if err := b.handled(ctx, warm+answered); err != nil {
		return c, err
	}
	after, err := b.used(ctx, webs, workers)
	if err != nil {
		return c, err
	}
	per := func(first, last float64) float64 { return (last - first) * 1e6 / float64(answered) }
	c = costs{per(from.web, after.web), per(from.worker, after.worker), per(from.database, after.database), per(from.redis, after.redis)}
	fmt.Printf("%-6d %9.0f %8.1f %8.1f %8.1f %8.1f %8.1f\n", each, rate, c.web, c.worker, c.database, c.redis, c.sum())
	return c, nil
}

// used returns the seconds of a processor that everything has used so far.
func (b *nodes) used(ctx context.Context, webs, workers []*stack.Process) (c costs, err error) {
	sum := func(list []*stack.Process) (all float64) {
		for _, p := range list {
			used, failed := p.CPU()
			if failed != nil {
				err = failed
			}
			all += used.Seconds()
		}
		return all
	}
	c.web, c.worker = sum(webs), sum(workers)
	if err != nil {
		return c, err
	}
	database, err := b.stack.PostgresCPU(ctx)
	if err != nil {
		return c, err
	}
	redis, err := b.stack.RedisCPU(ctx)
	c.database, c.redis = database.Seconds(), redis.Seconds()
	return c, err
}

// reserve sends to every web process from its share of the connections.
func (b *nodes) reserve(templateID int64, webs []*stack.Process, seconds int) (answered int64, rate float64, err error) {
	results, errs := make([]load.Result, len(webs)), make([]error, len(webs))
	var all sync.WaitGroup
	for i, web := range webs {
		all.Go(func() { results[i], errs[i] = load.Run(b.plan(templateID, web.Addr, i, len(webs), seconds)) })
	}
	all.Wait()
	for i, r := range results {
		if errs[i] == nil && r.Failures > 0 {
			errs[i] = fmt.Errorf("%d of %d requests failed, e.g. %s", r.Failures, r.Requests, r.Example)
		}
		if errs[i] != nil {
			return 0, 0, errs[i]
		}
		answered, rate = answered+r.All, rate+r.PerSecond
	}
	return answered, rate, nil
}

// plan sends reminder i/len(tokens) of the app's twelve for user i%len(tokens). No request
// repeats another request, also not a request to another node. There are enough tokens that each
// request is the first request of its user for the drop.
func (b *nodes) plan(templateID int64, addr string, node, nodes, seconds int) load.Plan {
	users := int64(len(b.tokens))
	return load.Plan{Addr: addr, Connections: b.conns / nodes, Duration: time.Duration(seconds) * time.Second, Expect: []int{200, 201},
		Request: func(to []byte, i int64) []byte {
			i = i*int64(nodes) + int64(node)
			round := i / users
			body := `{"template_id":"` + strconv.FormatInt(templateID, 10) + `","shop_number":"10","reminders":[{"channel":"app","minutes":` +
				strconv.FormatInt(5*(1+round%12), 10) + `}]}`
			return load.Post(to, "/api/v1/reservations", b.tokens[i%users], "", body)
		}}
}

// handled waits until the workers have counted all reservations. It fails unless every answered
// reservation is stored.
func (b *nodes) handled(ctx context.Context, answered int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return stack.Until(ctx, 100*time.Millisecond, func() (bool, error) {
		var stored, counted int64
		err := b.stack.SQL.QueryRow(ctx, `select coalesce((select sum(bit_count(slots::bit(64))) from reservations), 0),
			coalesce((select sum(booked) from bookings), 0)`).Scan(&stored, &counted)
		if err == nil && stored != answered {
			err = fmt.Errorf("%d requests were answered, %d reminders are stored", answered, stored)
		}
		return counted == answered, err
	})
}
