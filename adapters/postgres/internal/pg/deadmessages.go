package pg

import (
	"context"

	"dropbell/domain/staff"
)

// KeepDeadMessage stores a message that a handler has given up on, once for each
// handler. Any content is accepted: a message that could not be stored would be
// redelivered forever.
func KeepDeadMessage(ctx context.Context, db *DB, m staff.DeadMessage) error {
	_, err := db.Pool.Exec(ctx, `insert into dead_messages (message_id, topic, handler, reason, payload) values ($1, $2, $3, left($4, 4000), $5)
		on conflict (message_id, handler) do update set reason = excluded.reason, at = now(), requeued_at = null, discarded_at = null`,
		Storable(m.MessageID), Storable(m.Topic), m.Handler, Storable(m.Reason), m.Payload)
	return Translate(err)
}
