package drops

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

// Counters keeps the console's booking counters from events, which arrive at
// least once: each is counted in the transaction that remembers its id.
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
	// In key order, so that two handlers cannot deadlock.
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

// Recount replaces the counters of templates that open soon, or have opened
// within the last hour, by what the reservations say. Events that are on
// their way are counted once more and corrected next time.
func (s Counters) Recount(ctx context.Context, horizon time.Duration) error {
	rows, err := s.Pool.Query(ctx, `select id from templates where state in ('published', 'paused')
		and opens_at between now() - interval '1 hour' and now() + $1::interval`, horizon)
	if err != nil {
		return pg.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	for _, id := range ids {
		if err := s.recount(ctx, id); err != nil {
			return err
		}
	}
	return pg.Translate(err)
}

// recount changes a template's counters only while none of its events is
// waiting or on the wire, since those would be counted twice.
func (s Counters) recount(ctx context.Context, templateID int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var busy bool
		err := tx.QueryRow(ctx, `select exists (select from outbox where topic = $1)
			or exists (select from reservations where template_id = $2 and updated_at > now() - interval '1 minute')`,
			event.ReservationsChanged, templateID).Scan(&busy)
		if err != nil || busy {
			return err
		}
		_, err = tx.Exec(ctx, `
			with bits as (
				select slots, count(*) as users from reservations where template_id = $1 group by slots
			), counted as (
				select s.n as slot, c.n as channel, sum(users) filter (where slots & (1::bigint << (12 * c.n + s.n - 1)) <> 0) as booked
				from bits, generate_series(1, 12) as s (n), generate_series(0, 4) as c (n) group by 1, 2
			)
			insert into bookings as b (template_id, slot, channel, booked)
			select $1, slot, channel, coalesce(booked, 0) from counted order by 1, 2, 3
			on conflict (template_id, slot, channel) do update set booked = excluded.booked where b.booked <> excluded.booked`, templateID)
		return err
	})
}
