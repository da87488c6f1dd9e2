package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/killpoint"
)

// planReturns notes when the coupons with ids above $1 and up to $2 must be used, for drops that demand it.
const planReturns = `
insert into coupon_returns (coupon_id, template_id, due_at)
select c.id, c.template_id, c.issued_at + t.use_within_hours * interval '1 hour' from templates t join coupons c on c.template_id = t.id
where t.use_within_hours > 0 and c.id > $1 and c.id <= $2 on conflict do nothing`

// DueReturns implements [coupon.ReturnStore].
func (s CouponSteps) DueReturns(ctx context.Context, after int64, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select distinct template_id from coupon_returns where due_at <= clock_timestamp() and template_id > $1 order by 1 limit $2`, after, limit)
}

// dueReturnsSQL locks up to $2 due coupons of template $1, and returns what decides about each.
var dueReturnsSQL = `
select r.coupon_id, r.refunded, exists (select from coupon_operations o where o.coupon_id = r.coupon_id and o.step = 'confirm' and o.outcome = 'done'),
    coalesce((select t.state not in ('published', 'paused') or clock_timestamp() >= ` + givesUntilSQL + ` from templates t where t.id = $1), true)
from coupon_returns r where r.template_id = $1 and r.due_at <= clock_timestamp() order by r.due_at, r.coupon_id limit $2 for update of r skip locked`

// ReturnDue implements [coupon.ReturnStore].
func (s CouponSteps) ReturnDue(ctx context.Context, templateID int64, limit int, decide func(coupon.DueReturn) coupon.Return) (n int, more bool, err error) {
	err = killpoint.Around("coupons.return", func() error {
		return s.Tx(ctx, func(tx pgx.Tx) error {
			n, more = 0, false
			if _, err := tx.Exec(ctx, lockForReturn, templateID); err != nil {
				return err
			}
			due, err := dueReturns(ctx, tx, templateID, limit)
			if err != nil || len(due) == 0 {
				return err
			}
			more = len(due) == limit
			n, err = returnAll(ctx, tx, templateID, due, decide)
			return err
		})
	})
	return n, more, pg.Translate(err)
}

// dueReturns locks due coupons and reads them.
func dueReturns(ctx context.Context, tx pgx.Tx, templateID int64, limit int) ([]coupon.DueReturn, error) {
	rows, err := tx.Query(ctx, dueReturnsSQL, templateID, limit)
	if err != nil {
		return nil, err
	}
	var ids []int64
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d coupon.DueReturn, err error) {
		err = row.Scan(&d.Coupon.ID, &d.Refunded, &d.Confirmed, &d.Over)
		ids = append(ids, d.Coupon.ID)
		return d, err
	})
	if err != nil || len(due) == 0 {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `select from coupons where id = any($1) order by id for no key update`, ids); err != nil {
		return nil, err
	}
	cases := make([]*coupon.Case, len(ids))
	rows, err = tx.Query(ctx, casesSQL, ids, make([]string, len(ids)))
	if err == nil {
		err = readCases(rows, cases)
	}
	for i := range due {
		id := due[i].Coupon.ID
		if cases[i] != nil {
			due[i].Case = *cases[i]
		}
		due[i].Coupon.ID = id // a coupon whose row was removed has no state
	}
	return due, err
}

// returnAll stores what becomes of the due coupons, and returns how many went back to the stock.
func returnAll(ctx context.Context, tx pgx.Tx, templateID int64, due []coupon.DueReturn, decide func(coupon.DueReturn) coupon.Return) (n int, err error) {
	var moves []coupon.Move
	var refunded, later, done []int64
	for _, d := range due {
		r := decide(d)
		switch {
		case r.Later:
			later = append(later, d.Coupon.ID)
			continue
		case len(r.Move.Ops) > 0:
			moves = append(moves, r.Move)
		case r.ToStock:
			refunded = append(refunded, d.Coupon.ID)
		}
		done = append(done, d.Coupon.ID)
	}
	if len(moves) > 0 {
		rows, err := tx.Query(ctx, movesSQL, movesArgs(ctx, moves, nil))
		if err != nil {
			return 0, err
		}
		moved := make([]coupon.Coupon, len(moves))
		for i, m := range moves {
			moved[i] = m.To
		}
		stored, err := readMoved(rows, moved)
		if err != nil {
			return 0, err
		}
		for i := range stored {
			if !stored[i] { // its row is locked, so this is a fault of the program
				return 0, coupon.ErrRaced
			}
		}
	}
	n = len(moves) + len(refunded)
	b := &pgx.Batch{}
	b.Queue(`update coupons set returned = true, version = version + 1, updated_at = clock_timestamp() where id = any($1)`, refunded)
	b.Queue(`update coupon_returns set due_at = clock_timestamp() + interval '1 minute' where coupon_id = any($1)`, later)
	b.Queue(`delete from coupon_returns where coupon_id = any($1)`, done)
	if err := tx.SendBatch(ctx, b).Close(); err != nil || n == 0 {
		return 0, err
	}
	return n, returnToStock(ctx, tx, templateID, int64(n))
}

var _ coupon.ReturnStore = CouponSteps{}
