// Package network counts how many round trips to PostgreSQL, Redis and a provider follow each
// other in one operation, as on machines apart. web and worker reach their servers through proxies
// that delay all data. The proxies of web record each wait for an answer. For work of worker, which
// does other work beside, the number of round trips is the growth of the time, divided by the growth
// of the round trip.
//
//	go tool task bench:network -- -delays 0,1,5
package network

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/localstack/network"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	delays := f.Numbers("delays", "0,1,5", "milliseconds each way")
	times, runs, bin := f.Int("times", 40, "calls of each operation"), f.Runs(3), f.Bin()
	callers, lasting := f.Callers(1024), f.Lasting(4)
	many := f.Int("firing", 1_000_000, "reminders of the firing that is compared with 1 ms each way, 0 = none")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, times: *times, runs: *runs, callers: *callers, lasting: *lasting, many: *many, took: map[string]map[int]time.Duration{}, trips: map[string]string{}}
		return b.run(ctx, *bin, *delays)
	})
}

// The secrets of the programs.
const (
	secret   = "a secret of the benchmark, for HS256"
	key      = "dbk_the-key-of-the-benchmark"
	email    = "admin@bench.example"
	password = "a long one for the bench"
)

// bench has the programs behind proxies.
type bench struct {
	*stack.Stack
	times, runs, callers int
	many                 int
	lasting              time.Duration
	proxies              []*network.Proxy // of both programs
	paths                paths            // of web
	web                  *stack.Process
	http                 *http.Client
	calls                int   // so far; each has a user of its own
	paid                 int64 // coupons of payments so far
	names                []string
	took                 map[string]map[int]time.Duration // the median, by operation and milliseconds each way
	trips                map[string]string                // counted at the last delay, by operation
}

// paths are the proxies of one program.
type paths struct{ postgres, redis *network.Proxy }

func (b *bench) run(ctx context.Context, bin string, delays []int) error {
	bin, remove, err := stack.Programs(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if err := b.Users(ctx, audience); err != nil {
		return err
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer provider.Close()
	env := []string{"AUTH_JWT_SECRET=" + secret, "ADMIN_API_KEY=" + key, "ADMIN_EMAIL=" + email, "ADMIN_PASSWORD=" + password, "CONSOLE_SECOND_FACTOR=optional",
		"RATE_LIMIT_PER_MINUTE=0", "RATE_LIMIT_KEY_PER_MINUTE=0", "WEBHOOK_SECRET=whsec_YSBzZWNyZXQgdGhhdCBvbmx5IHRoaXMgYmVuY2htYXJrIGtub3dz"}
	defer func() {
		for _, p := range b.proxies {
			p.Close()
		}
	}()
	for _, name := range []string{"worker", "web"} {
		var through [3]string
		for i, address := range []string{b.PostgresURL, b.RedisURL, provider.URL} {
			p, by, err := network.Through(address)
			if err != nil {
				return err
			}
			b.proxies, through[i] = append(b.proxies, p), by
		}
		p, err := b.Launch(filepath.Join(bin, name), stack.Launch{Env: append(env,
			"DATABASE_URL="+through[0], "REDIS_URL="+through[1], "WEBHOOK_URL="+through[2])})
		if err != nil {
			return err
		}
		defer p.Stop()
		if err := p.Ready(ctx, time.Minute); err != nil {
			return err
		}
		b.web, b.paths = p, paths{b.proxies[len(b.proxies)-3], b.proxies[len(b.proxies)-2]}
	}
	b.http = &http.Client{Timeout: 30 * time.Second}
	visitor, err := stack.SignIn(ctx, "http://"+b.web.Addr, email, password)
	if err != nil {
		return err
	}
	for _, ms := range delays {
		b.delay(ms)
		if err := b.operations(ctx, ms, visitor); err != nil {
			return fmt.Errorf("%d ms each way: %w", ms, err)
		}
	}
	b.print(delays)
	if err := b.rates(ctx); err != nil || b.many == 0 {
		return err
	}
	return b.large(ctx)
}

// delay sets the delay each way of all connections of the programs.
func (b *bench) delay(ms int) {
	for _, p := range b.proxies {
		p.SetDelay(time.Duration(ms) * time.Millisecond)
	}
}

// record keeps and prints the median of the times.
func (b *bench) record(name string, ms int, took []time.Duration) {
	if b.took[name] == nil {
		b.took[name] = map[int]time.Duration{}
		b.names = append(b.names, name)
	}
	b.took[name][ms] = stack.Median(took)
	fmt.Printf("%d ms each way: %s: %s\n", ms, name, b.took[name][ms].Round(10*time.Microsecond))
}

// roundTrips is the growth of the time between the least and the greatest delay that is not 0,
// divided by the growth of a round trip. Without two delays it is 0.
func roundTrips(took map[int]time.Duration) float64 {
	list := slices.Sorted(maps.Keys(took))
	list = slices.DeleteFunc(list, func(ms int) bool { return ms == 0 && len(took) > 2 })
	if len(list) < 2 {
		return 0
	}
	from, to := list[0], list[len(list)-1]
	return float64(took[to]-took[from]) / float64(2*time.Duration(to-from)*time.Millisecond)
}

func (b *bench) print(delays []int) {
	head := "| operation | PostgreSQL / Redis, counted |"
	for _, ms := range delays {
		head += fmt.Sprintf(" %d ms each way |", ms)
	}
	fmt.Println(head + " by the growth of the time |")
	fmt.Println("|---|---|" + strings.Repeat("---|", len(delays)+1))
	for _, name := range b.names {
		row := "| " + name + " | " + b.trips[name] + " |"
		for _, ms := range delays {
			row += fmt.Sprintf(" %.1f ms |", float64(b.took[name][ms])/float64(time.Millisecond))
		}
		fmt.Printf("%s %.1f |\n", row, roundTrips(b.took[name]))
	}
}

// reservation is the body of a request for the i-th of the app's twelve reminders.
func reservation(templateID int64, i int) string {
	return `{"template_id":"` + strconv.FormatInt(templateID, 10) + `","shop_number":"10","reminders":[{"channel":"app","minutes":` + strconv.Itoa(5*(1+i%12)) + `}]}`
}
