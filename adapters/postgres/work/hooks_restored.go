package work

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/event/hook"
	"dropbell/domain/template"
)

// sameHistory returns [pg.ErrUnavailable] while the database's history differs from the history
// in which its events were numbered: new numbers may repeat numbers of events that were sent to
// shops. [HookEvents.Correct] ends this state.
func (s *HookEvents) sameHistory(ctx context.Context) error {
	r, err := Outbox{DB: s.DB}.Relayed(ctx)
	if err != nil {
		return err
	}
	if r.History != "" && r.History != r.Now {
		return pg.ErrUnavailable
	}
	return nil
}

// Missing returns the relayed events that the database lacks, among events newer than the oldest
// event that the database keeps. more is false if the list has an older event.
func (o Outbox) Missing(ctx context.Context, list []Announcement) (missing []Announcement, more bool, err error) {
	seqs, ids := make([]int64, len(list)), make([]string, len(list))
	for i, a := range list {
		seqs[i], ids[i] = a.Seq, a.ID
	}
	rows, err := o.Pool.Query(ctx, `
		select n, seq < (select kept_from from event_relay), exists (select from relayed_events r where r.seq = u.seq and r.event_id = u.id)
		from unnest($1::bigint[], $2::uuid[]) with ordinality as u (seq, id, n) order by n`, seqs, ids)
	if err != nil {
		return nil, false, pg.Translate(err)
	}
	more = true
	var n int
	var older, kept bool
	_, err = pgx.ForEachRow(rows, []any{&n, &older, &kept}, func() error {
		more = more && !older
		if !older && !kept {
			missing = append(missing, list[n-1])
		}
		return nil
	})
	return missing, more, pg.Translate(err)
}

// skipNumbersSQL moves the sequences of numbers that shops know behind all numbers drawn before
// the database lost events: its sequences were reset with the database. 2^32 is a multiple of 64,
// so that the ids still name their cell (ADR 110).
const skipNumbersSQL = `
select setval(s, nextval(s) + 4294967296) from unnest(array[pg_get_serial_sequence('hook_events', 'id'), pg_get_serial_sequence('coupon_operations', 'id'),
    pg_get_serial_sequence('coupons', 'id'), 'hook_sequence']) as s`

// Correct sends shops the current state instead of the lost events, and continues in the history
// r.Now. mark must be a number that no stream's mark has. Correct does nothing if another worker
// has done so. It returns the number of stored events, and the endpoints to wake.
func (s *HookEvents) Correct(ctx context.Context, r Relayed, mark int64, lost *hook.Lost) (n int, endpoints []int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update event_relay set history = $1, mark = $2 where history = $3 and mark = $4`, r.Now, mark, r.History, r.Mark)
		if err != nil || tag.RowsAffected() == 0 || r.History == "" {
			return err
		}
		if _, err := tx.Exec(ctx, skipNumbersSQL); err != nil {
			return err
		}
		events, err := corrections(ctx, tx, lost)
		if err != nil {
			return err
		}
		n = len(events)
		endpoints, err = storeAndDeliver(ctx, tx, events)
		return err
	})
	return n, endpoints, err
}

func corrections(ctx context.Context, tx pgx.Tx, lost *hook.Lost) ([]hook.Event, error) {
	var at time.Time
	if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&at); err != nil {
		return nil, err
	}
	drops, err := storedDrops(ctx, tx, lost.Drops())
	if err != nil {
		return nil, err
	}
	reservations, err := storedReminders(ctx, tx, lost.Reservers())
	if err != nil {
		return nil, err
	}
	coupons, err := storedCoupons(ctx, tx, lost.Coupons())
	if err != nil {
		return nil, err
	}
	var failed error
	drawn := func(sequence string) func() int64 {
		return func() (number int64) {
			failed = errors.Join(failed, tx.QueryRow(ctx, `select nextval($1::text::regclass)`, sequence).Scan(&number))
			return number
		}
	}
	events := lost.CorrectDrops(drops, at, drawn("hook_sequence"))
	events = append(events, lost.CorrectReservations(reservations, at, drawn("hook_sequence"))...)
	events = append(events, lost.CorrectCoupons(coupons, at, drawn("coupon_operations_id_seq"))...)
	return events, failed
}

// storedDrops returns the drops with their ids, states, versions and openings.
func storedDrops(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]template.Template, error) {
	rows := pg.Rows(ctx, tx, `select id, state, version, opens_at from templates where id = any($1)`, ids)
	stored := map[int64]template.Template{}
	var t template.Template
	_, err := pgx.ForEachRow(rows, []any{&t.ID, &t.Stored, &t.Version, &t.OpensAt}, func() error { stored[t.ID] = t; return nil })
	return stored, err
}

func storedReminders(ctx context.Context, tx pgx.Tx, list []hook.Reserver) (map[hook.Reserver]int64, error) {
	templates, users := make([]int64, len(list)), make([]int64, len(list))
	for i, r := range list {
		templates[i], users[i] = r.TemplateID, r.UserID
	}
	rows := pg.Rows(ctx, tx, `select template_id, user_id, slots from unnest($1::bigint[], $2::bigint[]) as u (t, u)
		join reservations on template_id = t and user_id = u`, templates, users)
	stored := map[hook.Reserver]int64{}
	var r hook.Reserver
	var slots int64
	_, err := pgx.ForEachRow(rows, []any{&r.TemplateID, &r.UserID, &slots}, func() error { stored[r] = slots; return nil })
	return stored, err
}

func storedCoupons(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]coupon.Coupon, error) {
	rows := pg.Rows(ctx, tx, `select id, template_id, user_id, state, order_id, discount, locked_until from coupons where id = any($1)`, ids)
	stored := map[int64]coupon.Coupon{}
	var c coupon.Coupon
	_, err := pgx.ForEachRow(rows, []any{&c.ID, &c.TemplateID, &c.UserID, &c.State, &c.OrderID, &c.Discount, &c.LockedUntil}, func() error {
		stored[c.ID] = c
		c.LockedUntil = nil
		return nil
	})
	return stored, err
}
