// Package flood measures GET /api/v1/inbox minutes before an opening: a million users were
// reminded in the app and tap the reminder. Each user also has reservations of four earlier drops
// whose reminders were sent days ago, and twenty campaigns in the app reached two users of five.
// Measured are pages over HTTP with token and JSON from kept connections, and the processor time
// of the server and of PostgreSQL per page. The floor is a bare chi handler that reads how far the
// user has read and the user's reservations in one statement and answers a page of the same size.
//
//	go tool task bench:flood -- -users 1000000 -seconds 8 -runs 3
//
// With -sending a batch is stored again every millisecond, as while a slot is being sent.
package flood

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"

	"dropbell/domain/delivery"
	"dropbell/lab/bench/load"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/serve"
	"dropbell/lab/bench/stack"
)

const (
	secret    = "a secret that only this benchmark knows"
	batchSize = 1000 // recipients of a batch
	earlier   = 4    // drops before, of which each user has a reservation
	campaigns = 20
	readers   = 20_000 // users with tokens, spread over all users
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	serve := f.String("serve", "", "internal: be the server of this kind")
	users, conns := f.Int("users", 1_000_000, "users who were reminded"), f.Int("c", 256, "connections")
	seconds, runs := f.Int("seconds", 8, "seconds per measurement"), f.Runs(3)
	sending := f.Bool("sending", false, "store a batch again every millisecond meanwhile")
	measure := scenario.Measured(func(ctx context.Context, s *stack.Stack) error {
		return bench(ctx, s, *users, *conns, *seconds, *runs, *sending)
	})
	return func(ctx context.Context) error {
		if *serve != "" {
			return server(*serve)
		}
		return measure(ctx)
	}
}

func bench(ctx context.Context, s *stack.Stack, users, conns, seconds, runs int, sending bool) error {
	if err := fill(ctx, s, users); err != nil {
		return err
	}
	tokens := make([]string, readers)
	for i := range tokens {
		var err error
		if tokens[i], err = load.Token(secret, reader(i, users)); err != nil {
			return err
		}
	}
	fmt.Printf("%d users, %d connections, %d s each\n%-34s %10s %9s %9s %10s %10s\n", users, conns, seconds, "server", "pages/s", "p50", "p99", "server us", "PG us")
	plan := load.Plan{Connections: conns, Warmup: 3 * time.Second, Duration: time.Duration(seconds) * time.Second, Expect: []int{200},
		Request: func(b []byte, i int64) []byte {
			b = append(b, "GET /api/v1/inbox HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer "...)
			b = append(b, tokens[i*7919%readers]...)
			return append(b, "\r\n\r\n"...)
		}}
	if sending {
		ends, wait := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- send(ends, s) }()
		defer func() { wait(); <-done }()
	}
	rates := map[string][]float64{}
	for range runs {
		for _, kind := range []string{"bare", "page"} {
			r, err := serve.Measure(ctx, s, "flood", kind, plan)
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			rates[kind] = append(rates[kind], r.PerSecond)
			fmt.Printf("%-34s %10.0f %9s %9s %10.1f %10.1f\n", titles[kind], r.PerSecond, r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond),
				r.Each(r.Server), r.Each(r.Postgres))
		}
	}
	var ratios []float64
	for i := range rates["page"] {
		ratios = append(ratios, rates["page"][i]/rates["bare"][i])
	}
	fmt.Printf("page/bare: %s\n", stack.Spread(ratios))
	return nil
}

var titles = map[string]string{"bare": "bare handler that reads the rows", "page": "page of the inbox (what web does)"}

// reader is the i-th user with a token.
func reader(i, users int) int { return 1 + i*(users/readers) }

// fill stores the users, the drop, the earlier drops and the campaigns with their batches.
func fill(ctx context.Context, s *stack.Stack, users int) error {
	if users < readers || users%readers != 0 {
		return fmt.Errorf("choose a multiple of %d users", readers)
	}
	if err := s.Users(ctx, users); err != nil {
		return err
	}
	for i := range earlier + 1 {
		t, err := s.Drop(ctx, time.Hour)
		if err != nil {
			return err
		}
		if err := s.Reserve(ctx, t.ID, users, stack.Bit(delivery.App)); err != nil {
			return err
		}
		age := fmt.Sprintf("%d hours", 1+i*48)
		if _, err := s.SQL.Exec(ctx, `update slots set state = 'finished', fired_at = now() - $2::interval, cut_at = now() - $2::interval, finished_at = now() - $2::interval
			where template_id = $1 and slot = 1`, t.ID, age); err != nil {
			return err
		}
		if err := batches(ctx, s, users, 1, `select 'reminder', id, template_id, now() - $5::interval from slots where template_id = $6 and slot = 1`, age, t.ID); err != nil {
			return err
		}
	}
	for i := range campaigns {
		var id int64
		if err := s.SQL.QueryRow(ctx, `insert into campaigns (name, channel, content, audience, starts_at, ends_at, state, creator, created_by, started_at, ended_at, settled_at)
			values ('Campaign ' || $1::int, 0, $2, '{}', now() - interval '9 days', now() + interval '1 day', 'finished', 'ann', 'ann', now() - interval '9 days',
				now() - interval '8 days', now() - interval '8 days') returning id`, i, stack.Wording("Everything is 20 % off this week.")).Scan(&id); err != nil {
			return err
		}
		if err := batches(ctx, s, users, 2.5, `select 'campaign', $6::bigint, 0, now() - $5::interval`, "8 days", id); err != nil {
			return err
		}
	}
	_, err := s.SQL.Exec(ctx, `insert into inbox_reads (user_id, read_through) select id, now() - interval '7 days' from users`)
	if err == nil {
		_, err = s.SQL.Exec(ctx, `vacuum analyze`)
	}
	return err
}

// batches stores the sent in-app batches of one owner to every n-th user. owner is SQL that returns
// kind, owner, template and instant.
func batches(ctx context.Context, s *stack.Stack, users int, every float64, owner string, args ...any) error {
	var from, to []int64
	var sets [][]byte
	for first := 0.0; int(first) < users; {
		set := roaring64.New()
		for ; set.GetCardinality() < batchSize && int(first) < users; first += every {
			set.Add(uint64(first) + 1)
		}
		set.RunOptimize()
		raw, err := set.ToBytes()
		if err != nil {
			return err
		}
		from, to, sets = append(from, int64(set.Minimum())), append(to, int64(set.Maximum())), append(sets, raw)
	}
	_, err := s.SQL.Exec(ctx, `insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, finished_at)
		select o.kind, o.id, o.template_id, 0, b.f, b.t, 'done', o.at, o.at, b.s, b.s, $4, $4, o.at
		from unnest($1::bigint[], $2::bigint[], $3::bytea[]) as b (f, t, s), (`+owner+`) as o (kind, id, template_id, at)`,
		append([]any{from, to, sets, batchSize}, args...)...)
	return err
}

// send stores one batch of the newest drop after the other again, until ctx ends.
func send(ctx context.Context, s *stack.Stack) error {
	var ids []int64
	if err := s.SQL.QueryRow(ctx, `select array_agg(id) from batches where kind = 'reminder' and template_id = (select max(template_id) from batches)`).Scan(&ids); err != nil {
		return err
	}
	ticks := time.NewTicker(time.Millisecond)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if _, err := s.SQL.Exec(ctx, `update batches set finished_at = finished_at + interval '1 microsecond' where id = $1`, ids[i%len(ids)]); err != nil {
				return errors.Join(err, errors.New("batch "+strconv.FormatInt(ids[i%len(ids)], 10)))
			}
		}
	}
}
