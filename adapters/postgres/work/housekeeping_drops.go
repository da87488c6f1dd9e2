package work

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
)

// together is how many drops or campaigns the statements of a step treat at once.
const together = 100

// dueSQL returns up to $3 drops or campaigns of the step $1 whose retention began before $2, the
// oldest first.
const dueSQL = `select object_id from removals where step = $1 and at < $2 order by at, object_id limit $3`

// dropRows removes the rows of drops that are past their retention.
func (c *cleaning) dropRows(ctx context.Context, keep Retention) {
	c.planned(ctx, "reservations", keep.Delivery, c.removeReservations)
	c.planned(ctx, "openings", keep.Delivery, c.removeOpenings)
	c.do(ctx, "coupons", keep.Coupons, func(ctx context.Context) (int64, error) { return c.removeCoupons(ctx, c.start, keep.Coupons) })
}

// campaignRows archives campaigns that are past their retention, and removes their rows.
func (c *cleaning) campaignRows(ctx context.Context, age time.Duration) {
	c.do(ctx, "campaign_results", age, func(ctx context.Context) (int64, error) {
		return c.inChunks(ctx, archiveCampaignsSQL, c.before(age), chunk)
	})
	c.planned(ctx, "campaigns", age, c.removeCampaignRows)
}

// archiveCampaignsSQL archives results before the rows are removed from which the results were
// counted. A trigger plans the removal.
const archiveCampaignsSQL = `
update campaigns set archived = true where id in (select id from campaigns where settled_at is not null and not archived and ends_at < $1 limit $2)`

// planned runs a step over the drops or campaigns whose retention is over. remove removes all
// rows of several of them; it may be repeated. It returns which it is done with.
func (c *cleaning) planned(ctx context.Context, name string, age time.Duration, remove func(ctx context.Context, ids []int64) (rows int64, done []int64, err error)) {
	c.do(ctx, name, age, func(ctx context.Context) (total int64, err error) {
		for {
			ids, err := pgx.CollectRows(pg.Rows(ctx, c.Pool, dueSQL, name, c.before(age), together), pgx.RowTo[int64])
			if err != nil || len(ids) == 0 {
				return total, pg.Translate(err)
			}
			n, done, err := remove(ctx, ids)
			if total += n; err != nil {
				return total, err
			}
			if err := c.settle(ctx, name, ids, done, age); err != nil {
				return total, err
			}
		}
	})
}

// settleSQL deletes the finished objects $2 from the plan of step $1. The others of $3 are
// looked at again a day later. A row that was planned anew meanwhile, for an instant that is not
// over, stays as it is.
const settleSQL = `
with gone as (delete from removals where step = $1 and object_id = any($2) and at < $4)
update removals set at = $4::timestamptz + interval '1 day' where step = $1 and object_id = any($3) and object_id <> all($2) and at < $4`

func (c *cleaning) settle(ctx context.Context, name string, ids, done []int64, age time.Duration) error {
	if done == nil {
		done = []int64{}
	}
	_, err := c.Pool.Exec(ctx, settleSQL, name, done, ids, c.before(age))
	return pg.Translate(err)
}

// ofDrops are the tables whose rows are removed with the reservations, each with its key.
var ofDrops = []struct{ table, key string }{
	{"reservations", "template_id, user_id"}, {"booking_growth", "template_id, minute"}, {"former_reservations", "user_id, template_id"},
	{"waiters", "template_id, user_id"},
}

// removeReservations keeps the figures of the drops and removes the rows from which they were
// counted.
func (c *cleaning) removeReservations(ctx context.Context, ids []int64) (total int64, done []int64, err error) {
	for _, id := range ids {
		if err := c.keepFigures(ctx, id); err != nil {
			return 0, nil, err
		}
	}
	if _, err := c.Pool.Exec(ctx, `update slot_results r set archived = true from slots s where s.template_id = any($1) and r.slot_id = s.id and not r.archived`, ids); err != nil {
		return 0, nil, pg.Translate(err)
	}
	for _, t := range ofDrops {
		n, err := c.inChunks(ctx, `delete from `+t.table+` where (`+t.key+`) in (select `+t.key+` from `+t.table+` where template_id = any($1) limit $2)`, ids, chunk)
		if total += n; err != nil {
			return total, nil, err
		}
	}
	return total, ids, nil
}

// growthKept is how many values of a booking curve are kept.
const growthKept = 500

// keepFiguresSQL stores the counts of a drop's users and its booking curve, unless they are
// stored already.
const keepFiguresSQL = `
insert into drop_archives (template_id, booked, reminded, opened, claimed, used, others, partial, growth)
select @id, @booked, @reminded, @opened, @claimed, @used, @others, @partial,
    (select jsonb_agg(jsonb_build_array(extract(epoch from minute)::bigint, booked) order by minute) from (
        select minute, sum(delta) over (order by minute) as booked, row_number() over (order by minute desc) as back, count(*) over () as n
        from booking_growth where template_id = @id) g
    where back % greatest(1, (n + @points - 1) / @points) = 1 or n <= @points)
where exists (select from templates where id = @id)
on conflict (template_id) do nothing`

