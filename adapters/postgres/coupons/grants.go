package coupons

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Grants stores lists of users who are granted coupons.
type Grants struct{ *pg.DB }

// NewGrants returns the lists of db.
func NewGrants(db *pg.DB) Grants { return Grants{db} }

// Template returns the template, or [template.ErrNotFound].
func (s Grants) Template(ctx context.Context, id int64) (template.Template, error) {
	return pg.Template(ctx, s.DB, id)
}

// StageGrants stores a list, which replaces the sheet's previous list.
func (s Grants) StageGrants(ctx context.Context, sheet int64, rows []coupon.GrantRow) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `delete from grant_rows where sheet_id = $1`, sheet); err != nil {
			return err
		}
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"grant_rows"}, []string{"sheet_id", "line", "input", "user_id", "claim_key"},
			pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
				r := rows[i]
				var id any
				if r.UserID != 0 {
					id = int64(r.UserID)
				}
				return []any{sheet, r.Line, r.Input, id, r.Key}, nil
			}))
		return err
	})
}

// GrantRows returns rows with the data of their users that a grant needs.
func (s Grants) GrantRows(ctx context.Context, sheet, templateID, after int64, limit int) ([]coupon.GrantRow, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[coupon.GrantRow], `
		select g.line, g.input, coalesce(g.user_id, 0), u.id is not null,
			not exists (select from grant_rows e where e.sheet_id = g.sheet_id and e.user_id = g.user_id and e.line < g.line),
			coalesce(c.issued, 0), g.result, coalesce(g.coupon_id, 0), g.claim_key
		from grant_rows g left join users u on u.id = g.user_id left join claim_counts c on c.template_id = $2 and c.user_id = g.user_id
		where g.sheet_id = $1 and g.line > $3 order by g.line limit $4`, sheet, templateID, after, limit)
}

// SaveGrants stores the results of rows. A row whose coupon was granted stays
// granted, even if a late worker saves an older result.
func (s Grants) SaveGrants(ctx context.Context, sheet int64, rows []coupon.GrantRow) error {
	n := len(rows)
	lines, results, coupons := make([]int64, n), make([]string, n), make([]int64, n)
	for i, r := range rows {
		lines[i], results[i], coupons[i] = r.Line, r.Result, r.CouponID
	}
	_, err := s.Pool.Exec(ctx, `update grant_rows g set result = r.result, coupon_id = nullif(r.coupon_id, 0)
		from unnest($2::bigint[], $3::text[], $4::bigint[]) as r (line, result, coupon_id)
		where g.sheet_id = $1 and g.line = r.line and g.result <> 'issued'`, sheet, lines, results, coupons)
	return pg.Translate(err)
}

// claimKey is the key of the row's claim.
const claimKey = `coalesce(nullif(g.claim_key, ''), g.sheet_id || ':' || g.user_id)`

// grantLine are the columns of a row. A claim that the gate accepted is written
// soon after, and a worker may have died between granting a coupon and updating
// the row. So the result is looked up when the row is read, unless the coupon that
// it replaces was kept. A coupon is shown at the user's first row.
const grantLine = `g.line, g.input, coalesce(g.user_id, 0),
	case when c.id is not null then 'issued' when g.result = 'accepted' and x.reason <> '' then x.reason else g.result end,
	coalesce(g.coupon_id, c.id, 0)
	from grant_rows g
	left join coupons c on g.result not in ('issued', 'duplicate', 'bad_user_id', 'locked', 'used', 'revoked') and c.origin = 'grant'
		and c.origin_key = ` + claimKey + ` and c.origin_key <> ''
		and not exists (select from grant_rows e where e.sheet_id = g.sheet_id and e.user_id = g.user_id and e.line < g.line)
	left join lateral (select reason from claim_results r where g.result = 'accepted' and c.id is null and r.origin = 'grant'
		and r.origin_key = ` + claimKey + ` and r.origin_key <> '' limit 1) x on true`

func scanGrantLine(row pgx.CollectableRow) (r coupon.GrantRow, err error) {
	return r, row.Scan(&r.Line, &r.Input, &r.UserID, &r.Result, &r.CouponID)
}

// GrantLines returns rows of a list; see [coupon.GrantStore].
func (s Grants) GrantLines(ctx context.Context, sheet int64, result string, after int64, limit int) ([]coupon.GrantRow, error) {
	return pg.Collect(ctx, s.Pool, scanGrantLine, `select * from (select `+grantLine+` where g.sheet_id = $1 and g.line > $2) as r (line, input, user_id, result, coupon_id)
		where $3 = '' or result = $3 order by line limit $4`, sheet, after, result, max(1, limit))
}

