// Package recipes measures how long a round of a recipe takes from the minute at which it is due until its users are found, its
// campaign is published, the audience is stored and each user has an outcome, through a real worker. It also counts the
// rows and Redis keys that a round makes: none of them is a timer of a user.
//
// The floor streams the same user ids out of PostgreSQL in the same run.
//
//	go tool task bench:recipes
package recipes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/recipe"
	"dropbell/lab/bench/scenario"
	"dropbell/lab/bench/stack"
)

// Scenario is the benchmark with its flags.
func Scenario(f scenario.Flags) scenario.Run {
	n, runs := f.Int("n", 1_000_000, "users who reserved a drop and did not claim"), f.Runs(3)
	return scenario.Measured(func(ctx context.Context, s *stack.Stack) error { return bench(ctx, s, *n, *runs) })
}

func bench(ctx context.Context, s *stack.Stack, n, runs int) error {
	if _, err := s.SQL.Exec(ctx, `insert into users (id) select generate_series(1, $1::bigint)`, n); err != nil {
		return err
	}
	worker, err := s.StartProgram(ctx, "worker")
	if err != nil {
		return err
	}
	defer worker.Stop()
	var started, ratios []float64
	for range runs {
		r, err := once(ctx, s, n)
		if err != nil {
			return err
		}
		fmt.Printf("%d users: found after %.2f s, published %.2f s, audience stored %.2f s, all recorded %.2f s; streaming the ids %.2f s; %d rows stored, %d more keys in Redis\n",
			n, r.found, r.published, r.cut, r.all, r.floor, r.rows, r.keys)
		started, ratios = append(started, r.cut), append(ratios, r.published/r.floor)
	}
	fmt.Printf("median: the audience is stored %.2f s after the round was due; published after %.2f times the floor\n", stack.Median(started), stack.Median(ratios))
	return nil
}

// A result has the seconds since the round was due, and what it made.
type result struct {
	floor, found, published, cut, all float64
	rows, keys                        int64
}

// once opens a drop that all users have reserved, with the recipe turned on.
func once(ctx context.Context, s *stack.Stack, n int) (r result, err error) {
	t, err := s.Drop(ctx, 3*time.Hour)
	if err != nil {
		return r, err
	}
	if err := s.Reserve(ctx, t.ID, n, 1); err != nil {
		return r, err
	}
	begun := time.Now()
	var users int
	rows, err := s.SQL.Query(ctx, `select user_id from reservations where template_id = $1`, t.ID)
	if err != nil {
		return r, err
	}
	for rows.Next() {
		users++
	}
	if r.floor = time.Since(begun).Seconds(); rows.Err() != nil || users != n {
		return r, fmt.Errorf("%d of %d users: %w", users, n, rows.Err())
	}
	client, err := s.RedisClient()
	if err != nil {
		return r, err
	}
	defer client.Close()
	keys, stored := client.DBSize(ctx).Val(), int64(0)
	const inserted = `select sum(n_tup_ins)::bigint from pg_stat_user_tables`
	if err := s.SQL.QueryRow(ctx, inserted).Scan(&stored); err != nil {
		return r, err
	}
	settings, err := json.Marshal(recipe.Settings{On: true, AfterMinutes: 1, Channel: delivery.App, Texts: map[string]delivery.Text{"": {Title: "Still there", Body: "Some coupons of {{drop}} are left."}}})
	if err != nil {
		return r, err
	}
	var due time.Time
	for _, sql := range []string{
		`update templates set opens_at = date_trunc('second', clock_timestamp()) - interval '61 seconds' where id = ` + fmt.Sprint(t.ID),
		`insert into recipes (shop_number, form, settings, is_on, since) values (10, 'missed', '` + string(settings) + `', true, now() - interval '1 hour')
			on conflict (shop_number, form) do update set is_on = true, due_at = clock_timestamp()`,
	} {
		if _, err := s.SQL.Exec(ctx, sql); err != nil {
			return r, err
		}
	}
	if err := s.SQL.QueryRow(ctx, `select due_at from recipes`).Scan(&due); err != nil {
		return r, err
	}
	var found *time.Time
	err = stack.Until(ctx, 50*time.Millisecond, func() (done bool, err error) {
		var state string
		if err := s.SQL.QueryRow(ctx, `select coalesce((select state from recipe_rounds where template_id = $1), 'none')`, t.ID).Scan(&state); err != nil {
			return false, err
		}
		if now := time.Now(); found == nil && state != "none" && state != "begun" {
			found = &now
		}
		err = s.SQL.QueryRow(ctx, `select count(*) > 0 from recipe_rounds o join campaigns c on c.id = o.campaign_id where o.template_id = $1 and c.settled_at is not null`, t.ID).Scan(&done)
		return done, err
	})
	if err != nil {
		return r, err
	}
	r.found = found.Sub(due).Seconds()
	var sent int
	if err := s.SQL.QueryRow(ctx, `select extract(epoch from c.published_at - $2)::float8, extract(epoch from c.cut_at - $2)::float8,
		extract(epoch from (select max(finished_at) from batches where kind = 'campaign' and owner_id = c.id) - $2)::float8,
		(select sum(sent_count) from batches where kind = 'campaign' and owner_id = c.id)
		from recipe_rounds o join campaigns c on c.id = o.campaign_id where o.template_id = $1`, t.ID, due).Scan(&r.published, &r.cut, &r.all, &sent); err != nil {
		return r, err
	}
	if sent != n {
		return r, fmt.Errorf("%d of %d users were sent to", sent, n)
	}
	after := int64(0)
	err = s.SQL.QueryRow(ctx, inserted).Scan(&after)
	r.rows, r.keys = after-stored, client.DBSize(ctx).Val()-keys
	return r, err
}
