package drops

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/forecast"
	"dropbell/domain/reminder"
)

// expectedRate is the forecast rate of channel c.n - 1; see
// [forecast.Forecaster]. $3 are the rates assumed for channels without
// measurements.
const expectedRate = `(select least(coalesce((select percentile_cont(0.5) within group (order by per_second) from ` + loadingSlots + `), ($3::float8[])[c.n]),
	nullif(which.rate_per_second, 0)) from channel_settings which where which.channel = c.n - 1)`

func assumedRates() []float64 {
	rates := make([]float64, delivery.Channels)
	for _, c := range delivery.AllChannels() {
		rates[c] = forecast.AssumedRate(c).PerSecond
	}
	return rates
}

// Cockpits reads the data of drops' cockpits.
type Cockpits struct{ *pg.DB }

// NewCockpits returns the cockpits of db.
func NewCockpits(db *pg.DB) Cockpits { return Cockpits{db} }

// Cockpit returns the template's state; see [reminder.CockpitStore].
func (s Cockpits) Cockpit(ctx context.Context, templateID int64, known []reminder.CockpitRow) (reminder.Cockpit, error) {
	var c reminder.Cockpit
	err := s.Tx(ctx, func(tx pgx.Tx) error { // one snapshot for all parts
		if _, err := tx.Exec(ctx, `set transaction isolation level repeatable read read only`); err != nil {
			return err
		}
		r := cockpitReader{tx: tx, templateID: templateID, rows: map[int64]int{}}
		var err error
		c, err = r.read(ctx, known)
		return err
	})
	return c, err
}

// cockpitReader reads one cockpit; rows maps slots to their index in the cockpit.
type cockpitReader struct {
	tx         pgx.Tx
	templateID int64
	rows       map[int64]int
	reminder.Cockpit
}

func (r *cockpitReader) read(ctx context.Context, known []reminder.CockpitRow) (reminder.Cockpit, error) {
	if err := r.slots(ctx); err != nil {
		return r.Cockpit, err
	}
	if err := r.booked(ctx); err != nil {
		return r.Cockpit, err
	}
	running, finished := r.unread(known)
	if len(running) > 0 {
		if err := r.lanes(ctx, runningSQL, running); err != nil {
			return r.Cockpit, err
		}
	}
	if len(finished) > 0 {
		if err := r.lanes(ctx, finishedSQL, finished, r.templateID); err != nil {
			return r.Cockpit, err
		}
	}
	if err := r.dead(ctx); err != nil {
		return r.Cockpit, err
	}
	if err := r.tx.QueryRow(ctx, openedSQL, r.templateID).Scan(&r.Opened); err != nil {
		return r.Cockpit, err
	}
	return r.Cockpit, r.causes(ctx)
}

// dead counts the dead letters. Discarding a letter changes no row of its slot,
// so cached counts of finished slots would not show it.
func (r *cockpitReader) dead(ctx context.Context) (err error) {
	for _, row := range r.Rows {
		if row.Counts().Dead > 0 {
			r.DeadLetters, err = deadLetters(ctx, r.tx, r.templateID)
			return err
		}
	}
	return nil
}

func (r *cockpitReader) slots(ctx context.Context) error {
	rows, err := r.tx.Query(ctx, `select `+pg.SlotColumns+`, clock_timestamp() from slots_of($1) s join `+pg.TemplateRow+` t on t.id = s.template_id
		where `+pg.OfOpening+` order by s.due_at, s.id`, r.templateID)
	if err != nil {
		return err
	}
	var sl reminder.Slot
	_, err = pgx.ForEachRow(rows, append(pg.SlotFields(&sl), &r.At), func() error {
		row := reminder.CockpitRow{Slot: sl}
		for i := range row.Lanes {
			row.Lanes[i].Channel = delivery.Channel(i)
		}
		r.rows[sl.ID] = len(r.Rows)
		r.Rows = append(r.Rows, row)
		return nil
	})
	if err == nil && r.At.IsZero() {
		err = r.tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&r.At)
	}
	return err
}

func (r *cockpitReader) booked(ctx context.Context) error {
	return eachBooked(ctx, r.tx, r.templateID, func(b bookedCell) {
		for i := range r.Rows {
			if r.Rows[i].Slot.Slot == b.slot && r.Rows[i].Doors == b.doors {
				r.Rows[i].Lanes[b.channel].Booked = b.booked
			}
		}
	})
}

// unread copies the known lanes of finished slots into the rows. It returns the
// slots whose lanes must be read.
func (r *cockpitReader) unread(known []reminder.CockpitRow) (running, finished []int64) {
	for i, row := range r.Rows {
		if row.Running() {
			running = append(running, row.ID)
		}
		if row.State != reminder.Finished {
			continue
		}
		taken := false
		for _, k := range known {
			if k.ID == row.ID && k.FinishedAt != nil && row.FinishedAt != nil && k.FinishedAt.Equal(*row.FinishedAt) {
				for c := range k.Lanes {
					k.Lanes[c].Booked = row.Lanes[c].Booked
				}
				r.Rows[i].Lanes, taken = k.Lanes, true
			}
		}
		if !taken {
			finished = append(finished, row.ID)
		}
	}
	return running, finished
}

