package coupons

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// dueNotice is a due notice with the present state of its coupons.
type dueNotice struct {
	coupon.Notice
	Live bool                // an unused coupon that still expires then
	Late bool                // expired before the notice was sent
	Over delivery.ChannelSet // of the template
	// HoldOut is the percentage that the drop holds out, see [coupon.Fresh]. Notices to held-out
	// users were planned by a worker of an earlier program.
	HoldOut int
}

// liveSQL reports whether the reader of notice n still has a coupon that will
// expire.
const liveSQL = `exists (select from coupons c where c.user_id = n.user_id and c.template_id = n.template_id and c.state in ('unused', 'locked')
        and c.expires_at > clock_timestamp() and c.expires_at <= n.expires_at)`

// takeSQL locks due notices, so that two workers cut different notices.
var takeSQL = `
select n.user_id, n.template_id, n.day, n.days, n.due_at, n.expires_at,
    ` + liveSQL + `,
    n.expires_at <= clock_timestamp(), t.notify_channels, ` + strings.ReplaceAll(holdOutSQL, "c.", "n.") + `
from notices n join templates t on t.id = n.template_id
where n.status = 0 and n.run_id is null and n.due_at <= statement_timestamp()
order by n.due_at limit $1 for update of n skip locked`

// CutNotices takes due notices and stores batches for them; see
// [coupon.NoticeStore].
func (s Notices) CutNotices(ctx context.Context, limit int) (batches []coupon.CutBatch, n int, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		due, err := pgx.CollectRows(pg.Rows(ctx, tx, takeSQL, limit), func(row pgx.CollectableRow) (d dueNotice, err error) {
			return d, row.Scan(&d.UserID, &d.TemplateID, &d.Day, &d.Days, &d.DueAt, &d.ExpiresAt, &d.Live, &d.Late, &d.Over, &d.HoldOut)
		})
		if err != nil || len(due) == 0 {
			return err
		}
		n = len(due)
		send, drop, late := sortOut(due)
		if err := dropNotices(ctx, tx, drop); err != nil {
			return err
		}
		if err := failNotices(ctx, tx, late); err != nil {
			return err
		}
		for _, group := range send {
			more, err := storeRun(ctx, tx, group)
			if err != nil {
				return err
			}
			batches = append(batches, more...)
		}
		return nil
	})
	return batches, n, err
}

// sortOut divides due notices into groups to be sent, notices that became
// unnecessary, and notices that are too late. A group has one template, one
// number of days, and at most the size of a batch. If no worker ran for days, a
// user may have several due notices of one template; only the notice nearest to
// the expiry is sent.
func sortOut(due []dueNotice) (send [][]dueNotice, drop, late []dueNotice) {
	slices.SortFunc(due, func(a, b dueNotice) int {
		return cmp.Or(cmp.Compare(a.TemplateID, b.TemplateID), cmp.Compare(a.UserID, b.UserID), cmp.Compare(a.Days, b.Days))
	})
	groups := map[[2]int64][]dueNotice{}
	var keys [][2]int64
	var told dueNotice // the last one with a notice
	for _, d := range due {
		switch {
		case d.Late:
			late = append(late, d)
			continue
		case !d.Live || delivery.HeldOutOfDrop(d.TemplateID, d.HoldOut, d.UserID) || told.UserID == d.UserID && told.TemplateID == d.TemplateID:
			drop = append(drop, d)
			continue
		}
		told = d
		k := [2]int64{d.TemplateID, int64(d.Days)}
		if groups[k] == nil {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], d)
	}
	for _, k := range keys {
		for part := range slices.Chunk(groups[k], delivery.BatchSize) {
			send = append(send, part)
		}
	}
	return send, drop, late
}

func noticeKeys(list []dueNotice) (users, templates []int64, days []time.Time) {
	for _, d := range list {
		users, templates, days = append(users, int64(d.UserID)), append(templates, d.TemplateID), append(days, d.Day)
	}
	return users, templates, days
}

// dropNotices deletes notices about coupons that were used or no longer exist.
func dropNotices(ctx context.Context, tx pgx.Tx, list []dueNotice) error {
	if len(list) == 0 {
		return nil
	}
	users, templates, days := noticeKeys(list)
	_, err := tx.Exec(ctx, `
		with gone as (
			delete from notices n using unnest($1::bigint[], $2::bigint[], $3::date[]) as u (user_id, template_id, day)
			where n.user_id = u.user_id and n.template_id = u.template_id and n.day = u.day returning n.day, n.template_id
		)
		insert into notice_days as d (day, template_id, dropped) select day, template_id, count(*) from gone group by 1, 2 order by 1, 2
		on conflict (day, template_id) do update set dropped = d.dropped + excluded.dropped`, users, templates, days)
	return err
}

