package program

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest/rows"
)

// TestADueSlotIsFired: a slot falls due while no worker runs. A worker that starts with an empty
// Redis fires the slot.
func TestADueSlotIsFired(t *testing.T) {
	env := environment("DATABASE_URL", localstack.Database(t), "REDIS_URL", localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR", "127.0.0.1:0")
	sql, err := pgxpool.New(t.Context(), env("DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sql.Close)
	slot := rows.ID(t, sql, "slots", rows.Row{"template_id": rows.Drop{}.Add(t, sql), "due_at": rows.SQL("now()")})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, env, io.Discard) }()
	poll(t, "the slot is fired", func() error {
		var fired bool
		err := sql.QueryRow(t.Context(), `select fired_at is not null from slots where id = $1`, slot).Scan(&fired)
		if err == nil && !fired {
			err = errors.New("the slot waits")
		}
		return err
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
