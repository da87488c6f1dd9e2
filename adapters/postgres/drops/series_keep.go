package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/series"
	"dropbell/domain/template"
	"dropbell/killpoint"
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
	return pg.Translate(killpoint.Around("series.settle", func() error {
		_, err := s.Pool.Exec(ctx, `update series set due_at = $4 where id = $1 and version = $2 and due_at = $3`, c.ID, c.Version, c.Until, due)
		return err
	}))
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
	return pg.Translate(killpoint.Around("series.note", func() error {
		_, err := s.Pool.Exec(ctx, `update series_drops set state = @state, template_id = nullif(@template::bigint, 0), given = @given, version = @version, why = @why
			where series_id = @series and day = @day::text::date and try = @try and version <= @version and (template_id is null or template_id = @template)`,
			pgx.StrictNamedArgs{"series": o.SeriesID, "day": o.Day, "try": o.Try, "state": o.State, "template": o.TemplateID, "given": given, "version": o.Version, "why": why})
		return err
	}))
}

// Uncopied returns the drops to which standing reservations are to be copied; see [series.KeeperStore].
func (s Series) Uncopied(ctx context.Context, limit int) ([]series.Copy, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[series.Copy], `select d.series_id, d.template_id from series_drops d join templates t on t.id = d.template_id
		where d.template_id is not null and d.copied_at is null and t.state in ('published', 'paused') and t.opens_at > clock_timestamp() order by t.opens_at limit $1`, limit)
}
