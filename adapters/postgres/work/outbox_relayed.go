package work

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
)

// Relayed events are stored in one of two tables. After keptRows events, or after keptFor, the
// other table is emptied and used next.
const (
	keptRows = 100_000
	keptFor  = 10 * time.Minute
)

// Relayed is how far events have got that were relayed.
type Relayed struct {
	// Settled is the seq up to which every handler has acknowledged them.
	Settled int64
	// Mark is the number that the marks of the streams have.
	Mark int64
	// History is the history of the database in which these numbers were drawn, "" before the
	// first read. Now is the current history of the database, which changes with a restore and
	// with a failover.
	History, Now string
}

// historySQL returns the history of the database: the server's identifier, the database in it,
// and the timeline, which a promotion and a restore change.
const historySQL = `select (select system_identifier::text from pg_control_system()) || ' '
    || (select oid::text from pg_database where datname = current_database()) || ' ' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)`

// unknownHistory is the history of every database whose role may not read the history.
const unknownHistory = "unknown"

func (o Outbox) history(ctx context.Context) (h string, err error) {
	err = o.Pool.QueryRow(ctx, historySQL).Scan(&h)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "42501" {
		return unknownHistory, nil
	}
	return h, err
}

// Relayed returns how far the relayed events have got.
func (o Outbox) Relayed(ctx context.Context) (r Relayed, err error) {
	if r.Now, err = o.history(ctx); err != nil {
		return r, pg.Translate(err)
	}
	err = o.Pool.QueryRow(ctx, `select settled, mark, history from event_relay`).Scan(&r.Settled, &r.Mark, &r.History)
	return r, pg.Translate(err)
}

// Last returns the seq of the last event whose relay has begun, once all relays up to that event
// have ended: every event up to seq was published, or is in the outbox again.
func (o Outbox) Last(ctx context.Context) (seq int64, err error) {
	err = o.cut(ctx, func(tx pgx.Tx) error { return tx.QueryRow(ctx, lastSQL).Scan(&seq) })
	return seq, err
}

const lastSQL = `select last_value - (not is_called)::int from relayed_events_seq_seq`

// cut runs do while no relay is under way. It gives up soon: relays that begin meanwhile wait as
// well, and the relay of a halted process may last for seconds.
func (o Outbox) cut(ctx context.Context, do func(pgx.Tx) error) error {
	return o.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '500ms'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:relay', 0))`); err != nil {
			return err
		}
		return do(tx)
	})
}

// After returns up to limit relayed events behind seq up to last, in their order.
func (o Outbox) After(ctx context.Context, seq, last int64, limit int) ([]Announcement, error) {
	return pg.Collect(ctx, o.Pool, pgx.RowToStructByPos[Announcement], `select seq, event_id::text, topic, payload::text, trace from relayed_events
		where seq > $1 and seq <= $2 order by seq limit $3`, seq, last, limit)
}

// Remark records that the marks of the streams have the next number, and that all unsettled
// events were published since the marks have it. It does nothing if another worker has recorded
// that.
func (o Outbox) Remark(ctx context.Context, mark int64) error {
	_, err := o.Pool.Exec(ctx, `update event_relay set mark = $1 + 1 where mark = $1`, mark)
	return pg.Translate(err)
}

// Settle records that every handler has acknowledged the events up to seq, as observed while the
// marks of the streams had the number mark. It does nothing and returns false if the recorded
// mark is another number.
func (o Outbox) Settle(ctx context.Context, seq, mark int64) (bool, error) {
	tag, err := o.Pool.Exec(ctx, `update event_relay set settled = $1 where mark = $2 and settled < $1`, seq, mark)
	return tag.RowsAffected() > 0, pg.Translate(err)
}

// turnSQL returns the current table if the other table has only settled events, and the current
// table has enough events, or has been current for long enough.
const turnSQL = `
select turn from event_relay, lateral (` + lastSQL + `) as l (last)
where turn_from - 1 <= settled and last >= turn_from and (last - turn_from >= $1 or turned_at < now() - $2::interval)`

// Turn empties the table whose events are all settled and makes it the current table, when that
// is due. A transaction that reads the table, a pg_dump for instance, delays Turn.
func (o Outbox) Turn(ctx context.Context) error {
	var turn int
	err := o.Pool.QueryRow(ctx, turnSQL, keptRows, keptFor).Scan(&turn)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Translate(err)
	}
	err = o.cut(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'`); err != nil {
			return err
		}
		// Another worker may have been faster.
		if err := tx.QueryRow(ctx, turnSQL, keptRows, keptFor).Scan(&turn); errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, [...]string{`truncate relayed_events_1`, `truncate relayed_events_0`}[turn]); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `update event_relay set turn = 1 - turn, kept_from = turn_from, turn_from = (`+lastSQL+`) + 1, turned_at = now()`)
		return err
	})
	if locked, ok := errors.AsType[*pgconn.PgError](err); ok && locked.Code == "55P03" {
		return nil
	}
	return err
}

// Unhandled returns how many events were relayed and are not known to be handled.
func (o Outbox) Unhandled(ctx context.Context) (n int64, err error) {
	err = o.Pool.QueryRow(ctx, `select greatest(0, (`+lastSQL+`) - settled) from event_relay`).Scan(&n)
	return n, pg.Translate(err)
}
