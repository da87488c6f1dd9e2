package program

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/config"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/musttest"
	"dropbell/worker/commands"
)

// TestAFiringBehindATransactionPooler: two workers share two database sessions behind a
// transaction pooler and fire a slot. Every reminder is accounted for.
func TestAFiringBehindATransactionPooler(t *testing.T) {
	const users = 3500
	direct := localstack.Database(t)
	sql, err := pgxpool.New(t.Context(), direct)
	musttest.OK(t, err)
	t.Cleanup(sql.Close)
	rows.Drop{OpensAt: time.Now().Add(5 * time.Minute)}.Add(t, sql)
	for _, statement := range []string{
		`insert into slots (template_id, slot, opens_at, due_at, state) select id, 1, opens_at, opens_at - interval '5 minutes', 'waiting' from templates`,
		fmt.Sprintf(`insert into reservations (template_id, user_id, slots) select 1, i, 1 from generate_series(1, %d) as i`, users),
	} {
		if _, err := sql.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	env := environment("DATABASE_URL", localstack.TransactionPooler(t, direct, 2), "DATABASE_POOL_MODE", "transaction",
		"REDIS_URL", localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR", "127.0.0.1:0")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range cap(ended) {
		go func() { ended <- run(ctx, env, io.Discard) }()
	}
	poll(t, "everybody has an outcome", func() error {
		var sent int
		err := sql.QueryRow(t.Context(), `select coalesce(sum(r.sent), 0) from slots s join slot_results r on r.slot_id = s.id where s.state = 'finished'`).Scan(&sent)
		if err == nil && sent != users {
			err = fmt.Errorf("%d of %d sent", sent, users)
		}
		return err
	})
	stop()
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	var out strings.Builder
	if err := commands.Do(t.Context(), []string{"audit", "1"}, env, &out); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestATransactionPoolerIsNamed: a worker whose environment does not mention the transaction
// pooler reports it, and so do migrations, which need a connection that bypasses it.
func TestATransactionPoolerIsNamed(t *testing.T) {
	direct := localstack.Database(t)
	pooled := localstack.TransactionPooler(t, direct, 2)
	cfg, err := config.Load(environment("DATABASE_URL", pooled, "REDIS_URL", "redis://127.0.0.1:1"))
	musttest.OK(t, err)
	p, err := build(t.Context(), cfg, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	defer p.Close()
	if code, text := readiness(p); code != http.StatusServiceUnavailable || !strings.Contains(text, "set DATABASE_POOL_MODE=transaction") {
		t.Errorf("%d %s", code, text)
	}
	for _, c := range []struct {
		env  []string
		want string // in the error; "" = it migrates
	}{
		{[]string{"DATABASE_URL", pooled}, "DATABASE_URL leads to a connection pooler in transaction mode"},
		{[]string{"DATABASE_URL", pooled, "DATABASE_POOL_MODE", "transaction"}, "DATABASE_SESSION_URL is missing"},
		{[]string{"DATABASE_URL", pooled, "DATABASE_POOL_MODE", "transaction", "DATABASE_SESSION_URL", pooled}, "DATABASE_SESSION_URL leads to a connection pooler in transaction mode"},
		{[]string{"DATABASE_URL", pooled, "DATABASE_POOL_MODE", "transaction", "DATABASE_SESSION_URL", direct}, ""},
	} {
		err := commands.Do(t.Context(), []string{"migrate"}, environment(c.env...), io.Discard)
		if c.want == "" && err != nil || c.want != "" && (config.ExitCode(err) != 2 || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v", c.env, err)
		}
	}
}
