package drops

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// Counters maintains the console's booking counters from events. Events arrive at least once,
// so an event is counted in the transaction that stores its id.
type Counters struct{ *pg.DB }

// NewCounters returns the counters of db.
func NewCounters(db *pg.DB) Counters { return Counters{db} }

type bookingKey struct {
	template int64
	slot     template.Slot
	channel  delivery.Channel
}

// Count adds one event's bookings unless it was counted before.
func (s Counters) Count(ctx context.Context, eventID string, e event.Reservations) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into handled_events (handler, event_id) values ('bookings', $1) on conflict do nothing`, eventID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return addBookings(ctx, tx, e)
	})
}

func addBookings(ctx context.Context, tx pgx.Tx, e event.Reservations) error {
	cells, totals := map[bookingKey]int64{}, map[int64]int64{}
	sum := func(bs []event.Booking, sign int64) {
		for _, b := range bs {
			for _, r := range reminder.StoredBitmap(b.Bits).Reminders() {
				cells[bookingKey{b.TemplateID, r.Slot, r.Channel}] += sign * b.Users
				totals[b.TemplateID] += sign * b.Users
			}
		}
	}
	sum(e.Added, 1)
	sum(e.Removed, -1)
	templates, slots, channels, deltas := make([]int64, 0, len(cells)), make([]int16, 0, len(cells)), make([]int16, 0, len(cells)), make([]int64, 0, len(cells))
	for k, d := range cells {
		templates, slots = append(templates, k.template), append(slots, int16(k.slot))
		channels, deltas = append(channels, int16(k.channel)), append(deltas, d)
	}
	// Rows are updated in key order, so that two handlers cannot deadlock.
	if _, err := tx.Exec(ctx, `
		insert into bookings as b (template_id, slot, channel, booked)
		select * from unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::bigint[]) as u (t, s, c, d) order by t, s, c
		on conflict (template_id, slot, channel) do update set booked = b.booked + excluded.booked`,
		templates, slots, channels, deltas); err != nil {
		return err
	}
	ids := make([]int64, 0, len(totals))
	for id := range totals {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		if _, err := tx.Exec(ctx, `
			insert into booking_growth as g (template_id, minute, delta) values ($1, date_trunc('minute', $2::timestamptz), $3)
			on conflict (template_id, minute) do update set delta = g.delta + excluded.delta`, id, e.At, totals[id]); err != nil {
			return err
		}
	}
	return nil
}

// countedBookingsSQL computes the numbers that the counters of template $1 must have now: the
// numbers of the reservations minus the numbers that waiting events will add. The growth must
// equal the sum of the counters.
var countedBookingsSQL = `
waiting as materialized (` + pg.WaitingEvents("bookings", event.ReservationsChanged) + `
), bits as (
    select slots as bits, count(*) as users from reservations where template_id = $1 group by slots
    union all
    select b.bits, -sign * b.users from waiting w, lateral (values (1, w.payload -> 'added'), (-1, w.payload -> 'removed')) as side (sign, list),
        jsonb_to_recordset(case when jsonb_typeof(list) = 'array' then list else '[]' end) as b (template_id text, bits bigint, users bigint)
    where b.template_id = $1::bigint::text
), counted as (
    select s.n as slot, c.n as channel, coalesce(sum(users) filter (where bits & ` + bitSQL("s.n", "c.n") + ` <> 0), 0)::bigint as booked
    from ` + slotsSQL + ` as s (n) cross join ` + channelsSQL + ` as c (n) left join bits on true group by 1, 2
), off as (
    select c.slot, c.channel, c.booked, c.booked - coalesce(b.booked, 0) as n
    from counted c left join bookings b on b.template_id = $1 and b.slot = c.slot and b.channel = c.channel
), grown as (
    select (select sum(booked) from counted) - (select coalesce(sum(delta), 0) from booking_growth where template_id = $1) as n
)`

const offBookingsSQL = ` select coalesce((select sum(abs(n)) from off), 0)::bigint + abs((select n from grown))::bigint`

// Off returns the difference, in reminders, between the template's counters and its
// reservations. Off reads all reservations, so it is for audits. From an hour after the
// opening it returns 0, because reservations are removed then.
func (s Counters) Off(ctx context.Context, templateID int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `with `+countedBookingsSQL+offBookingsSQL+` from templates where id = $1 and `+recountedSQL, templateID).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, pg.Translate(err)
}

// recountedSQL is the condition for templates whose counters are compared with the rows.
const recountedSQL = `state in ('published', 'paused') and opens_at > now() - interval '1 hour'`

// ToRecount returns up to limit templates whose counters are to be compared with the rows:
// templates that open within horizon or opened within the last hour, and once a day all other
// published templates.
func (s Counters) ToRecount(ctx context.Context, horizon time.Duration, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select id from templates t left join figure_recounts r on r.template_id = t.id and r.figure = 'bookings'
		where `+recountedSQL+` and (opens_at < now() + $1::interval or r.at is null or r.at < now() - interval '1 day')
		order by r.at nulls first, id limit $2`, horizon, limit)
}

// Impossible returns up to limit templates with a counter below 0. A counter may be below 0 as
// long as the event of a cancellation was counted and the older event of its reservation still
// waits.
func (s Counters) Impossible(ctx context.Context, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select id from templates t cross join lateral (select from bookings b where b.template_id = t.id and b.booked < 0 limit 1) b
		where `+recountedSQL+` limit $1`, limit)
}

// Recount replaces counters of the template that differ from its reservations and returns the
// difference in reminders. The difference in growth is added to the present minute. The result
// is exact even while events are handled: waiting events are left to their handler, which
// waits while the rows are locked. The rows are locked only if the counters differ.
func (s Counters) Recount(ctx context.Context, templateID int64) (off int64, err error) {
	if off, err = s.Off(ctx, templateID); err != nil || off == 0 {
		return 0, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "bookings"))
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into bookings (template_id, slot, channel)
			select $1::bigint, s, c from `+slotsSQL+` s, `+channelsSQL+` c order by 1, 2, 3 on conflict do nothing`, templateID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select from bookings where template_id = $1 order by slot, channel for update`, templateID); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `with `+countedBookingsSQL+`, changed as (
			update bookings b set booked = off.booked from off where b.template_id = $1 and b.slot = off.slot and b.channel = off.channel and off.n <> 0
			), added as (
			insert into booking_growth as g (template_id, minute, delta) select $1::bigint, date_trunc('minute', now()), n from grown where n <> 0
			on conflict (template_id, minute) do update set delta = g.delta + excluded.delta
			)`+offBookingsSQL, templateID).Scan(&off)
	})
	return off, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "bookings"))
}