// runningSQL sums batches, a thousand users each.
const runningSQL = `
with b as (
    select owner_id, channel, due_count, sent_count, skipped_count, expired_count, dead_count, failed_count, state, finished_at, late
    from batches where kind = 'reminder' and owner_id = any($1)
), late as (
    select owner_id, channel, jsonb_object_agg(span, n) as late from (
        select owner_id, channel, span, sum(late[span]) as n from b, generate_subscripts(late, 1) as span where late[span] > 0 group by 1, 2, 3) spans
    group by 1, 2
), sums as (
    select owner_id, channel, sum(due_count) as due, sum(sent_count) as sent, sum(skipped_count) as skipped, sum(expired_count) as expired,
        sum(dead_count) as dead, sum(failed_count) as failed, case when bool_and(state = 'done') then max(finished_at) end as done_at
    from b group by 1, 2
)
select s.owner_id, s.channel, s.due, s.sent, s.skipped, s.expired, s.dead, s.failed, s.done_at, l.late, coalesce(r.expected, 0)
from sums s left join late l using (owner_id, channel) left join slot_results r on r.slot_id = s.owner_id and r.channel = s.channel`

const finishedSQL = `
select slot_id, channel, reserved, sent, skipped, expired, dead, 0::bigint, done_at, late, coalesce(expected, 0)
from slot_results_of($2) where slot_id = any($1)`

// lanes reads the lanes of slots by a statement with these parameters, the slots first.
func (r *cockpitReader) lanes(ctx context.Context, sql string, args ...any) error {
	rows, err := r.tx.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var id int64
	var channel delivery.Channel
	var c delivery.Counts
	var failed int64
	var doneAt *time.Time
	var late []byte
	var expected float64
	_, err = pgx.ForEachRow(rows, []any{&id, &channel, &c.Reserved, &c.Sent, &c.Skipped, &c.Expired, &c.Dead, &failed, &doneAt, &late, &expected}, func() error {
		lane := &r.Rows[r.rows[id]].Lanes[channel]
		lane.Counts, lane.Failed, lane.DoneAt, lane.Expected, lane.Late = c, failed, doneAt, expected, nil
		lane.InFlight = c.Reserved - c.Sent - c.Skipped - c.Expired - c.Dead
		if len(late) == 0 {
			return nil
		}
		return json.Unmarshal(late, &lane.Late)
	})
	return err
}

// Causes are counted in the exceptions of at most causeBatches batches of a
// channel, and in at most causeRows exceptions of each batch. A failing provider
// creates an exception for every recipient, so counting all would take too long.
const (
	causeBatches = 10
	causeRows    = 200
	causeGroups  = 20
)

const causesSQL = `
with failing as (
    select id, channel, n, rank from (
        select id, channel, count(*) over (partition by channel) as n, row_number() over (partition by channel order by id desc) as rank
        from batches where kind = 'reminder' and owner_id = any($1) and failed_count + dead_count + expired_count > 0) ranked
    where rank <= $2
), seen as (
    select f.id, f.channel, f.n, e.outcome, e.reason, e.fingerprint, e.detail, e.last_at, count(*) over (partition by f.id) as of_batch
    from failing f cross join lateral (
        select * from exceptions x where x.batch_id = f.id and x.outcome in ('failed', 'dead', 'expired') limit $3) e
)
select channel, outcome, reason, fingerprint, (array_agg(detail order by last_at desc))[1], count(*),
    bool_or(n > $2 or of_batch = $3)
from seen group by 1, 2, 3, 4 order by count(*) desc, 1, 2, 3, 4 limit $4`

func (r *cockpitReader) causes(ctx context.Context) error {
	var slots []int64
	for _, row := range r.Current() {
		for _, l := range row.Lanes {
			if l.Failed+l.Dead+l.Expired > 0 {
				slots = append(slots, row.ID)
				break
			}
		}
	}
	if len(slots) == 0 {
		return nil
	}
	rows := pg.Rows(ctx, r.tx, causesSQL, slots, causeBatches, causeRows, causeGroups)
	var c reminder.Cause
	var sampled bool
	_, err := pgx.ForEachRow(rows, []any{&c.Channel, &c.Outcome, &c.Reason, &c.Fingerprint, &c.Sample, &c.People, &sampled}, func() error {
		r.Causes = append(r.Causes, c)
		r.Sampled = r.Sampled || sampled
		return nil
	})
	return err
}

// Spans returns the recently sent messages; see [reminder.CockpitStore].
func (s Cockpits) Spans(ctx context.Context, templateID int64, back time.Duration) ([]reminder.Span, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[reminder.Span], `
		select b.channel, date_trunc('second', b.started_at) as begun, date_trunc('second', coalesce(b.finished_at, clock_timestamp())) as ended, sum(b.sent_count)
		from slots s join batches b on b.kind = 'reminder' and b.owner_id = s.id
		where s.template_id = $1 and (s.state in ('firing', 'sending') or s.finished_at > clock_timestamp() - $2::interval)
		  and b.sent_count > 0 and b.started_at is not null and coalesce(b.finished_at, clock_timestamp()) > clock_timestamp() - $2::interval
		group by 1, 2, 3`, templateID, back)
}

// SlotSpans returns the approximate times at which the messages of one slot were
// sent.
func (s Cockpits) SlotSpans(ctx context.Context, slotID int64) ([]reminder.Span, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[reminder.Span], `
		-- the batches of a slot by channel and by the seconds in which they began and ended
		select channel, date_trunc('second', started_at) as begun, date_trunc('second', coalesce(finished_at, clock_timestamp())) as ended, sum(sent_count)
		from batches where kind = 'reminder' and owner_id = $1 and sent_count > 0 and started_at is not null group by 1, 2, 3`, slotID)
}
