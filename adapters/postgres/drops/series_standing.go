package drops

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/user"
)

// Public returns a series without the settings of its drops; see [series.StandingStore].
func (s Series) Public(ctx context.Context, id int64) (series.Series, error) {
	var found series.Series
	err := s.Pool.QueryRow(ctx, `select r.id, r.name, r.shop_number, r.state from series r where r.id = $1`, id).Scan(&found.ID, &found.Name, &found.ShopNumber, &found.State)
	if errors.Is(err, pgx.ErrNoRows) {
		return found, series.ErrNotFound
	}
	return found, pg.Translate(err)
}

// copiesSQL brings user $2's reservations of the drops of series $1 that are published and have not opened to the
// reminders $5, as far as they can still be changed: those that were copied and not changed by the user since are
// changed, or removed, and where there are none they are added. A reservation that the user cancelled stays
// cancelled. Messages that a removed reservation led to stay in the inbox. $3 are the bits of slot 1 on every channel,
// $4 is the trace of the events. Slots are locked as by [reserveSQL].
var copiesSQL = `
with drops as materialized (
    select d.template_id from series_drops d join templates t on t.id = d.template_id
    where d.series_id = $1 and t.state in ('published', 'paused') and t.opens_at > clock_timestamp()
), locked as (
    select id, template_id, slot from slots
    where template_id in (select template_id from drops) and (state = 'waiting') is true and due_at > clock_timestamp() order by id for share
), still_open as (
    select template_id, bit_or($3::bigint << (slot - 1)) as mask from locked group by template_id
), found as (
    select r.template_id, r.slots, r.standing from reservations r where r.user_id = $2 and r.template_id in (select template_id from still_open)
    order by r.template_id for update
), changed as (
    select f.template_id, f.slots as before, f.slots & ~o.mask | $5::bigint & o.mask as after
    from found f join still_open o using (template_id) where f.standing and f.slots & o.mask <> $5::bigint & o.mask
), gone as (
    delete from reservations r using changed c where r.template_id = c.template_id and r.user_id = $2 and c.after = 0 returning r.template_id
), left_behind as (
    insert into former_reservations (user_id, template_id)
    select $2, g.template_id from gone g where exists (select from slots s where s.template_id = g.template_id and s.fired_at is not null)
    on conflict (user_id, template_id) do update set at = excluded.at
), kept as (
    update reservations r set slots = c.after, updated_at = now(),
        consents = nullif(r.consents & ~` + slotsOfSQL("c.before & ~c.after", delivery.WebPush) + `::int, 0)::smallint
    from changed c where r.template_id = c.template_id and r.user_id = $2 and c.after <> 0
), added as (
    insert into reservations as r (template_id, user_id, slots, standing)
    select o.template_id, $2, $5::bigint & o.mask, true from still_open o
    where $5::bigint & o.mask <> 0 and not exists (select from found f where f.template_id = o.template_id)
        and not exists (select from former_reservations f where f.user_id = $2 and f.template_id = o.template_id)
    order by o.template_id
    on conflict (template_id, user_id) do nothing
    returning r.template_id, r.slots
), stored as (
    select template_id, $2::bigint as user_id, slots from added
    union all
    select template_id, $2, after & ~before from changed where after & ~before <> 0
), removed as (
    select template_id, $2::bigint as user_id, before & ~after as slots from changed where before & ~after <> 0
), announced as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsChanged + `', jsonb_strip_nulls(jsonb_build_object('at', now(),
        'added', (select jsonb_agg(jsonb_build_object('template_id', template_id::text, 'bits', slots::text, 'users', 1)) from stored),
        'removed', (select jsonb_agg(jsonb_build_object('template_id', template_id::text, 'bits', slots::text, 'users', 1)) from removed))), $4
    where exists (select from stored) or exists (select from removed)
)` + listStored + `, unlisted as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsListed + `', jsonb_build_object('template_id', template_id::text, 'cancelled', true, 'items', jsonb_build_array(jsonb_build_object(
            'user_id', user_id::text, 'bits', slots::text, 'sequence', nextval('hook_sequence')::text, 'at', clock_timestamp()))), $4
    from removed
    where exists (select from hook_wants w where w.shop_number = (select r.shop_number from series r where r.id = $1)
        and (cardinality(w.types) = 0 or '` + string(hook.ReservationCancelled) + `' = any(w.types)))
)
select (select count(*) from stored) + (select count(*) from removed)`

// changeStanding runs change, and then brings the user's copies to the reminders, in one transaction. It waits for
// chunks of a copy to a drop of the series, and chunks wait for it; see lockStanding.
func (s Series) changeStanding(ctx context.Context, seriesID int64, by user.ID, slots int64, change func(pgx.Tx) error) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockStanding("_shared", seriesID, 0, copyLanes-1)); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		var n int64
		return tx.QueryRow(ctx, copiesSQL, seriesID, by, reminder.EveryChannel, pg.TraceOf(ctx), slots).Scan(&n)
	})
}

// Stand stores a standing reservation; see [series.StandingStore]. It returns [series.ErrOver] if the series has
// ended meanwhile.
func (s Series) Stand(ctx context.Context, seriesID int64, by user.ID, slots reminder.Bitmap) (created bool, err error) {
	err = s.changeStanding(ctx, seriesID, by, slots.Int64(), func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `insert into series_reservations as r (series_id, user_id, slots)
			select id, $2, $3 from series where id = $1 and state <> 'ended'
			on conflict (series_id, user_id) do update set slots = excluded.slots, updated_at = now() returning xmax = 0`, seriesID, by, slots.Int64()).Scan(&created)
		if errors.Is(err, pgx.ErrNoRows) {
			return series.ErrOver
		}
		return err
	})
	return created, err
}

// End ends a standing reservation; see [series.StandingStore].
func (s Series) End(ctx context.Context, seriesID int64, by user.ID) (ended bool, err error) {
	err = s.changeStanding(ctx, seriesID, by, 0, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `delete from series_reservations where series_id = $1 and user_id = $2`, seriesID, by)
		ended = tag.RowsAffected() > 0
		return err
	})
	return ended, err
}

// StandingOf lists a user's standing reservations; see [series.StandingStore].
func (s Series) StandingOf(ctx context.Context, by user.ID, seriesID int64) ([]series.Standing, error) {
	rows := pg.Rows(ctx, s.Pool, `select r.series_id, s.name, s.shop_number, r.user_id, r.slots, r.created_at
		from series_reservations r join series s on s.id = r.series_id
		where r.user_id = $1 and ($2::bigint = 0 or r.series_id = $2) order by lower(s.name), s.id`, by, seriesID)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v series.Standing, err error) {
		var slots int64
		err = row.Scan(&v.SeriesID, &v.SeriesName, &v.ShopNumber, &v.UserID, &slots, &v.CreatedAt)
		v.Slots = reminder.StoredBitmap(slots)
		return v, err
	})
	return list, pg.Translate(err)
}
