package cells

import (
	"context"
	"fmt"
	"time"

	workdb "dropbell/adapters/postgres/work/move"
)

// The rows of the shop that moves.
const (
	movedReservations = 400_000
	movedCoupons      = 200_000
)

// move moves a shop whose drop is over from cell 0 to cell 1. There are no workers, so what they
// have handled and passed over by then is stored beforehand.
func (b *bench) move(ctx context.Context) error {
	for sql, on := range map[string]*store{
		`delete from outbox`: b.cells[0], `update event_relay set settled = 9e15`: b.cells[0],
		`update notice_cursor set planned_to = 9e15, seen_to = 9e15`: b.cells[1], `update hook_cursor set planned_to = 9e15, seen_to = 9e15`: b.cells[1],
	} {
		if _, err := on.SQL.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if _, err := b.cells[0].SQL.Exec(ctx, `
		with s as (insert into shops (number, name, timezone) values (20, 'Moving', 'UTC') returning number),
		t as (insert into templates (shop_number, name, kind, amount_off, currency, target, stock, issued, per_user_limit, opens_at, closes_at, valid_hours, obtain, claim_mode, state)
			select number, 'Past', 'amount_off', 500, 'CNY', 'shop', $2, $2, 1, date_trunc('second', now()) - interval '2 days', date_trunc('second', now()) - interval '1 day', 2400, 'claim', 'durable', 'closed' from s returning id),
		r as (insert into reservations (template_id, user_id, slots) select id, n, 1 from t, generate_series(1, $1) n),
		k as (insert into claim_counts (template_id, user_id, issued) select id, n, 1 from t, generate_series(1, $2) n)
		insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
			select id, n, 1000000000000 + n, 'claim', 'moved:' || n, now(), now() + interval '99 days' from t, generate_series(1, $2) n`, movedReservations, movedCoupons); err != nil {
		return err
	}
	began := time.Now()
	moved, err := workdb.Mover{Source: b.cells[0].DB, Target: b.cells[1].DB}.Move(ctx, 20)
	if err != nil {
		return err
	}
	took := time.Since(began)
	fmt.Printf("move        %d rows in %.1f s, %.0f a second; writes of the shop were refused for %.1f s\n",
		moved.Rows, took.Seconds(), float64(moved.Rows)/took.Seconds(), moved.Refused.Seconds())
	return nil
}
