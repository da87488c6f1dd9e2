package work

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// pastBatches selects the batches with ids above $2 and up to $3 that are done and worthless
// before $1. A reminder's batch stays until the figures of its drop are kept.
const pastBatches = `b.id > $2 and b.id <= $3 and b.state = 'done' and b.worthless_after < $1::timestamptz
	and not (b.kind = 'reminder' and exists (select from removals m where m.step = 'reservations' and m.object_id = b.template_id))`

// removeBatchesSQL removes the batches of pastBatches, and adds the reports about their messages
// to the totals that are kept. The counts of the batches must be corrected before.
const removeBatchesSQL = `with past as (
	select b.id, f.kind, f.owner_id, f.channel, f.delivered_count as delivered, f.bounced_count as bounced, f.complained_count as complained
	from batches b left join batch_feedback f on f.batch_id = b.id where ` + pastBatches + `
), kept as (
	insert into feedback_totals as t (kind, owner_id, channel, delivered, bounced, complained)
	select kind, owner_id, channel, sum(delivered), sum(bounced), sum(complained) from past where kind is not null
	group by kind, owner_id, channel order by kind, owner_id, channel
	on conflict (kind, owner_id, channel) do update set delivered = t.delivered + excluded.delivered,
		bounced = t.bounced + excluded.bounced, complained = t.complained + excluded.complained
)
delete from batches b using past where b.id = past.id`

// placeSQL returns the id up to which all batches were examined. It first goes back to the
// batches that could not be removed then, if they are to be examined again.
const placeSQL = `
insert into housekeeping_steps as s (step) values ('batches')
on conflict (step) do update set position = case when s.again_at <= $1 then s.again_from - 1 else s.position end,
    again_from = case when s.again_at <= $1 then null else s.again_from end, again_at = case when s.again_at <= $1 then null else s.again_at end
returning s.position`

// windowSQL returns the end of the next range of up to $3 batches with ids above $1, all of them
// made or worthless before $2; null if the first batch is newer. Ids grow with time.
const windowSQL = `
select case when (select least(created_at, worthless_after) < $2 from batches where id > $1 order by id limit 1) then
    (select max(id) from (select id, bool_and(least(created_at, worthless_after) < $2) over (order by id) as old
        from (select id, created_at, worthless_after from batches where id > $1 order by id limit $3) b) w where old) end`

// examinedSQL notes that the batches above $1 and up to $2 were examined, and when those that
// are left are examined again: when they may be past their retention $3, but not within the hour;
// the next day if they wait for something other than time. It does nothing if another process
// has changed the place meanwhile.
const examinedSQL = `
with kept as (
    select min(id) as id, min(case when state = 'done' and worthless_after + $3::interval > $4 then worthless_after + $3::interval else $4::timestamptz + interval '1 day' end) as at
    from batches where id > $1 and id <= $2
)
update housekeeping_steps s set position = $2, again_from = least(s.again_from, k.id), again_at = least(s.again_at, case when k.id is not null then greatest(k.at, $4::timestamptz + interval '1 hour') end)
from kept k where s.step = 'batches' and s.position = $1`

// removeBatches removes batches that are done and past their retention. Before each range of
// batches it removes the outcomes and reports of their recipients, which may be a thousand times
// as many rows. It reads batches by id and continues where the last run ended.
func (h Housekeeping) removeBatches(ctx context.Context, now time.Time, age time.Duration) (total int64, err error) {
	before, after := now.Add(-age), int64(0)
	if err := h.Pool.QueryRow(ctx, placeSQL, now).Scan(&after); err != nil {
		return 0, pg.Translate(err)
	}
	for {
		var last *int64
		err := h.Pool.QueryRow(ctx, windowSQL, after, before, chunk).Scan(&last)
		if err != nil || last == nil {
			return total, pg.Translate(err)
		}
		n, err := h.removeRange(ctx, before, after, *last)
		if total += n; err != nil {
			return total, err
		}
		if _, err := h.Pool.Exec(ctx, examinedSQL, after, *last, age, now); err != nil {
			return total, pg.Translate(err)
		}
		after = *last
	}
}

// removeRange removes the past batches with ids above after and up to last, with their rows.
func (h Housekeeping) removeRange(ctx context.Context, before time.Time, after, last int64) (total int64, err error) {
	for _, sql := range []string{
		`delete from exceptions where (batch_id, user_id) in (select e.batch_id, e.user_id from batches b
			join exceptions e on e.batch_id = b.id where ` + pastBatches + ` limit $4)`,
		`delete from feedback_reports where (batch_id, user_id) in (select r.batch_id, r.user_id from batches b
			join feedback_reports r on r.batch_id = b.id where ` + pastBatches + ` limit $4)`,
	} {
		n, err := h.inChunks(ctx, sql, before, after, last, chunk)
		if total += n; err != nil {
			return total, err
		}
	}
	n, err := h.removePast(ctx, before, after, last)
	return total + n, err
}

// lockReportedSQL locks the reported counts of the batches, in the order that every writer of
// these counts uses. It returns for each batch whether its counts include messages that were not
// sent.
const lockReportedSQL = `select b.id, ` + pg.FeedbackStray + ` from batches b join batch_feedback f on f.batch_id = b.id where ` + pastBatches + ` order by b.id for update of f`

// correctSQL sets the counts of batches, with an element per batch.
const correctSQL = `
update batch_feedback f set delivered_count = g.delivered, bounced_count = g.bounced, complained_count = g.complained
from unnest(@ids::bigint[], @delivered::int[], @bounced::int[], @complained::int[]) as g (id, delivered, bounced, complained) where f.batch_id = g.id`

// removePast removes the batches, and keeps the totals of the reports about their sent messages.
func (h Housekeeping) removePast(ctx context.Context, before time.Time, after, last int64) (removed int64, err error) {
	return removed, h.Tx(ctx, func(tx pgx.Tx) error {
		rows := pg.Rows(ctx, tx, lockReportedSQL, before, after, last)
		var strays []int64
		var id int64
		var stray bool
		if _, err := pgx.ForEachRow(rows, []any{&id, &stray}, func() error {
			if stray {
				strays = append(strays, id)
			}
			return nil
		}); err != nil {
			return err
		}
		if err := correctReported(ctx, tx, strays); err != nil {
			return err
		}
		done, err := tx.Exec(ctx, removeBatchesSQL, before, after, last)
		removed = done.RowsAffected()
		return err
	})
}

func correctReported(ctx context.Context, tx pgx.Tx, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	stray, err := pg.StrayFeedback(ctx, tx, ids)
	if err != nil {
		return err
	}
	var counts [3][]int32
	for _, id := range ids {
		t := stray[id]
		counts[0], counts[1], counts[2] = append(counts[0], int32(t.Delivered)), append(counts[1], int32(t.Bounced)), append(counts[2], int32(t.Complained))
	}
	_, err = tx.Exec(ctx, correctSQL, pgx.StrictNamedArgs{"ids": ids, "delivered": counts[0], "bounced": counts[1], "complained": counts[2]})
	return err
}
