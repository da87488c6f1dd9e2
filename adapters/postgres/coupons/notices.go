package coupons

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
)

// Notices stores the notices before coupons expire.
type Notices struct{ *pg.DB }

// NewNotices returns the notices of db.
func NewNotices(db *pg.DB) Notices { return Notices{db} }

// horizonSQL moves the horizon, the coupon id up to which notices may be planned.
// Coupon ids are drawn before their transactions commit, so a smaller id may
// appear after a greater one. Therefore horizonSQL stores the greatest id
// together with its own transaction number. Coupons up to this id are planned
// when every transaction with a smaller number has ended. The end of a snapshot
// (xmax) cannot replace this number: xmax follows the last ended transaction, and
// transactions with this or a greater number may be running. A transaction that
// issues coupons has its number before it draws a coupon id, because it has
// locked the template's row or written the owners' counts.
//
// A dump contains seen_xmax, but the server that restores the dump numbers its
// transactions from the beginning. A seen_xmax above the server's next number
// belongs to the dumped server, whose transactions have all ended, so no
// transaction is waited for.
const horizonSQL = `
with newest as (select coalesce(max(id), 0) as id from coupons)
update notice_cursor set seen_to = newest.id, seen_xmax = pg_current_xact_id()
from newest where planned_to = seen_to and newest.id > seen_to`

// NoticesWait asks for coupons whose notices are not planned, notices that are due, and
// runs that are not settled.
const NoticesWait pg.Question = `
(select 1 from notice_cursor where planned_to < seen_to or seen_to < (select max(id) from coupons))
union all
(select 1 from notices where status = 0 and run_id is null and due_at <= statement_timestamp() order by due_at limit 1)
union all
(select 1 from notice_runs where settled_at is null order by id limit 1)`

// holdOutSQL returns the percentage that template t holds out of its messages, if the owner of c has
// a reservation; 0 for other owners, who are not compared.
const holdOutSQL = `case when t.hold_out_percent > 0 and exists (select from reservations r where r.template_id = c.template_id and r.user_id = c.user_id)
		then t.hold_out_percent else 0 end`

// FreshCoupons returns coupons whose notices can be planned; see
// [coupon.NoticeStore].
func (s Notices) FreshCoupons(ctx context.Context, limit int) (list []coupon.Fresh, from, to int64, err error) {
	if _, err = s.Pool.Exec(ctx, horizonSQL); err != nil {
		return nil, 0, 0, pg.Translate(err)
	}
	err = s.Pool.QueryRow(ctx, `select planned_to, seen_to from notice_cursor
		where planned_to < seen_to and (seen_xmax <= pg_snapshot_xmin(pg_current_snapshot()) or seen_xmax >= pg_snapshot_xmax(pg_current_snapshot()))`).Scan(&from, &to)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, 0, 0, nil
	}
	if err != nil {
		return nil, 0, 0, pg.Translate(err)
	}
	// A coupon that was used at once may be refunded, and then its expiry matters
	// to the user again.
	rows := pg.Rows(ctx, s.Pool, `
		select c.id, c.template_id, c.user_id, c.issued_at, c.expires_at, t.notify_days, `+holdOutSQL+`,
			case when coalesce(u.timezone, '') <> '' then u.timezone else s.timezone end, coalesce(u.quiet_from, 0), coalesce(u.quiet_to, 0)
		from coupons c join templates t on t.id = c.template_id join shops s on s.number = t.shop_number left join users u on u.id = c.user_id
		where c.id > $1 and c.id <= $2 and t.notify_days <> 0 and c.state in ('unused', 'locked', 'used') order by c.id limit $3`, from, to, limit)
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f coupon.Fresh, err error) {
		return f, row.Scan(&f.ID, &f.TemplateID, &f.UserID, &f.IssuedAt, &f.ExpiresAt, &f.Days, &f.HoldOut, &f.Timezone, &f.Quiet.From, &f.Quiet.To)
	})
	if len(list) == limit {
		to = list[limit-1].ID
	}
	return list, from, to, pg.Translate(err)
}

// StoreNotices stores a plan and moves the cursor; see [coupon.NoticeStore]. With the cursor it notes which of the
// coupons return to the stock unless they are used in time.
func (s Notices) StoreNotices(ctx context.Context, from, to int64, plan []coupon.Notice) error {
	n := len(plan)
	users, templates, days := make([]int64, n), make([]int64, n), make([]int16, n)
	dates, dues, ends := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, p := range plan {
		users[i], templates[i], days[i] = int64(p.UserID), p.TemplateID, int16(p.Days)
		dates[i], dues[i], ends[i] = p.Day, p.DueAt, p.ExpiresAt
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update notice_cursor set planned_to = $2 where planned_to = $1`, from, to)
		if err == nil && tag.RowsAffected() == 0 {
			return coupon.ErrRaced
		}
		if err == nil {
			_, err = tx.Exec(ctx, planReturns, from, to)
		}
		if err != nil || n == 0 {
			return err
		}
		_, err = tx.Exec(ctx, `
			with stored as (
				insert into notices as n (user_id, template_id, day, days, due_at, expires_at)
				select * from unnest($1::bigint[], $2::bigint[], $3::date[], $4::smallint[], $5::timestamptz[], $6::timestamptz[])
				-- A later coupon of the same day extends what is planned; what went out stays.
				on conflict (user_id, template_id, day) do update set expires_at = greatest(n.expires_at, excluded.expires_at)
				returning template_id, day, xmax = 0 as new
			)
			insert into notice_days as d (day, template_id, planned)
			select day, template_id, count(*) from stored where new group by 1, 2 order by 1, 2
			on conflict (day, template_id) do update set planned = d.planned + excluded.planned`, users, templates, dates, days, dues, ends)
		return err
	})
}

// NoticeDays returns the calendar of notices from the first day to the last day.
// It covers the given shops (empty = all shops) and the given template (0 = all
// templates).
func (s Notices) NoticeDays(ctx context.Context, from, to time.Time, shops []int64, templateID int64) ([]coupon.NoticeDay, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[coupon.NoticeDay], `
		select d.day, sum(d.planned)::bigint, sum(d.sent)::bigint, sum(d.failed)::bigint, sum(d.dropped)::bigint
		from notice_days d join templates t on t.id = d.template_id
		where d.day between $1::date and $2::date and (cardinality($3::bigint[]) = 0 or t.shop_number = any($3)) and ($4::bigint = 0 or d.template_id = $4)
		group by d.day order by d.day`, from, to, append([]int64{}, shops...), templateID)
}
