// Package network measures how many round trips to PostgreSQL, Redis and a provider follow each
// other in one operation, as on machines apart. web and worker reach their servers through a proxy
// that delays all data. The number of round trips is the growth of an operation's time, divided by the
// growth of the round trip.
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

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	delays := f.Numbers("delays", "0,1,5", "milliseconds each way")
	times, runs, bin := f.Int("times", 40, "calls of each operation"), f.Runs(3), f.Bin()
	callers, lasting := f.Callers(1024), f.Lasting(4)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		b := &bench{Stack: s, times: *times, runs: *runs, callers: *callers, lasting: *lasting, took: map[string]map[int]time.Duration{}}
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
	lasting              time.Duration
	proxies              []*Proxy
	web                  *stack.Process
	http                 *http.Client
	calls                int // so far; each has a user of its own
	names                []string
	took                 map[string]map[int]time.Duration // the median, by operation and milliseconds each way
}

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
	for name, address := range map[string]string{"DATABASE_URL": b.PostgresURL, "REDIS_URL": b.RedisURL, "WEBHOOK_URL": provider.URL} {
		p, by, err := Through(address)
		if err != nil {
			return err
		}
		defer p.Close()
		b.proxies, env = append(b.proxies, p), append(env, name+"="+by)
	}
	for _, name := range []string{"worker", "web"} {
		p, err := b.Launch(filepath.Join(bin, name), stack.Launch{Log: io.Discard, Env: env})
		if err != nil {
			return err
		}
		defer p.Stop()
		if err := p.Ready(ctx, time.Minute); err != nil {
			return err
		}
		b.web = p
	}
	b.http = &http.Client{Timeout: 30 * time.Second}
	visitor, err := stack.SignIn(ctx, "http://"+b.web.Addr, email, password)
	if err != nil {
		return err
	}
	for _, ms := range delays {
		for _, p := range b.proxies {
			p.SetDelay(time.Duration(ms) * time.Millisecond)
		}
		if err := b.operations(ctx, ms, visitor); err != nil {
			return fmt.Errorf("%d ms each way: %w", ms, err)
		}
	}
	b.print(delays)
	return b.rates(ctx)
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
	head := "| operation |"
	for _, ms := range delays {
		head += fmt.Sprintf(" %d ms each way |", ms)
	}
	fmt.Println(head + " round trips |")
	fmt.Println("|---|" + strings.Repeat("---|", len(delays)+1))
	for _, name := range b.names {
		row := "| " + name + " |"
		for _, ms := range delays {
			row += fmt.Sprintf(" %.1f ms |", float64(b.took[name][ms])/float64(time.Millisecond))
		}
		fmt.Printf("%s %.1f |\n", row, roundTrips(b.took[name]))
	}
}

// rates prints how many reservations a second many callers make without a delay and with 1 ms each
// way, in turns.
func (b *bench) rates(ctx context.Context) error {
	var ratios []float64
	for range b.runs {
		rate := map[int]float64{}
		for _, ms := range []int{0, 1} {
			for _, p := range b.proxies {
				p.SetDelay(time.Duration(ms) * time.Millisecond)
			}
			drop, err := b.Drop(ctx, 3*time.Hour)
			if err != nil {
				return err
			}
			tokens, err := load.Tokens(secret, int(b.lasting.Seconds()*mostPerSecond))
			if err != nil {
				return err
			}
			body := reservation(drop.ID, 0)
			r, err := load.Run(load.Plan{Addr: b.web.Addr, Connections: b.callers, Duration: b.lasting, Expect: []int{200, 201},
				Request: func(to []byte, i int64) []byte {
					return load.Post(to, "/api/v1/reservations", tokens[i%int64(len(tokens))], "", body)
				}})
			if err == nil && r.Failures > 0 {
				err = fmt.Errorf("%d of %d requests failed, e.g. %s", r.Failures, r.Requests, r.Example)
			}
			if err != nil {
				return err
			}
			rate[ms] = r.PerSecond
		}
		ratios = append(ratios, rate[1]/rate[0])
		fmt.Printf("%d callers reserve: %.0f/s without a delay, %.0f/s with 1 ms each way\n", b.callers, rate[0], rate[1])
	}
	fmt.Printf("median: %.2f of the rate without a delay (aim: at least 0.9)\n", stack.Median(ratios))
	return nil
}

// mostPerSecond is more than two cores answer.
const mostPerSecond = 40_000

// reservation is the body of a request for the i-th of the app's twelve reminders.
func reservation(templateID int64, i int) string {
	return `{"template_id":"` + strconv.FormatInt(templateID, 10) + `","shop_number":"10","reminders":[{"channel":"app","minutes":` + strconv.Itoa(5*(1+i%12)) + `}]}`
}
