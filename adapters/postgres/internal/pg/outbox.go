package pg

import (
	"context"
	"encoding/json"
	"strings"

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

// WaitingEvents returns a SELECT of the topics' events that the handler has not handled in the
// statement's snapshot. These are events in the outbox, and relayed events that are not known
// to be handled. A sum that the handler maintains differs from the rows by exactly these
// events. topics must be constants.
func WaitingEvents(handler string, topics ...string) string {
	list := "'" + strings.Join(topics, "', '") + "'"
	return `select topic, payload from (
        select event_id, topic, payload from outbox where topic in (` + list + `)
        union all
        select event_id, topic, payload from relayed_events where topic in (` + list + `) and seq > (select settled from event_relay)
    ) e where not exists (select from handled_events h where h.handler = '` + handler + `' and h.event_id = e.event_id)`
}

// Recounted records that the figure of the template was compared with the rows.
func Recounted(ctx context.Context, db *DB, templateID int64, figure string) error {
	_, err := db.Pool.Exec(ctx, `insert into figure_recounts (template_id, figure) values ($1, $2)
		on conflict (template_id, figure) do update set at = excluded.at`, templateID, figure)
	return Translate(err)
}
