package work

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// An Announcement is one event on its way out.
type Announcement struct {
	ID      string
	Topic   string
	Payload []byte
	// Trace is the W3C traceparent of what caused it, or "".
	Trace string
}

// Outbox hands committed events to the bus.
type Outbox struct{ *pg.DB }

// NewOutbox returns the outbox of db.
func NewOutbox(db *pg.DB) Outbox { return Outbox{db} }

// relaySQL chooses once: as "in (select …)" the planner, for which the outbox
// is always empty, would choose again for every event it deletes.
const relaySQL = `
delete from outbox where id = any(array(select id from outbox order by id limit $1 for update skip locked))
returning event_id::text, topic, payload::text, trace`

// Relay takes up to limit events, passes them to publish and forgets them
// once publish returned nil; it returns how many there were. If the process
// dies in between they are published again. Several relays may run at once.
func (o Outbox) Relay(ctx context.Context, limit int, publish func(context.Context, []Announcement) error) (int, error) {
	// A relay looks many times a second and mostly at nothing: that is one
	// statement, not a transaction of three. In the order of the index, since a
	// table that was just emptied is full of dead rows.
	var waiting int
	err := o.Pool.QueryRow(ctx, `select count(*) from (select from outbox order by id limit 1) o`).Scan(&waiting)
	if err != nil || waiting == 0 {
		return 0, pg.Translate(err)
	}
	n := 0
	err = o.Tx(ctx, func(tx pgx.Tx) error {
		// The tuples deleted here come back if the transaction fails.
		rows, err := tx.Query(ctx, relaySQL, limit)
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Announcement])
		if err != nil || len(list) == 0 {
			return err
		}
		n = len(list)
		return publish(ctx, list)
	})
	return n, err
}

// Backlog returns how many events wait and how old the oldest is in seconds.
func (o Outbox) Backlog(ctx context.Context) (waiting int64, oldestSeconds float64, err error) {
	err = o.Pool.QueryRow(ctx, `select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8
		from (select created_at from outbox order by id limit 100000) o`).Scan(&waiting, &oldestSeconds)
	return waiting, oldestSeconds, pg.Translate(err)
}
