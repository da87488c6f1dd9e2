package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/coupon"
)

// Grants keeps lists of users who are given coupons.
type Grants struct{ Templates }

// NewGrants returns the lists of db.
func NewGrants(db *DB) Grants { return Grants{NewTemplates(db)} }

// StageGrants stores a list in place of what the sheet had.
func (s Grants) StageGrants(ctx context.Context, sheet int64, rows []coupon.GrantRow) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from grant_rows where sheet_id = $1`, sheet); err != nil {
			return err
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"grant_rows"}, []string{"sheet_id", "line", "input", "user_id"},
			pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				r := rows[i]
				var id any
				if r.UserID != 0 {
					id = int64(r.UserID)
				}
				return []any{sheet, r.Line, r.Input, id}, nil
			}))
		return err
	})
}

// GrantRows returns rows with what is known about their users.
func (s Grants) GrantRows(ctx context.Context, sheet, templateID, after int64, limit int) ([]coupon.GrantRow, error) {
	rows, err := s.pool.Query(ctx, `
		select g.line, g.input, coalesce(g.user_id, 0), u.id is not null,
			not exists (select from grant_rows e where e.sheet_id = g.sheet_id and e.user_id = g.user_id and e.line < g.line),
			coalesce(c.issued, 0), g.result, coalesce(g.coupon_id, 0)
		from grant_rows g left join users u on u.id = g.user_id left join claim_counts c on c.template_id = $2 and c.user_id = g.user_id
		where g.sheet_id = $1 and g.line > $3 order by g.line limit $4`, sheet, templateID, after, limit)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[coupon.GrantRow])
	return list, translate(err)
}

// SaveGrants stores what became of rows. A coupon that was given stays given,
// should a late worker save an older result.
func (s Grants) SaveGrants(ctx context.Context, sheet int64, rows []coupon.GrantRow) error {
	n := len(rows)
	lines, results, coupons := make([]int64, n), make([]string, n), make([]int64, n)
	for i, r := range rows {
		lines[i], results[i], coupons[i] = r.Line, r.Result, r.CouponID
	}
	_, err := s.pool.Exec(ctx, `update grant_rows g set result = r.result, coupon_id = nullif(r.coupon_id, 0)
		from unnest($2::bigint[], $3::text[], $4::bigint[]) as r (line, result, coupon_id)
		where g.sheet_id = $1 and g.line = r.line and g.result <> 'issued'`, sheet, lines, results, coupons)
	return translate(err)
}

// GrantResults yields every row of a list in order.
func (s Grants) GrantResults(ctx context.Context, sheet int64, yield func(coupon.GrantRow) error) error {
	rows, err := s.pool.Query(ctx, `select line, input, coalesce(user_id, 0), result, coalesce(coupon_id, 0) from grant_rows
		where sheet_id = $1 order by line`, sheet)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r coupon.GrantRow
		if err := rows.Scan(&r.Line, &r.Input, &r.UserID, &r.Result, &r.CouponID); err != nil {
			return err
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	return translate(rows.Err())
}
