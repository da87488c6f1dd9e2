// Package rush measures the answers to users that all tap in the same moment. The load is an
// open loop of claims over HTTP, each with an idempotency key, on many drops, of which most
// users want a few (Zipf). Each claim is timed from the tap, not from the time at which a
// connection was free. The benchmark first measures the capacity with a closed loop. Then it
// sends half of the capacity, all of it and twice as much, the last also for longer, and
// afterwards counts the issued coupons. The peak of web's memory is measured for each repetition
// alone.
//
//	go tool task bench:rush -- -taps 20000 -within 1s -templates 200
package rush

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

type options struct {
	taps        int
	within      time.Duration
	templates   int
	connections int
	loads       string
	sustained   time.Duration
	skew        float64
	runs        int
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var o options
	f.IntVar(&o.taps, "taps", 20_000, "taps of the first measurement")
	f.DurationVar(&o.within, "within", time.Second, "time in which the taps come")
	f.IntVar(&o.templates, "templates", 200, "drops that are open")
	f.IntVar(&o.connections, "connections", 4096, "connections of the users")
	f.StringVar(&o.loads, "loads", "0.5,1,2", "further measurements, as multiples of the capacity")
	f.DurationVar(&o.sustained, "sustained", 5*time.Second, "how long the greatest of the loads goes on in the last measurement; 0 = there is none")
	f.Float64Var(&o.skew, "skew", 1.1, "exponent of Zipf's law, above 1")
	runs := f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		o.runs = *runs
		return run(ctx, s, o)
	})
}

type bench struct {
	*stack.Stack
	options
	web   *stack.Process
	drops []int64
	users int64 // that have tapped so far; no user taps twice
}

const key = "dbk_benchmarkofrushesbenchmarkofrushes"

func run(ctx context.Context, s *stack.Stack, o options) error {
	multiples, err := parseLoads(o.loads)
	if err != nil {
		return err
	}
	b := &bench{Stack: s, options: o}
	for range o.templates {
		t, err := s.Drop(ctx, time.Hour)
		if err != nil {
			return err
		}
		b.drops = append(b.drops, t.ID)
	}
	if b.web, err = s.StartProgram(ctx, "web", "ADMIN_API_KEY="+key, "RATE_LIMIT_KEY_PER_MINUTE=0", "LOG_LEVEL=error"); err != nil {
		return err
	}
	defer b.web.Stop()
	capacity, err := b.capacity(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%d drops, 256 callers in a closed loop: %.0f claims/s\n", o.templates, capacity)
	most, err := b.repeat(ctx, fmt.Sprintf("%d taps", o.taps), o.taps, o.within)
	if err != nil {
		return err
	}
	var one, long float64 // with most, the peaks of memory
	for _, m := range multiples {
		peak, err := b.repeat(ctx, fmt.Sprintf("%g of the capacity", m), int(m*capacity*o.within.Seconds()), o.within)
		if err != nil {
			return err
		}
		if m == 1 {
			one = peak
		}
		if m > 1 {
			most = max(most, peak)
		}
	}
	if o.sustained > 0 {
		m := slices.Max(multiples)
		peak, err := b.repeat(ctx, fmt.Sprintf("%g of the capacity for longer", m), int(m*capacity*o.sustained.Seconds()), o.sustained)
		if err != nil {
			return err
		}
		long = peak
	}
	b.judge(one, most, long)
	return b.idle(ctx)
}

func parseLoads(list string) (multiples []float64, err error) {
	for _, word := range strings.Split(list, ",") {
		m, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || m <= 0 {
			return nil, fmt.Errorf("-loads: %q is not a multiple of the capacity", word)
		}
		multiples = append(multiples, m)
	}
	return multiples, nil
}

// open makes all drops open, with so much stock and without coupons.
func (b *bench) open(ctx context.Context, stock int) error {
	_, err := b.SQL.Exec(ctx, `with emptied as (delete from coupons), uncounted as (delete from claim_counts)
		update templates set opens_at = date_trunc('second', now()) - interval '1 minute', stock = $1, issued = 0, version = version + 1`, stock)
	if err == nil {
		// web is another process and caches a drop for at most a second. It gives no signal when
		// it has read the drop again.
		time.Sleep(1500 * time.Millisecond)
	}
	return err
}

// request appends the tap of another user on the drop.
func request(buf []byte, user int64, drop int64) []byte {
	return load.Post(buf, "/api/v1/claims", key, fmt.Sprintf("X-User-ID: %d\r\nIdempotency-Key: tap-%d\r\n", user, user), fmt.Sprintf(`{"template_id":"%d"}`, drop))
}

// capacity returns the rate of a closed loop of 256 callers. The loop is the warm-up as well.
func (b *bench) capacity(ctx context.Context) (float64, error) {
	if err := b.open(ctx, 1_000_000); err != nil {
		return 0, err
	}
	wanted := b.zipf(1 << 16)
	first := b.users + 1
	r, err := load.Run(load.Plan{Addr: b.web.Addr, Connections: 256, Warmup: 2 * time.Second, Duration: 3 * time.Second, Expect: []int{201},
		Request: func(buf []byte, i int64) []byte { return request(buf, first+i, wanted[i%int64(len(wanted))]) }})
	b.users += r.All + 1
	if err == nil && r.Failures > 0 {
		err = fmt.Errorf("%d of %d claims failed, one with %s", r.Failures, r.Requests, r.Example)
	}
	return r.PerSecond, err
}

// zipf returns the drops that n users want.
func (b *bench) zipf(n int) []int64 {
	z := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(b.users))), b.skew, 1, uint64(len(b.drops)-1))
	list := make([]int64, n)
	for i := range list {
		list[i] = b.drops[z.Uint64()]
	}
	return list
}