// keepFigures stores the figures of a drop before its rows are removed. They stay as they were
// first counted: a second run may have removed some of the rows already.
func (c *cleaning) keepFigures(ctx context.Context, id int64) error {
	return c.Tx(ctx, func(tx pgx.Tx) error {
		p, err := pg.People(ctx, tx, id)
		if err != nil || p.CountedAt != nil {
			return err
		}
		_, err = tx.Exec(ctx, keepFiguresSQL, pgx.StrictNamedArgs{"id": id, "booked": p.Booked, "reminded": p.Reminded, "opened": p.Opened, "claimed": p.Claimed,
			"used": p.Used, "others": p.Others, "partial": p.Partial, "points": growthKept})
		return err
	})
}

// removeOpenings removes who opened links. A link counts until the drop closes, so none is
// counted again once it is removed.
func (c *cleaning) removeOpenings(ctx context.Context, ids []int64) (int64, []int64, error) {
	n, err := c.inChunks(ctx, `delete from drop_openings where (template_id, user_id) in (select template_id, user_id from drop_openings where template_id = any($1) limit $2)`, ids, chunk)
	return n, ids, err
}

// packSQL moves the rows of a drop's slots into its row of figures, and returns how many rows it
// removed, and whether they were there: the rows of a drop are moved once. It returns no row if
// the drop is not over, or if something of it is still to be delivered or to be removed first.
const packSQL = `
with over as materialized (
    select t.id from templates t join drop_archives a on a.template_id = t.id
    where t.id = $1 and t.state in ('closed', 'cancelled')
        and not exists (select from removals m where m.step = 'reservations' and m.object_id = t.id)
        and not exists (select from slots s where s.template_id = t.id and s.state in ('waiting', 'firing', 'sending'))
        and not exists (select from batches b where b.template_id = t.id and (b.kind = 'reminder' or b.kind in ` + pg.Announced + `))
    for no key update of t
), kept as (
    update drop_archives a set packed_at = clock_timestamp(),
        slots = (select jsonb_agg(jsonb_strip_nulls(to_jsonb(s)) order by s.id) from slots s where s.template_id = a.template_id),
        results = (select jsonb_agg(jsonb_strip_nulls(to_jsonb(r)) order by r.slot_id, r.channel) from slots s join slot_results r on r.slot_id = s.id where s.template_id = a.template_id),
        forecasts = (select jsonb_agg(to_jsonb(f) order by f.slot_id, f.channel) from slots s join slot_forecasts f on f.slot_id = s.id where s.template_id = a.template_id),
        bookings = (select jsonb_agg(to_jsonb(b) order by b.slot, b.channel) from bookings b where b.template_id = a.template_id)
    from over o where a.template_id = o.id and a.packed_at is null returning a.template_id
), results as (
    delete from slot_results where slot_id in (select s.id from slots s join kept k on k.template_id = s.template_id) returning 1
), booked as (
    delete from bookings where template_id in (select template_id from kept) returning 1
), recounts as (
    delete from figure_recounts where template_id in (select template_id from kept) and figure = 'bookings' returning 1
)
select (select count(*) from results) + (select count(*) from booked) + (select count(*) from recounts), exists (select from kept) from over`

// packDrops archives drops that are over and settled: all their slots with their results become
// one row of figures.
func (c *cleaning) packDrops(ctx context.Context, ids []int64) (total int64, done []int64, err error) {
	for _, id := range ids {
		n, packed, err := c.pack(ctx, id)
		if err != nil {
			return total, done, err
		}
		if total += n; packed {
			done = append(done, id)
		}
	}
	return total, done, nil
}

func (c *cleaning) pack(ctx context.Context, id int64) (removed int64, packed bool, err error) {
	err = c.Tx(ctx, func(tx pgx.Tx) error {
		var moved bool
		err := tx.QueryRow(ctx, packSQL, id).Scan(&removed, &moved)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if packed = err == nil; err != nil || !moved {
			return err
		}
		// With the forecasts of the slots.
		tag, err := tx.Exec(ctx, `delete from slots where template_id = $1`, id)
		removed += tag.RowsAffected()
		return err
	})
	return removed, packed, pg.Translate(err)
}

// removeCampaignRows removes the messages and opened links of archived campaigns.
func (c *cleaning) removeCampaignRows(ctx context.Context, ids []int64) (total int64, done []int64, err error) {
	for _, sql := range []string{
		`delete from campaign_messages where (campaign_id, seq) in (select campaign_id, seq from campaign_messages where campaign_id = any($1) limit $2)`,
		`delete from campaign_openings where (campaign_id, user_id) in (select campaign_id, user_id from campaign_openings where campaign_id = any($1) limit $2)`,
	} {
		n, err := c.inChunks(ctx, sql, ids, chunk)
		if total += n; err != nil {
			return total, nil, err
		}
	}
	return total, ids, nil
}
