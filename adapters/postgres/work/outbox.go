package work

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// An Announcement is one event in the outbox, or on its way to the bus.
type Announcement struct {
	// Seq is the event's number among the relayed events.
	Seq     int64
	ID      string
	Topic   string
	Payload []byte
	// Trace is the W3C traceparent of the event's cause, or "".
	Trace string
}

// Outbox hands committed events to the bus.
type Outbox struct {
	*pg.DB
	// Summed are the topics whose events are relayed only after [Outbox.Merge] has merged them.
	Summed []string

	place *place
}

// NewOutbox returns the outbox of db.
func NewOutbox(db *pg.DB) Outbox {
	return Outbox{DB: db, Summed: []string{}, place: &place{now: time.Now}}
}

// relaySQL moves events from the outbox to the relayed events and returns them. The events are
// selected once, by an array. With "in (select …)" the planner, for which the outbox is always
// empty, would run the subquery again for every deleted event.
const relaySQL = `
with gone as (
    delete from outbox where id = any(array(select id from outbox where id > $3 and (merged or topic <> all ($2)) order by id limit $1 for update skip locked))
    returning event_id, topic, payload, trace
)
insert into relayed_events (turn, event_id, topic, payload, trace)
select (select turn from event_relay), event_id, topic, payload, trace from gone
returning seq, event_id::text, topic, payload::text, trace`

// relayingSQL makes [Outbox.cut] wait until this transaction has ended.
const relayingSQL = `select pg_advisory_xact_lock_shared(hashtextextended('dropbell:relay', 0))`

// Relay takes up to limit events and passes them to publish. Once publish has returned nil,
// Relay stores them as relayed and returns their number. If the process dies in between, the
// events are published again. Several relays may run concurrently.
func (o Outbox) Relay(ctx context.Context, limit int, publish func(context.Context, []Announcement) error) (int, error) {
	n := 0
	err := o.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, relayingSQL); err != nil {
			return err
		}
		// The tuples deleted here come back if the transaction fails.
		list, err := pgx.CollectRows(pg.Rows(ctx, tx, relaySQL, limit, o.Summed, o.place.behind()), pgx.RowToStructByPos[Announcement])
		if err != nil || len(list) == 0 {
			return err
		}
		n = len(list)
		return publish(ctx, list)
	})
	return n, err
}

// waitingSQL reads the waiting events in the order of the index, since a table that was just
// emptied is full of dead rows. It also returns the last number drawn, and whether there are
// relayed events that are not known to be handled.
const waitingSQL = `
select count(*), coalesce(array_agg(distinct topic) filter (where topic = any($1) and not merged), '{}'), coalesce(min(id), 0),
    (select last_value - (not is_called)::int from outbox_id_seq),
    (select settled from event_relay) < (select last_value - (not is_called)::int from relayed_events_seq_seq)
from (select id, topic, merged from outbox where id > $3 order by id limit $2) o`

// Waiting returns how many events wait (counted up to limit), the topics of Summed that have
// waiting events which are not merged, and whether there are relayed events that are not known
// to be handled. A relay calls Waiting many times a second and mostly finds nothing, so Waiting
// is one statement. It reads only events after the events that have left; see [place]. Relay and
// Merge take the events that Waiting has found, and later events.
func (o Outbox) Waiting(ctx context.Context, limit int) (all int, unmerged []string, unsettled bool, err error) {
	start := o.place.start()
	var oldest, drawn int64
	err = o.Pool.QueryRow(ctx, waitingSQL, o.Summed, limit, start.id).Scan(&all, &unmerged, &oldest, &drawn, &unsettled)
	if err == nil && start.whole {
		o.place.looked(start.at, oldest, drawn)
	}
	return all, unmerged, unsettled, pg.Translate(err)
}

// takeSQL takes the oldest unmerged events of topic $1 that no other relay has. A merged event
// may have been published already.
const takeSQL = `
delete from outbox where id = any(array(select id from outbox where id > $3 and topic = $1 and not merged order by id limit $2 for update skip locked))
returning payload::text, trace, created_at`

// Merge replaces up to limit waiting events of a topic of Summed by the events that sum returns,
// which must have the same meaning. Merge is one transaction, which ends before any of the
// events is published: an event is part of one sum, and a sum keeps its id however often it is
// delivered. If sum fails, the events are relayed unmerged.
func (o Outbox) Merge(ctx context.Context, topic string, limit int, sum func(payloads [][]byte) ([][]byte, error)) error {
	var failed error
	err := o.Tx(ctx, func(tx pgx.Tx) error {
		rows := pg.Rows(ctx, tx, takeSQL, topic, limit, o.place.behind())
		var payloads [][]byte
		var first, trace string // of the first that is traced
		var oldest, at time.Time
		var payload []byte
		_, err := pgx.ForEachRow(rows, []any{&payload, &trace, &at}, func() error {
			payloads = append(payloads, slices.Clone(payload))
			first = cmp.Or(first, trace)
			if oldest.IsZero() || at.Before(oldest) {
				oldest = at
			}
			return nil
		})
		if err != nil || len(payloads) == 0 {
			return err
		}
		sums, err := sum(payloads)
		if err != nil {
			sums, failed = payloads, err
		}
		_, err = tx.Exec(ctx, `insert into outbox (topic, payload, trace, created_at, merged) select $1, p, $3, $4, true from unnest($2::jsonb[]) p`,
			topic, sums, first, oldest)
		return err
	})
	return errors.Join(failed, err)
}

// Backlog returns how many events wait and how old the oldest is in seconds.
func (o Outbox) Backlog(ctx context.Context) (waiting int64, oldestSeconds float64, err error) {
	err = o.Pool.QueryRow(ctx, `select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8
		from (select created_at from outbox order by id limit 100000) o`).Scan(&waiting, &oldestSeconds)
	return waiting, oldestSeconds, pg.Translate(err)
}
