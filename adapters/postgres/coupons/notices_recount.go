package coupons

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
)

const (
	// runsLookedAt is the number of newest runs among which recently settled runs
	// are searched: runs are settled in about the order in which they were cut.
	runsLookedAt = 5000
	// runsAtOnce runs are recounted in one snapshot, with up to a hundred
	// thousand readers.
	runsAtOnce = 100
)

// RecentRuns recounts at most limit runs of notices that were settled within the
// window, the newest first. It returns the balances that do not add up, and the
// number of runs recounted.
func (s Notices) RecentRuns(ctx context.Context, window time.Duration, limit int) (off []coupon.RunBalance, looked int, err error) {
	return s.recountRuns(ctx, `select id from (select id, settled_at from notice_runs order by id desc limit $1) r
		where settled_at > now() - $2::interval order by id desc limit $3`, runsLookedAt, window, limit)
}

// RunsOf recounts all settled runs that have notices of the day.
func (s Notices) RunsOf(ctx context.Context, day time.Time) (off []coupon.RunBalance, looked int, err error) {
	return s.recountRuns(ctx, `select id from notice_runs where settled_at is not null
		and id in (select run_id from notices where day = $1::date) order by id desc`, day)
}

// recountRuns recounts the runs that the query finds.
func (s Notices) recountRuns(ctx context.Context, find string, args ...any) (off []coupon.RunBalance, looked int, err error) {
	ids, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, find, args...), pgx.RowTo[int64])
	if err != nil {
		return nil, 0, pg.Translate(err)
	}
	for some := range slices.Chunk(ids, runsAtOnce) {
		list, err := s.balanceRuns(ctx, some)
		if err != nil {
			return nil, 0, err
		}
		looked += len(list)
		off = append(off, slices.DeleteFunc(list, func(b coupon.RunBalance) bool { return b.Difference() == 0 })...)
	}
	return off, looked, nil
}

// runSets are the readers of a run: the readers of its batches, and the readers
// of its notices by status.
type runSets struct {
	template           int64
	due, reached, gone *roaring64.Bitmap // gone: users whose coupons were gone before they were told
	notices            map[noticeStatus]*roaring64.Bitmap
}

// noticeStatus is the column status of notices.
type noticeStatus int16

const (
	noticePlanned noticeStatus = iota
	noticeSent
	noticeFailed
)

func newRunSets(template int64) *runSets {
	return &runSets{template: template, due: roaring64.New(), reached: roaring64.New(), gone: roaring64.New(),
		notices: map[noticeStatus]*roaring64.Bitmap{noticePlanned: roaring64.New(), noticeSent: roaring64.New(), noticeFailed: roaring64.New()}}
}

// balanceRuns recounts runs in one snapshot. A run that is no longer settled,
// because its dead letters are being replayed, is left out.
func (s Notices) balanceRuns(ctx context.Context, ids []int64) (list []coupon.RunBalance, err error) {
	runs := map[int64]*runSets{}
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		clear(runs)
		return errors.Join(readRuns(ctx, tx, ids, runs), readRunBatches(ctx, tx, ids, runs), readRunNotices(ctx, tx, ids, runs))
	})
	for _, id := range ids {
		if r := runs[id]; r != nil {
			list = append(list, r.balance(id))
		}
	}
	return list, err
}

func readRuns(ctx context.Context, tx pgx.Tx, ids []int64, runs map[int64]*runSets) error {
	rows := pg.Rows(ctx, tx, `select r.id, r.template_id from notice_runs r where r.id = any($1) and r.settled_at is not null and `+batchesDone, ids)
	var id, template int64
	_, err := pgx.ForEachRow(rows, []any{&id, &template}, func() error {
		runs[id] = newRunSets(template)
		return nil
	})
	return err
}

func readRunBatches(ctx context.Context, tx pgx.Tx, ids []int64, runs map[int64]*runSets) error {
	rows, err := tx.Query(ctx, `select owner_id, due, sent from batches where kind = 'notice' and owner_id = any($1)`, ids)
	if err != nil {
		return err
	}
	var id int64
	var due, sent []byte
	if _, err = pgx.ForEachRow(rows, []any{&id, &due, &sent}, func() error {
		r := runs[id]
		if r == nil {
			return nil
		}
		all, err := pg.DecodeSet(due)
		some, sentErr := pg.DecodeSet(sent)
		if err := errors.Join(err, sentErr); err != nil {
			return err
		}
		r.due.Or(all)
		r.reached.Or(some)
		return nil
	}); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, `select b.owner_id, e.user_id from batches b join exceptions e on e.batch_id = b.id
		where b.kind = 'notice' and b.owner_id = any($1) and e.reason = $2`, ids, delivery.ReasonCouponGone); err != nil {
		return err
	}
	var reader int64
	_, err = pgx.ForEachRow(rows, []any{&id, &reader}, func() error {
		if r := runs[id]; r != nil {
			r.gone.Add(uint64(reader))
		}
		return nil
	})
	return err
}

func readRunNotices(ctx context.Context, tx pgx.Tx, ids []int64, runs map[int64]*runSets) error {
	rows := pg.Rows(ctx, tx, `select run_id, user_id, status from notices where run_id = any($1)`, ids)
	var id, reader int64
	var status noticeStatus
	_, err := pgx.ForEachRow(rows, []any{&id, &reader, &status}, func() error {
		if r := runs[id]; r != nil {
			r.notices[status].Add(uint64(reader))
		}
		return nil
	})
	return err
}

func (r *runSets) balance(id int64) coupon.RunBalance {
	sent, failed, planned := r.notices[noticeSent], r.notices[noticeFailed], r.notices[noticePlanned]
	// Of the users whose coupons were gone, only users who had been reached
	// before have a notice.
	lost := roaring64.AndNot(r.due, roaring64.FastOr(sent, failed, planned, roaring64.AndNot(r.gone, r.reached)))
	wrong := roaring64.FastOr(planned, roaring64.AndNot(sent, roaring64.And(r.due, r.reached)),
		roaring64.AndNot(failed, roaring64.AndNot(r.due, r.reached)))
	return coupon.RunBalance{Run: id, TemplateID: r.template, Readers: int64(r.due.GetCardinality()),
		Lost: int64(lost.GetCardinality()), Wrong: int64(wrong.GetCardinality())}
}

// DayBalance compares the calendar of one day with its notices.
func (s Notices) DayBalance(ctx context.Context, day time.Time) ([]coupon.NoticeBalance, error) {
	rows := pg.Rows(ctx, s.Pool, `
		with stored as (
			select template_id, count(*) filter (where status = 0) as waiting, count(*) filter (where status = 1) as sent,
				count(*) filter (where status = 2) as failed
			from notices where day = $1::date group by template_id
		), kept as (
			select template_id, planned, sent, failed, dropped from notice_days where day = $1::date
		)
		select template_id, coalesce(k.planned, 0), coalesce(k.sent, 0), coalesce(k.failed, 0), coalesce(k.dropped, 0),
			coalesce(s.waiting, 0), coalesce(s.sent, 0), coalesce(s.failed, 0)
		from kept k full join stored s using (template_id) order by template_id`, day)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b coupon.NoticeBalance, err error) {
		b.Kept.Day = day
		return b, row.Scan(&b.TemplateID, &b.Kept.Planned, &b.Kept.Sent, &b.Kept.Failed, &b.Kept.Dropped, &b.Waiting, &b.Sent, &b.Failed)
	})
	return list, pg.Translate(err)
}
