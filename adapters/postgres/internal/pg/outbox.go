package pg

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"
)

// Announce writes an event into the outbox of the running transaction.
func Announce(ctx context.Context, tx pgx.Tx, topic string, payload any) error {
	b, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into outbox (topic, payload, trace) values ($1, $2, $3)`, topic, b, TraceOf(ctx))
	return err
}
