package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/claim"
	"dropbell/domain/template"
)

// Ledgers accounts for stock, and reads its sales over time.
type Ledgers struct{ *pg.DB }

// NewLedgers returns the ledgers of db.
func NewLedgers(db *pg.DB) Ledgers { return Ledgers{db} }

// ledgerSQL counts rows: for audits, never for pages. A single statement has one
// snapshot, so that it may run in the middle of a rush.
const ledgerSQL = `
select t.id, t.stock, t.stock - t.issued, 0::bigint, r.n, (select count(*) from coupons c where c.template_id = t.id) - r.n,
    (select coalesce(sum(n.issued), 0) from claim_counts n where n.template_id = t.id),
    (select count(*) from claim_counts n where n.template_id = t.id and n.issued > t.per_user_limit)
from templates t, lateral (select count(*) as n from coupons c where c.template_id = t.id and c.returned) r `

func scanLedger(row pgx.CollectableRow) (l claim.Ledger, err error) {
	err = row.Scan(&l.TemplateID, &l.Total, &l.OnSale, &l.Writing, &l.Returned, &l.Issued, &l.PerUser, &l.OverLimit)
	return l, err
}

// Ledger recounts the template's stock, or returns [template.ErrNotFound].
func (s Ledgers) Ledger(ctx context.Context, templateID int64) (claim.Ledger, error) {
	rows, err := s.Pool.Query(ctx, ledgerSQL+`where t.id = $1`, templateID)
	if err != nil {
		return claim.Ledger{}, pg.Translate(err)
	}
	l, err := pgx.CollectExactlyOneRow(rows, scanLedger)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, template.ErrNotFound
	}
	return l, pg.Translate(err)
}

// Selling recounts the stock of up to limit templates that have sold within
// the window, those with most coupons left out: counting ten million rows
// twice a minute is not worth it, and worker audit does it on demand.
func (s Ledgers) Selling(ctx context.Context, window time.Duration, limit int) ([]claim.Ledger, error) {
	const most = 5_000_000
	rows, err := s.Pool.Query(ctx, ledgerSQL+`
		where t.issued between 1 and $3 and t.state <> 'draft'
			and exists (select from claim_seconds r where r.template_id = t.id and r.second > now() - $1::interval)
		order by t.id desc limit $2`, window, limit, most)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, scanLedger)
	return list, pg.Translate(err)
}

// Curve returns how the template sold, in at most so many steps.
func (s Ledgers) Curve(ctx context.Context, templateID int64, points int) (claim.Curve, error) {
	rows, err := s.Pool.Query(ctx, `
		with span as (
			select min(second) as first, max(second) as last from claim_seconds where template_id = $1
		), step as (
			select first, greatest(1, ceil((extract(epoch from last - first) + 1) / $2))::bigint as width from span where first is not null
		)
		select width, first + n * width * interval '1 second', issued
		from step, lateral (
			select floor(extract(epoch from second - first) / width)::bigint as n, sum(issued)::bigint as issued
			from claim_seconds where template_id = $1 group by 1) sold
		order by n`, templateID, points)
	if err != nil {
		return claim.Curve{}, pg.Translate(err)
	}
	var seconds int64
	sold, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p claim.Point, err error) {
		err = row.Scan(&seconds, &p.At, &p.Issued)
		return p, err
	})
	return claim.NewCurve(time.Duration(seconds)*time.Second, sold), pg.Translate(err)
}

// Pace returns coupons issued in each of the last seconds that are over, the
// oldest first.
func (s Ledgers) Pace(ctx context.Context, templateID int64, seconds int) ([]int64, error) {
	rows, err := s.Pool.Query(ctx, `
		select coalesce(c.issued, 0) from generate_series(date_trunc('second', now()) - $2 * interval '1 second',
			date_trunc('second', now()) - interval '1 second', interval '1 second') as s (second)
		left join claim_seconds c on c.template_id = $1 and c.second = s.second order by s.second`, templateID, seconds)
	if err != nil {
		return nil, pg.Translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	return list, pg.Translate(err)
}
