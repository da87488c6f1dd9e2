// Package idle measures the resources that the programs use when there is nothing to do: with
// every channel configured, and with published drops that open hours later. After half a minute
// of rest it measures the processor time of the programs, of PostgreSQL and of Redis over the
// next seconds, and counts their statements and commands.
//
//	go tool task bench:idle -- -drops 300 -seconds 30
package idle

import (
	"cmp"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Aims for each program at rest.
const (
	maxMiB = 64
	maxCPU = 1.0 // percent of a core; of the worker
)

type options struct {
	drops    int
	rest     time.Duration
	measured time.Duration
	bin      string
	roles    string
	commands bool
}

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	var o options
	f.IntVar(&o.drops, "drops", 0, "published drops, which open in hours")
	f.DurationVar(&o.rest, "rest", 30*time.Second, "rest before measuring")
	f.DurationVar(&o.measured, "for", 30*time.Second, "how long processor time is measured")
	bin := f.Bin()
	f.StringVar(&o.roles, "roles", "", "roles of the worker, separated by commas; empty = all")
	f.BoolVar(&o.commands, "commands", false, "list Redis's commands")
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		o.bin = *bin
		return bench(ctx, s, o)
	})
}

func bench(ctx context.Context, s *stack.Stack, o options) error {
	for i := range o.drops {
		if _, err := s.Drop(ctx, 3*time.Hour+time.Duration(i)*time.Minute); err != nil {
			return err
		}
	}
	env, err := everything()
	if err != nil {
		return err
	}
	if o.roles != "" {
		env = append(env, "WORKER_ROLES="+o.roles)
	}
	programs := map[string]*stack.Process{}
	names := []string{"web", "worker"}
	for _, name := range names {
		p, err := s.StartBuilt(ctx, o.bin, name, env...)
		if err != nil {
			return err
		}
		defer p.Stop()
		programs[name] = p
	}
	if err := stack.Pause(ctx, o.rest); err != nil {
		return err
	}
	before, err := look(ctx, s, programs)
	if err != nil {
		return err
	}
	if err := stack.Pause(ctx, o.measured); err != nil {
		return err
	}
	after, err := look(ctx, s, programs)
	if err != nil {
		return err
	}
	report(names, programs, before, after, o)
	return nil
}

// totals are sums since the start of each server and program.
type totals struct {
	at           time.Time
	cpu          map[string]time.Duration
	transactions int64
	commands     map[string]int64 // of Redis, by name
}

func look(ctx context.Context, s *stack.Stack, programs map[string]*stack.Process) (t totals, err error) {
	t = totals{at: time.Now(), cpu: map[string]time.Duration{}}
	for name, p := range programs {
		if t.cpu[name], err = p.CPU(); err != nil {
			return t, err
		}
	}
	if t.cpu["postgres"], err = s.PostgresCPU(ctx); err != nil {
		return t, err
	}
	if t.cpu["redis"], err = s.RedisCPU(ctx); err != nil {
		return t, err
	}
	if t.commands, err = commands(ctx, s); err != nil {
		return t, err
	}
	err = s.SQL.QueryRow(ctx, `select xact_commit + xact_rollback from pg_stat_database where datname = current_database()`).Scan(&t.transactions)
	return t, err
}

// commands returns how often each command of Redis was called.
func commands(ctx context.Context, s *stack.Stack) (map[string]int64, error) {
	client, err := s.RedisClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	info, err := client.Info(ctx, "commandstats").Result()
	calls := map[string]int64{}
	for line := range strings.Lines(info) {
		name, rest, found := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		n, _, _ := strings.Cut(rest, ",")
		if count, err := strconv.ParseInt(n, 10, 64); found && err == nil {
			calls[name] = count
		}
	}
	return calls, err
}

func report(names []string, programs map[string]*stack.Process, before, after totals, o options) {
	seconds := after.at.Sub(before.at).Seconds()
	percent := func(name string) float64 { return 100 * (after.cpu[name] - before.cpu[name]).Seconds() / seconds }
	fmt.Printf("%-8s %10s %10s %10s %10s\n", "program", "RSS MiB", "peak MiB", "% of core", "aim met")
	for _, name := range names {
		now, peak := programs[name].Memory()
		met := "yes"
		if now >= maxMiB || name == "worker" && percent(name) > maxCPU {
			met = "NO"
		}
		fmt.Printf("%-8s %10.1f %10.1f %10.2f %10s\n", name, now, peak, percent(name), met)
	}
	calls, sum := map[string]int64{}, int64(0)
	for name, n := range after.commands {
		calls[name] = n - before.commands[name]
		// The commands that a script calls are counted in addition to the script.
		sum += calls[name]
	}
	fmt.Printf("PostgreSQL %.2f %% of a core, %.1f transactions/s; Redis %.2f %%, %.1f commands/s with those inside scripts\n",
		percent("postgres"), float64(after.transactions-before.transactions)/seconds, percent("redis"), float64(sum)/seconds)
	if !o.commands {
		return
	}
	for _, name := range slices.SortedFunc(maps.Keys(calls), func(a, b string) int { return cmp.Compare(calls[b], calls[a]) }) {
		if calls[name] > 0 {
			fmt.Printf("%10.1f/s %s\n", float64(calls[name])/seconds, name)
		}
	}
}

// everything configures all channels, a first admin and a key.
func everything() ([]string, error) {
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	encode := base64.RawURLEncoding.EncodeToString
	return []string{
		"AUTH_JWT_SECRET=a secret that only this benchmark knows",
		"ADMIN_EMAIL=admin@bench.example", "ADMIN_PASSWORD=nobody signs in here", "ADMIN_API_KEY=dbk_nobodyusesthisonehere",
		"SMTP_URL=smtp://127.0.0.1:1?from=drops@shop.example", "SMS_URL=http://127.0.0.1:1/", "SMS_TOKEN=nobody",
		"WEBHOOK_URL=http://127.0.0.1:1/", "WEBHOOK_SECRET=whsec_YSBzZWNyZXQgdGhhdCBub2JvZHkgdXNlcw==",
		"VAPID_SUBJECT=mailto:drops@shop.example", "VAPID_PUBLIC_KEY=" + encode(key.PublicKey().Bytes()), "VAPID_PRIVATE_KEY=" + encode(key.Bytes()),
	}, nil
}