// failNotices records that the notices were not sent in time.
func failNotices(ctx context.Context, tx pgx.Tx, list []dueNotice) error {
	if len(list) == 0 {
		return nil
	}
	users, templates, days := noticeKeys(list)
	_, err := tx.Exec(ctx, `
		with failed as (
			update notices n set status = 2, reason = $4 from unnest($1::bigint[], $2::bigint[], $3::date[]) as u (user_id, template_id, day)
			where n.user_id = u.user_id and n.template_id = u.template_id and n.day = u.day returning n.day, n.template_id
		)
		insert into notice_days as d (day, template_id, failed) select day, template_id, count(*) from failed group by 1, 2 order by 1, 2
		on conflict (day, template_id) do update set failed = d.failed + excluded.failed`, users, templates, days, delivery.ReasonDeadline)
	return err
}

// storeRunSQL returns the id and the channel of each new batch.
const storeRunSQL = `
with run as (
    insert into notice_runs (template_id, days, due_at) values (@template, @days_before, @due_at) returning id
), mark as (
    update notices n set run_id = run.id from run, unnest(@users::bigint[], @templates::bigint[], @days::date[]) as u (user_id, template_id, day)
    where n.user_id = u.user_id and n.template_id = u.template_id and n.day = u.day
)
insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, due_at, worthless_after, priority, next_run_at)
select 'notice', run.id, @template, c, @from_user, @to_user, @due_count, @due, @due_at, @worthless_after, @priority, clock_timestamp()
from run, unnest(@channels::smallint[]) as c
returning id, channel`

// storeRun stores one run with a batch for each channel. The batch becomes
// worthless at the first expiry among its readers' coupons.
func storeRun(ctx context.Context, tx pgx.Tx, group []dueNotice) (batches []coupon.CutBatch, err error) {
	ids := make([]user.ID, len(group))
	first, worthless := group[0].DueAt, group[0].ExpiresAt
	for i, d := range group {
		ids[i] = d.UserID
		if d.DueAt.Before(first) {
			first = d.DueAt
		}
		if d.ExpiresAt.Before(worthless) {
			worthless = d.ExpiresAt
		}
	}
	due, err := pg.EncodeSet(ids) // ascending: sorted by user within a template
	if err != nil {
		return nil, err
	}
	var channels []int16
	for _, c := range delivery.AllChannels() {
		if group[0].Over.Has(c) {
			channels = append(channels, int16(c))
		}
	}
	users, templates, days := noticeKeys(group)
	rows := pg.Rows(ctx, tx, storeRunSQL, pgx.StrictNamedArgs{
		"template": group[0].TemplateID, "days_before": group[0].Days, "due_at": first, "worthless_after": worthless,
		"users": users, "templates": templates, "days": days,
		"from_user": ids[0], "to_user": ids[len(ids)-1], "due_count": len(ids), "due": due,
		"priority": pg.AnnouncementPriority, "channels": channels,
	})
	return pgx.CollectRows(rows, pgx.RowToStructByPos[coupon.CutBatch])
}

// Readers returns the state of the batch's remaining recipients; see
// [coupon.ReaderStore].
func (s Notices) Readers(ctx context.Context, run int64, users []user.ID) (coupon.Readers, error) {
	r := coupon.Readers{Quiet: map[user.ID]user.User{}, Done: map[user.ID]bool{}}
	rows, err := s.Pool.Query(ctx, `
		select u.id, u.quiet_from, u.quiet_to, case when u.timezone <> '' then u.timezone else s.timezone end
		from notice_runs r join templates t on t.id = r.template_id join shops s on s.number = t.shop_number
		join users u on u.id = any($2) and u.quiet_from <> u.quiet_to where r.id = $1`, run, users)
	if err != nil {
		return r, pg.Translate(err)
	}
	var u user.User
	if _, err = pgx.ForEachRow(rows, []any{&u.ID, &u.Quiet.From, &u.Quiet.To, &u.Timezone}, func() error {
		r.Quiet[u.ID] = u
		return nil
	}); err != nil {
		return r, pg.Translate(err)
	}
	if rows, err = s.Pool.Query(ctx, `select n.user_id from notices n where n.run_id = $1 and n.user_id = any($2) and not `+liveSQL, run, users); err != nil {
		return r, pg.Translate(err)
	}
	_, err = pgx.ForEachRow(rows, []any{&u.ID}, func() error {
		r.Done[u.ID] = true
		return nil
	})
	return r, pg.Translate(err)
}
