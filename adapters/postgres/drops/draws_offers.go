package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/draw"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Offer is part of [draw.OperatorStore].
func (s Draws) Offer(ctx context.Context, templateID int64, hours int) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, ok, err := s.taken(ctx, tx, templateID, draw.Drawn); err != nil || !ok {
			return err
		}
		_, err := tx.Exec(ctx, `with offered as (
				update draw_entries e set offered_until = least(clock_timestamp() + $2 * interval '1 hour', t.valid_until) from templates t
				where t.id = $1 and e.template_id = $1 and e.state = 'won' and e.offered_until is null and e.coupon_id is null and e.reason is null
				returning 1)
			update draws set offers = offers + 1 where template_id = $1 and exists (select from offered)`, templateID, hours)
		return err
	})
}

// unanswered are the open offers of draw $1: winners who have neither accepted nor been refused.
const unanswered = ` draw_entries where template_id = $1 and state = 'won' and offered_until is not null and accepted_at is null
	and coupon_id is null and reason is null`

// lapseSQL marks the offers of draw $1 that ended, and leads to the draw without these tickets, as long as there may be
// further offers ($3 in all) and the drop gives coupons for another hour.
const lapseSQL = `
with lapsed as (
    update draw_entries set state = 'lapsed', reason = $2, struck_at = clock_timestamp(), listed = true
    where (template_id, user_id) in (select template_id, user_id from` + unanswered + ` and offered_until <= clock_timestamp())
        and accepted_at is null
    returning 1
)
update draws d set lapsed = d.lapsed + l.n, won = d.won - l.n, state = case when d.offers < $3::int and t.state in ('published', 'paused')
    and least(t.closes_at, t.valid_until) > clock_timestamp() + interval '1 hour' then 'sealed' else d.state end
from (select count(*) as n from lapsed) l, templates t where d.template_id = $1 and t.id = $1 and l.n > 0`

// Lapse is part of [draw.OperatorStore]. An acceptance that commits first keeps its winner: the condition is checked again
// on the changed row.
func (s Draws) Lapse(ctx context.Context, templateID int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, ok, err := s.taken(ctx, tx, templateID, draw.Offered); err != nil || !ok {
			return err
		}
		_, err := tx.Exec(ctx, lapseSQL, templateID, draw.ReasonLapsed, draw.MaxOffers)
		return err
	})
}

// Accept is part of [draw.Store].
func (s Draws) Accept(ctx context.Context, templateID int64, by user.ID) (r draw.Record, err error) {
	err = killpoint.Around("draws.accept", func() error {
		rows, err := s.Pool.Query(ctx, `update draw_entries set accepted_at = coalesce(accepted_at, clock_timestamp())
			where template_id = $1 and user_id = $2 and state = 'won' and (accepted_at is not null or offered_until > clock_timestamp())
			returning `+recordColumns, templateID, by)
		if err != nil {
			return err
		}
		r, err = pgx.CollectExactlyOneRow(rows, scanRecord)
		return err
	})
	if !errors.Is(err, pgx.ErrNoRows) {
		return r, pg.Translate(err)
	}
	r, err = s.Entry(ctx, templateID, by)
	switch {
	case err != nil || r.State == draw.Won && r.OfferedUntil == nil: // without acceptance, or being offered
		return r, err
	case r.State == draw.Lapsed || r.State == draw.Won:
		return r, draw.ErrLapsed
	}
	return r, draw.ErrNotWon
}

// Finish is part of [draw.OperatorStore]. Stock that no winner got is kept for the entries that wait.
func (s Draws) Finish(ctx context.Context, templateID int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var left int64
		var waits bool
		if err := tx.QueryRow(ctx, `select stock - issued - held, waitlist <> 'off' from templates where id = $1 for no key update`, templateID).Scan(&left, &waits); err != nil {
			return err
		}
		var state draw.State
		err := tx.QueryRow(ctx, finishSQL, templateID).Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || state != draw.Done || !waits || left <= 0 {
			return err
		}
		return pg.KeepForWaiters(ctx, tx, templateID, left)
	})
}

// finishSQL ends draw $1 if no winner is without a coupon and no offer is open, and returns its state.
const finishSQL = `update draws d set state = case when o.until is null then 'done' else 'offered' end, offers_until = o.until
		from (select min(offered_until) as until from` + unanswered + `) o
		where d.template_id = $1 and d.state in ('drawn', 'offered') and not exists (select from draw_entries where template_id = $1 and state = 'won'
			and coupon_id is null and reason is null and (offered_until is null or accepted_at is not null)) returning d.state`
