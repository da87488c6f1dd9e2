// Package reserve measures POST /api/v1/reservations with token, JSON and durable commit from
// 256 kept connections, with and without an Idempotency-Key. The comparisons in the same run are
// a bare chi handler that parses and answers the same JSON, the same handler behind one layer
// after another of the product's middleware (all without a database), and the same server with
// one statement per request. The floor is the bare handler whose request waits until a bare
// upsert has stored its row in a group, and with keys also the row of its key. The processor
// time is the time of the server and of PostgreSQL per request.
//
//	go tool task bench:reserve -- -seconds 8 -runs 3
//	go tool task bench:reserve -- -only bare,parse,floor,group,keyedfloor,keyed
//
// CPU_PROFILE=reserve.pprof writes a profile per server kind.
package reserve

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/serve"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	serve := f.String("serve", "", "internal: be the server of this kind")
	conns, seconds, runs := f.Int("c", 256, "connections"), f.Int("seconds", 8, "seconds per measurement"), f.Runs(3)
	only := f.String("only", "", "kinds of servers, separated by commas; empty = all of them")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *conns, *seconds, *runs, *only) })
	return func(ctx context.Context) error {
		if *serve != "" {
			return server(*serve)
		}
		return measure(ctx)
	}
}

// benchUsers is how many users reserve.
const benchUsers = 20_000

// kinds are the servers in the order of the table.
var kinds = []string{"bare", "limits", "chain", "open", "token", "rate", "parse", "single", "floor", "group", "keyedfloor", "keyed"}

var titles = map[string]string{
	"bare":       "bare chi handler, same JSON",
	"limits":     "+ time limits of connections",
	"chain":      "+ id, log, metrics, headers, body's time",
	"open":       "+ pipeline: body, time limit, no caller",
	"token":      "+ token",
	"rate":       "+ rate limit, budget",
	"parse":      "all of it, and JSON of its own, no database",
	"floor":      "bare handler that waits for a bare upsert",
	"single":     "one statement per request",
	"keyedfloor": "the floor, and the bare insert of a key each",
	"group":      "group commit (what web does)",
	"keyed":      "the same, with an Idempotency-Key each",
}

func bench(ctx context.Context, s *stack.Stack, conns, seconds, runs int, only string) error {
	chosen := kinds
	if only != "" {
		chosen = strings.Split(only, ",")
	}
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return err
	}
	tokens, err := load.Tokens(secret, benchUsers)
	if err != nil {
		return err
	}
	fmt.Printf("%d connections, %d s each\n%-42s %10s %9s %9s %9s %10s %10s\n", conns, seconds, "server", "req/s", "p50", "p99", "max", "server us", "PG us")
	rates := map[string][]float64{}
	for range runs {
		for _, kind := range chosen {
			r, err := measure(ctx, s, kind, plan(t.ID, tokens, conns, seconds, kind == "keyed" || kind == "keyedfloor"))
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			rates[kind] = append(rates[kind], r.PerSecond)
			fmt.Printf("%-44s %8.0f %9s %9s %9s %10.1f %10.1f\n", titles[kind], r.PerSecond, round(r.P50), round(r.P99), round(r.Max), r.Each(r.Server), r.Each(r.Postgres))
		}
	}
	for _, of := range [][2]string{{"parse", "bare"}, {"group", "bare"}, {"floor", "bare"}, {"group", "floor"}, {"group", "parse"}, {"group", "single"}, {"keyed", "group"},
		{"keyedfloor", "floor"}, {"keyed", "keyedfloor"}} {
		var rs []float64
		for i := range min(len(rates[of[0]]), len(rates[of[1]])) {
			rs = append(rs, rates[of[0]][i]/rates[of[1]][i])
		}
		if len(rs) > 0 {
			fmt.Printf("%s/%s: %s\n", of[0], of[1], stack.Spread(rs))
		}
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }

func measure(ctx context.Context, s *stack.Stack, kind string, p load.Plan) (serve.Result, error) {
	if _, err := s.SQL.Exec(ctx, `truncate reservations, outbox, idempotency_keys`); err != nil {
		return serve.Result{}, err
	}
	r, err := serve.Measure(ctx, s, "reserve", kind, p)
	if err == nil && slices.Contains([]string{"group", "single", "keyed", "floor", "keyedfloor"}, kind) {
		err = stored(ctx, s, r.Requests)
	}
	return r, err
}

// stored fails unless every answered request is in the table.
func stored(ctx context.Context, s *stack.Stack, answered int64) error {
	var bits int64
	if err := s.SQL.QueryRow(ctx, `select coalesce(sum(bit_count(slots::bit(64))), 0) from reservations`).Scan(&bits); err != nil {
		return err
	}
	if bits < answered {
		return fmt.Errorf("%d requests were answered, %d reminders are stored", answered, bits)
	}
	return nil
}

// plan sends reminder i/len(tokens) of the sixty for user i%len(tokens). No request repeats
// another request, and rows are both inserted and updated.
func plan(templateID int64, tokens []string, conns, seconds int, keyed bool) load.Plan {
	channels := []string{"app", "email", "sms", "webpush", "webhook"}
	users := int64(len(tokens))
	template := strconv.FormatInt(templateID, 10)
	return load.Plan{Connections: conns, Warmup: time.Second, Duration: time.Duration(seconds) * time.Second, Expect: []int{200, 201},
		Request: func(b []byte, i int64) []byte {
			round := i / users
			body := `{"template_id":"` + template + `","shop_number":"10","reminders":[{"channel":"` + channels[round%5] +
				`","minutes":` + strconv.FormatInt(5*(1+round/5%12), 10) + `}]}`
			fields := ""
			if keyed {
				fields = "Idempotency-Key: bench-" + strconv.FormatInt(i, 10) + "\r\n"
			}
			return load.Post(b, "/api/v1/reservations", tokens[i%users], fields, body)
		}}
}
