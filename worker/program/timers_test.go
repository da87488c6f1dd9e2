package program

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/cell"
	"dropbell/musttest"
)

// TestTimersComeBack runs a worker, loses its timers in three ways, and finds each timer
// scheduled again. A timer that
// is due soon afterwards fires by itself, not through the sweep.
func TestTimersComeBack(t *testing.T) {
	server := localstack.RedisServer(t)
	url := localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), url)
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := sql.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	rows.Drop{OpensAt: time.Now().Add(2 * time.Hour)}.Add(t, sql)
	exec(`insert into slots (template_id, slot, opens_at, due_at, state) select 1, n, t.opens_at, t.opens_at - n * interval '5 minutes', 'waiting' from templates t, generate_series(1, 12) as n`)
	var want []string
	for n := range 12 {
		want = append(want, fmt.Sprint("reminder.fire.v1:", 1+n*cell.Count))
	}
	env := map[string]string{"DATABASE_URL": url, "REDIS_URL": server.URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	options, err := goredis.ParseURL(server.URL())
	musttest.OK(t, err)
	client := goredis.NewClient(options)
	t.Cleanup(func() { client.Close() })
	for _, loss := range []struct {
		name string
		lose func() error
	}{
		{"a new Redis", func() error { return nil }},
		{"FLUSHALL", func() error { return client.FlushAll(t.Context()).Err() }},
		{"an empty restart", func() error { return server.Restart(t.Context(), true) }},
		{"a restart that lost the last writes", func() error {
			if err := client.ZRem(t.Context(), scheduledKey, want[3]).Err(); err != nil {
				return err
			}
			if err := client.Del(t.Context(), "asynq:{timers}:t:"+want[3]).Err(); err != nil {
				return err
			}
			return server.Restart(t.Context(), false)
		}},
	} {
		if err := loss.lose(); err != nil {
			t.Fatalf("%s: %v", loss.name, err)
		}
		began := time.Now()
		poll(t, loss.name, func() error { return absentTimers(t.Context(), client, want) })
		t.Logf("%s: every timer was there after %v", loss.name, time.Since(began))
	}
	const soon = 1 + 12*cell.Count
	exec(`insert into slots (template_id, slot, opens_at, due_at, state)
		select 1, 1, date_trunc('second', now()) + interval '315 seconds', date_trunc('second', now()) + interval '15 seconds', 'waiting'`)
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	poll(t, "the timer of the slot that is due soon", func() error {
		return absentTimers(t.Context(), client, []string{fmt.Sprint("reminder.fire.v1:", soon)})
	})
	var late time.Duration
	poll(t, "the slot is fired", func() error {
		return sql.QueryRow(t.Context(), `select fired_at - due_at from slots where id = $1 and fired_at is not null`, soon).Scan(&late)
	})
	t.Logf("fired %v after its instant", late)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// scheduledKey is where asynq keeps the ids of timers.
const scheduledKey = "asynq:{timers}:scheduled"

// absentTimers returns an error that names an id without a scheduled timer, if there is one.
func absentTimers(ctx context.Context, client *goredis.Client, ids []string) error {
	there, err := client.ZRange(ctx, scheduledKey, 0, -1).Result()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !slices.Contains(there, id) {
			return fmt.Errorf("%s is missing", id)
		}
	}
	return nil
}

// poll calls look until it returns nil.
func poll(t *testing.T, what string, look func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(localstack.Patience(t)); ; <-tick.C {
		err := look()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