// measured is one repetition.
type measured struct {
	load.OpenResult
	peakMiB float64       // of web's memory
	cpu     time.Duration // of web, for each tap
}

// repeat prints the repetitions of one measurement and returns the greatest peak of
// web's memory, in MiB.
func (b *bench) repeat(ctx context.Context, name string, taps int, within time.Duration) (float64, error) {
	var list []measured
	for range b.runs {
		r, err := b.once(ctx, taps, within)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, r)
	}
	spread := func(unit time.Duration, of func(measured) time.Duration) string {
		var v []time.Duration
		for _, r := range list {
			v = append(v, of(r).Round(unit))
		}
		return fmt.Sprintf("%v (%v to %v)", stack.Median(v), slices.Min(v), slices.Max(v))
	}
	const ms = time.Millisecond
	fmt.Printf("%s: %d taps within %v\n", name, taps, within)
	fmt.Printf("    from the tap: p50 %s, p99 %s\n", spread(ms, func(r measured) time.Duration { return r.P50 }), spread(ms, func(r measured) time.Duration { return r.P99 }))
	fmt.Printf("    p99.9 %s, max %s\n", spread(ms, func(r measured) time.Duration { return r.P999 }), spread(ms, func(r measured) time.Duration { return r.Max }))
	fmt.Printf("    all answered after %s\n", spread(ms, func(r measured) time.Duration { return r.Answered }))
	kinds := list[len(list)-1].Kinds
	var words []string
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(x, y string) int { return cmp.Compare(kinds[y], kinds[x]) }) {
		words = append(words, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	var peaks []float64
	for _, r := range list {
		peaks = append(peaks, r.peakMiB)
	}
	fmt.Printf("    answers of the last run: %s\n", strings.Join(words, ", "))
	fmt.Printf("    web: peak %.0f MiB (%.0f to %.0f), processor time a tap %s\n", stack.Median(peaks), slices.Min(peaks), slices.Max(peaks),
		spread(100*time.Nanosecond, func(r measured) time.Duration { return r.cpu }))
	return slices.Max(peaks), nil
}

// Kinds of answers.
const (
	issued  = "issued"
	soldOut = "sold out"
	busy    = "503 with Retry-After"
)

// once opens the drops with stock for about two thirds of the taps, lets users tap, and compares
// the answers with the stored coupons.
func (b *bench) once(ctx context.Context, taps int, within time.Duration) (m measured, err error) {
	stock := max(1, taps/(3*len(b.drops))*4)
	if err := b.open(ctx, stock); err != nil {
		return m, err
	}
	if err := b.rest(ctx); err != nil {
		return m, err
	}
	at := make([]time.Duration, taps)
	for i := range at {
		at[i] = rand.N(within)
	}
	slices.Sort(at)
	wanted, first := b.zipf(taps), b.users+1
	b.users += int64(taps)
	before, err := b.web.CPU()
	if err != nil {
		return m, err
	}
	m.OpenResult, err = load.RunOpen(load.OpenPlan{Addr: b.web.Addr, Connections: b.connections, At: at,
		Request: func(buf []byte, i int) []byte { return request(buf, first+int64(i), wanted[i]) },
		Kind: func(status int, retry bool, body []byte) string {
			switch {
			case status == 201:
				return issued
			case status == 409 && bytes.Contains(body, []byte(`"sold_out"`)):
				return soldOut
			case status == 503 && retry:
				return busy
			}
			return fmt.Sprintf("%d, retry %v", status, retry)
		}})
	if err != nil {
		return m, err
	}
	after, err := b.web.CPU()
	m.cpu = (after - before) / time.Duration(taps)
	_, m.peakMiB = b.web.Memory()
	return m, errors.Join(err, b.account(ctx, m.OpenResult, taps, stock))
}

// account fails unless every tap got a true answer: as many coupons are stored as were promised,
// no stock is exceeded, and no drop with remaining stock was answered as sold out. Requests that
// were answered 503 may have been decided all the same.
func (b *bench) account(ctx context.Context, r load.OpenResult, taps, stock int) error {
	var coupons, most, left int
	err := b.SQL.QueryRow(ctx, `select sum(n), max(n), count(*) filter (where n < $1) from (
		select count(c.id) as n from templates t left join coupons c on c.template_id = t.id group by t.id) s`, stock).Scan(&coupons, &most, &left)
	if err != nil {
		return err
	}
	var errs []error
	for kind, n := range r.Kinds {
		if kind != issued && kind != soldOut && kind != busy {
			errs = append(errs, fmt.Errorf("%d answers %q: %s", n, kind, r.Examples[kind]))
		}
	}
	if coupons < r.Kinds[issued] || coupons > r.Kinds[issued]+r.Kinds[busy] {
		errs = append(errs, fmt.Errorf("%d coupons are stored, %d were promised and %d taps were answered 503", coupons, r.Kinds[issued], r.Kinds[busy]))
	}
	if most > stock {
		errs = append(errs, fmt.Errorf("%d coupons of a stock of %d", most, stock))
	}
	if r.Kinds[soldOut] > 0 && left == len(b.drops) {
		errs = append(errs, fmt.Errorf("%d users were told sold out of %d, and nothing is", r.Kinds[soldOut], taps))
	}
	return errors.Join(errs...)
}
