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

// AnnounceAll writes events of one topic into the outbox of the running transaction.
func AnnounceAll(ctx context.Context, tx pgx.Tx, topic string, payloads []any) error {
	if len(payloads) == 0 {
		return nil
	}
	texts := make([]string, len(payloads))
	for i, p := range payloads {
		b, err := json.Marshal(p)
		if err != nil {
			return err
		}
		texts[i] = string(b)
	}
	_, err := tx.Exec(ctx, `insert into outbox (topic, payload, trace) select $1, p::jsonb, $3 from unnest($2::text[]) as p`, topic, texts, TraceOf(ctx))
	return err
}
