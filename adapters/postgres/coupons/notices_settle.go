package coupons

import (
	"context"
	"errors"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// batchesDone says that every batch of run r is done.
const batchesDone = `not exists (select from batches b where b.kind = 'notice' and b.owner_id = r.id and b.state <> 'done')`

// FinishedRuns returns runs whose batches are done and whose outcomes are not stored in their
// notices.
func (s Notices) FinishedRuns(ctx context.Context, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select r.id from notice_runs r where r.settled_at is null and `+batchesDone+` order by r.id limit $1`, limit)
}

// SettleNotices stores the outcomes of a run's notices. A notice is sent if one channel
// reached the reader; a notice that became unnecessary is removed. SettleNotices runs again
// after dead letters were replayed, and then changes the calendar by the difference.
func (s Notices) SettleNotices(ctx context.Context, run int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := pg.LockIDs(ctx, tx, `select r.id from notice_runs r where r.id = $1 for update`, run); err != nil {
			return err
		}
		// The batches are checked after the lock, since a replay that makes a batch ready
		// again locks the run.
		var done bool
		if err := tx.QueryRow(ctx, `select `+batchesDone+` from notice_runs r where r.id = $1`, run).Scan(&done); err != nil || !done {
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		}
		reached, err := reachedByRun(ctx, tx, run)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			with old as (
				select n.user_id, n.template_id, n.day, n.status as was, case when n.user_id = any($2::bigint[]) then 1 else 2 end as is_now,
					case when n.user_id = any($2::bigint[]) then '' else coalesce((
						select e.reason from batches b join exceptions e on e.batch_id = b.id and e.user_id = n.user_id
						where b.kind = 'notice' and b.owner_id = $1 order by b.channel limit 1),
						(select min(b.rest_reason) from batches b where b.kind = 'notice' and b.owner_id = $1), '') end as why
				from notices n where n.run_id = $1
			), gone as (
				delete from notices n using old
				where n.user_id = old.user_id and n.template_id = old.template_id and n.day = old.day and old.is_now = 2
					and exists (select from batches b join exceptions e on e.batch_id = b.id and e.user_id = n.user_id
						where b.kind = 'notice' and b.owner_id = $1 and e.reason = $3)
				returning old.user_id, old.day, old.template_id, old.was, 0 as is_now
			), changed as (
				update notices n set status = old.is_now, reason = old.why from old
				where n.user_id = old.user_id and n.template_id = old.template_id and n.day = old.day and (n.status, n.reason) is distinct from (old.is_now, old.why)
					and not exists (select from gone g where (g.user_id, g.template_id, g.day) = (n.user_id, n.template_id, n.day))
				returning old.day, old.template_id, old.was, old.is_now
			), counted as (
				insert into notice_days as d (day, template_id, sent, failed, dropped)
				select day, template_id, sum((is_now = 1)::int - (was = 1)::int), sum((is_now = 2)::int - (was = 2)::int), sum((is_now = 0)::int)
				from (select day, template_id, was, is_now from changed union all select day, template_id, was, is_now from gone) each group by 1, 2 order by 1, 2
				on conflict (day, template_id) do update set sent = d.sent + excluded.sent, failed = d.failed + excluded.failed, dropped = d.dropped + excluded.dropped
			)
			update notice_runs set settled_at = clock_timestamp() where id = $1`, run, reached, delivery.ReasonCouponGone)
		return err
	})
}

// SleepingRuns returns open runs that have sent more messages than their notices record. Every
// batch of such a run is done or deferred for a while, for example until the end of quiet
// hours.
func (s Notices) SleepingRuns(ctx context.Context, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		select r.id from notice_runs r
		where r.settled_at is null and r.told < (select sum(b.sent_count) from batches b where b.kind = 'notice' and b.owner_id = r.id)
			and not exists (select from batches b where b.kind = 'notice' and b.owner_id = r.id and b.state <> 'done'
				and (b.state <> 'ready' or b.next_run_at < clock_timestamp() + interval '10 seconds'))
		order by r.id limit $1`, limit)
}

// NoteReached records which users of an open run have been reached so far, and updates the
// calendar accordingly.
func (s Notices) NoteReached(ctx context.Context, run int64) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		open, err := pg.LockIDs(ctx, tx, `select r.id from notice_runs r where r.id = $1 and r.settled_at is null for update`, run)
		if err != nil || len(open) == 0 {
			return err
		}
		// The messages are counted before the reached users are read: messages sent meanwhile
		// are recorded by the next call.
		if _, err := tx.Exec(ctx, `update notice_runs set told = (select sum(sent_count) from batches where kind = 'notice' and owner_id = $1)
			where id = $1`, run); err != nil {
			return err
		}
		reached, err := reachedByRun(ctx, tx, run)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `
			with old as (
				select n.user_id, n.template_id, n.day, n.status from notices n where n.run_id = $1 and n.user_id = any($2::bigint[]) and n.status <> 1
			), changed as (
				update notices n set status = 1, reason = '' from old
				where n.user_id = old.user_id and n.template_id = old.template_id and n.day = old.day returning old.day, old.template_id, old.status
			)
			insert into notice_days as d (day, template_id, sent, failed)
			select day, template_id, count(*), -count(*) filter (where status = 2) from changed group by 1, 2 order by 1, 2
			on conflict (day, template_id) do update set sent = d.sent + excluded.sent, failed = d.failed + excluded.failed`, run, reached)
		return err
	})
}

// reachedByRun lists the users whom the run's batches reached on any channel.
func reachedByRun(ctx context.Context, tx pgx.Tx, run int64) ([]int64, error) {
	sent, err := sentByRun(ctx, tx, run)
	if err != nil {
		return nil, err
	}
	list := make([]int64, 0, sent.GetCardinality())
	for it := sent.Iterator(); it.HasNext(); {
		list = append(list, int64(it.Next()))
	}
	return list, nil
}

// sentByRun returns the union of the users whom the run's batches reached on any channel.
func sentByRun(ctx context.Context, tx pgx.Tx, run int64) (*roaring64.Bitmap, error) {
	rows, err := tx.Query(ctx, `select sent from batches where kind = 'notice' and owner_id = $1`, run)
	if err != nil {
		return nil, err
	}
	all := roaring64.New()
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error {
		set, err := pg.DecodeSet(raw)
		if err == nil {
			all.Or(set)
		}
		return err
	})
	return all, err
}