// GrantTally counts the rows of a list by their results; see [coupon.GrantStore].
func (s Grants) GrantTally(ctx context.Context, sheet, line int64) (map[string]int64, error) {
	rows := pg.Rows(ctx, s.Pool, `select result, count(*) from (select `+grantLine+` where g.sheet_id = $1) as r (line, input, user_id, result, coupon_id)
		where line <= $2 or result in ('issued', 'accepted') group by 1`, sheet, line)
	tally := map[string]int64{}
	var result string
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&result, &n}, func() error {
		tally[result] = n
		return nil
	})
	return tally, pg.Translate(err)
}

// GrantJobs lists the jobs that grant coupons; see [coupon.GrantStore]. The
// condition on kind is written as in the partial index.
func (s Grants) GrantJobs(ctx context.Context, q coupon.GrantQuery) ([]job.Job, error) {
	s.DB = s.Reports(ctx)
	sql := `select ` + pg.BackgroundColumns + ` from jobs j where j.kind = 'coupons.grant'
		and (cardinality($1::bigint[]) = 0 or j.shop_number = any($1)) and ($2::bigint = 0 or j.id < $2)`
	args := []any{append([]int64{}, q.Shops...), q.Before, max(1, q.Limit)}
	if q.TemplateID != 0 {
		sql += ` and j.params ->> 'template_id' = $4`
		args = append(args, pg.Itoa(q.TemplateID))
	}
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (job.Job, error) { return pg.ScanBackground(row) }, sql+` order by j.id desc limit $3`, args...)
}

// TakenBack counts the coupons that a job revoked; see [coupon.GrantStore].
func (s Grants) TakenBack(ctx context.Context, sheet, jobID int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from (select `+grantLine+` where g.sheet_id = $1) as r (line, input, user_id, result, coupon_id)
		join coupon_operations o on o.coupon_id = r.coupon_id and o.order_id = '' and o.step = 'revoke' and o.outcome = 'done'
		where o.job_id = $2`, sheet, jobID).Scan(&n)
	return n, pg.Translate(err)
}

// appliedSQL finds the job that granted the coupons of sheet $2 of template $1.
const appliedSQL = `select coalesce(max(id), 0) from jobs where kind = 'coupons.grant' and params ->> 'template_id' = $1 and params ->> 'sheet' = $2`

// GrantApplied finds the job that granted the sheet's coupons; see
// [coupon.GrantStore].
func (s Grants) GrantApplied(ctx context.Context, templateID, sheet int64) (id int64, err error) {
	err = s.Pool.QueryRow(ctx, appliedSQL, pg.Itoa(templateID), pg.Itoa(sheet)).Scan(&id)
	return id, pg.Translate(err)
}

// ApplyGrant starts the job that grants a sheet's coupons; see
// [coupon.GrantStore]. A concurrent second request waits for the lock on the dry
// run's row and then finds the first request's job.
func (s Grants) ApplyGrant(ctx context.Context, sheet, templateID int64, j job.Job, requestKey string, e staff.Entry) (applied job.Job, first bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		first = false
		tag, err := tx.Exec(ctx, `select from jobs where id = $1 for update`, sheet)
		if err == nil && tag.RowsAffected() == 0 {
			return job.ErrNotFound
		}
		var id int64
		if err == nil {
			err = tx.QueryRow(ctx, appliedSQL, pg.Itoa(templateID), pg.Itoa(sheet)).Scan(&id)
		}
		switch {
		case err != nil:
			return err
		case id != 0:
			applied, err = pg.ScanBackground(tx.QueryRow(ctx, `select `+pg.BackgroundColumns+` from jobs j where j.id = $1`, id))
			return err
		}
		first = true
		applied, err = pg.StartJob(ctx, tx, j, requestKey, e)
		return err
	})
	return applied, first, err
}

// GrantResults yields every row of a list in order.
func (s Grants) GrantResults(ctx context.Context, sheet int64, yield func(coupon.GrantRow) error) error {
	rows := pg.Rows(ctx, s.Pool, `select `+grantLine+` where g.sheet_id = $1 order by g.line`, sheet)
	var r coupon.GrantRow
	_, err := pgx.ForEachRow(rows, []any{&r.Line, &r.Input, &r.UserID, &r.Result, &r.CouponID}, func() error { return yield(r) })
	return pg.Translate(err)
}
