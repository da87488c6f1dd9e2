package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/template"
)

// Claim claims a series that is due; see [series.KeeperStore].
func (s Series) Claim(ctx context.Context, lease time.Duration) (c series.Claim, found bool, err error) {
	var content []byte
	err = s.Pool.QueryRow(ctx, `with r as (
			update series set due_at = clock_timestamp() + $1::interval
			where id = (select id from series where state = 'active' and due_at <= clock_timestamp() order by due_at limit 1 for update skip locked) returning *
		)
		select r.due_at, clock_timestamp(), `+seriesColumns+` from r join shops s on s.number = r.shop_number`, lease).
		Scan(append([]any{&c.Until, &c.Now}, seriesPlaces(&c.Series, &content)...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err != nil {
		return c, false, pg.Translate(err)
	}
	c.Drop, err = template.Fields.Unmarshal(content)
	return c, err == nil, err
}

// Settle ends a claim; see [series.KeeperStore].
func (s Series) Settle(ctx context.Context, c series.Claim, next time.Time) error {
	var due *time.Time
	if !next.IsZero() {
		due = &next
	}
	_, err := s.Pool.Exec(ctx, `update series set due_at = $4 where id = $1 and version = $2 and due_at = $3`, c.ID, c.Version, c.Until, due)
	return pg.Translate(err)
}

// ToCome returns the occurrences from the day on; see [series.KeeperStore].
func (s Series) ToCome(ctx context.Context, id int64, from series.Day) ([]series.Occurrence, error) {
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (series.Occurrence, error) { return scanOccurrence(row) }, `select `+occurrenceColumns+` from series_drops d where d.series_id = $1 and d.day >= $2::text::date order by d.day`, id, from)
}

// Plan stores a day as planned; see [series.KeeperStore].
func (s Series) Plan(ctx context.Context, id int64, d series.Day) (o series.Occurrence, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into series_drops as d (series_id, day) values ($1, $2::text::date)
			on conflict (series_id, day) do update set try = d.try + 1, state = 'planned', template_id = null, given = null, version = 0, why = null, copied_at = null, reminded = 0
			where d.state = 'removed'`, id, d); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, `select `+occurrenceColumns+` from series_drops d where d.series_id = $1 and d.day = $2::text::date`, id, d)
		if err != nil {
			return err
		}
		o, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (series.Occurrence, error) { return scanOccurrence(row) })
		return err
	})
	return o, pg.Translate(err)
}

// Note stores what became of an occurrence; see [series.KeeperStore]. A worker whose claim has ended may be
// late: of two that note the same version one is as good as the other, and a version does not go back.
func (s Series) Note(ctx context.Context, o series.Occurrence) error {
	given, err := template.Fields.Marshal(o.Given)
	if err != nil {
		return err
	}
	var why []byte
	if o.Why != nil {
		if why, err = json.Marshal(o.Why); err != nil {
			return err
		}
	}
	_, err = s.Pool.Exec(ctx, `update series_drops set state = @state, template_id = nullif(@template::bigint, 0), given = @given, version = @version, why = @why
		where series_id = @series and day = @day::text::date and try = @try and version <= @version and (template_id is null or template_id = @template)`,
		pgx.StrictNamedArgs{"series": o.SeriesID, "day": o.Day, "try": o.Try, "state": o.State, "template": o.TemplateID, "given": given, "version": o.Version, "why": why})
	return pg.Translate(err)
}

// Uncopied returns the drops to which standing reservations are to be copied; see [series.KeeperStore].
func (s Series) Uncopied(ctx context.Context, limit int) ([]series.Copy, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[series.Copy], `select d.series_id, d.template_id from series_drops d join templates t on t.id = d.template_id
		where d.template_id is not null and d.copied_at is null and t.state in ('published', 'paused') and t.opens_at > clock_timestamp() order by t.opens_at limit $1`, limit)
}

// lockStanding is held shared by transactions that change a standing reservation of series $1, and exclusively by a copy.
// A change that began before the copy may not have seen that the drop is published, and one that commits while the copy
// runs would be lost to it. Changes wait for the copy, which takes seconds for a million users; see docs/series.md.
const lockStanding = `hashtextextended('dropbell:series_reservations', $1)`

// copySQL copies the standing reservations of series $1 to its drop $2, and returns how many users have new
// reminders; null = the drop has them already. Slots are locked as by [reserveSQL]: a reminder that is due, or of
// a slot that fires, is not copied. Users who have cancelled their reservation of the drop stay without one. $3 are
// the bits of slot 1 on every channel, $4 is the trace of the events.
var copySQL = `
with mine as materialized (
    select series_id, template_id from series_drops where series_id = $1 and template_id = $2 and copied_at is null for update skip locked
), locked as (
    select template_id, slot from slots
    where template_id = (select template_id from mine) and (state = 'waiting') is true and due_at > clock_timestamp() order by id for share
), still_open as (
    select template_id, bit_or($3::bigint << (slot - 1)) as mask from locked group by template_id
), stored as (
    insert into reservations as r (template_id, user_id, slots, standing)
    select o.template_id, s.user_id, s.slots & o.mask, true
    from still_open o join series_reservations s on s.series_id = $1 and s.slots & o.mask <> 0
    where not exists (select from former_reservations f where f.user_id = s.user_id and f.template_id = o.template_id)
    order by s.user_id
    on conflict (template_id, user_id) do nothing
    returning r.template_id, r.user_id, r.slots
), announced as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsChanged + `', jsonb_build_object('at', now(), 'added', jsonb_agg(jsonb_build_object(
        'template_id', template_id::text, 'bits', slots::text, 'users', users))), $4
    from (select template_id, slots, count(*) as users from stored group by 1, 2) g having count(*) > 0
)` + listStored + `
update series_drops d set copied_at = clock_timestamp(), reminded = (select count(*) from stored)
from mine m where d.series_id = m.series_id and d.template_id = m.template_id returning d.reminded`

// listStored writes the events that name the users of stored, for servers of shops that want them; see
// [reserveSQL]. $4 is the trace.
const listStored = `, listed as (
    insert into outbox (topic, payload, trace)
    select '` + event.ReservationsListed + `', jsonb_build_object('template_id', template_id::text, 'items', jsonb_agg(jsonb_build_object(
            'user_id', user_id::text, 'bits', slots::text, 'sequence', sequence::text, 'at', clock_timestamp()))), $4
    from (select template_id, user_id, slots, nextval('hook_sequence') as sequence, row_number() over () / 500 as part from stored s
        where (select true from hook_wants w where w.shop_number = (select r.shop_number from series r where r.id = $1)
            and (cardinality(w.types) = 0 or '` + string(hook.ReservationMade) + `' = any(w.types)) limit 1)) l
    group by template_id, part
)`

// Copy copies standing reservations to a drop; see [series.KeeperStore].
func (s Series) Copy(ctx context.Context, c series.Copy) (n int64, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		// The wait for the lock is short: changes that come later queue behind it. What the copy itself waits for is not limited.
		if _, err := tx.Exec(ctx, `set local lock_timeout = '200ms'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+lockStanding+`)`, c.SeriesID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `set local lock_timeout to default`); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, copySQL, c.SeriesID, c.TemplateID, reminder.EveryChannel, pg.TraceOf(ctx)).Scan(&n)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		return err
	})
	return n, err
}
