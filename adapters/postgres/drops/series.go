package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// Series stores series of drops and standing reservations; see [series.Store], [series.KeeperStore] and
// [series.StandingStore].
type Series struct{ *pg.DB }

// NewSeries returns the series of db.
func NewSeries(db *pg.DB) Series { return Series{db} }

const (
	seriesColumns = `r.id, r.shop_number, r.name, r.rule, r.starts_on::text, r.clock, r.skips::text[], r.skip_holidays, r.publishes, r.content, r.state, r.version, r.created_at,
		s.name, s.timezone, s.holidays::text[]`
	seriesSQL = `select ` + seriesColumns + ` from series r join shops s on s.number = r.shop_number `
)

// seriesPlaces are the destinations of [seriesColumns]; the settings of drops come into content.
func seriesPlaces(s *series.Series, content *[]byte) []any {
	return []any{&s.ID, &s.ShopNumber, &s.Name, &s.Rule, &s.Starts, &s.Clock, &s.Skips, &s.SkipsHolidays, &s.Publishes, content, &s.State, &s.Version, &s.CreatedAt,
		&s.ShopName, &s.ShopTimezone, &s.Holidays}
}

func scanSeries(row pgx.CollectableRow) (s series.Series, err error) {
	var content []byte
	if err := row.Scan(seriesPlaces(&s, &content)...); err != nil {
		return s, err
	}
	s.Drop, err = template.Fields.Unmarshal(content)
	return s, err
}

// Series returns one series, or [series.ErrNotFound].
func (s Series) Series(ctx context.Context, id int64) (series.Series, error) {
	return pg.One(ctx, s.Pool, scanSeries, series.ErrNotFound, seriesSQL+`where r.id = $1`, id)
}

// List returns the series of the shops, those that have not ended first, by name.
func (s Series) List(ctx context.Context, shops []int64) ([]series.Series, error) {
	if shops == nil {
		shops = []int64{}
	}
	return pg.Collect(ctx, s.Pool, scanSeries, seriesSQL+`where cardinality($1::bigint[]) = 0 or r.shop_number = any($1)
		order by r.state = 'ended', lower(r.name), r.id limit 500`, shops)
}

// args are the parameters of a series' settings.
func seriesArgs(s series.Series) (pgx.StrictNamedArgs, error) {
	content, err := template.Fields.Marshal(s.Drop)
	return pgx.StrictNamedArgs{"name": s.Name, "rule": s.Rule, "starts": s.Starts, "clock": int(s.Clock), "skips": days(s.Skips),
		"skip_holidays": s.SkipsHolidays, "publishes": s.Publishes, "content": content}, err
}

// days is list as an array of texts, which is never null.
func days(list []series.Day) []string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = string(d)
	}
	return texts
}

// lockSeries lets no other transaction change how many series the shop has.
const lockSeries = `select pg_advisory_xact_lock(hashtextextended('series', $1))`

// Insert stores a series; see [series.Store].
func (s Series) Insert(ctx context.Context, n series.Series, most int, requestKey string, e staff.Entry) (series.Series, error) {
	args, err := seriesArgs(n)
	if err != nil {
		return n, err
	}
	args["shop"], args["request_key"] = n.ShopNumber, requestKey
	var id int64
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockSeries, n.ShopNumber); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `select id from series where request_key = nullif($1, '')`, requestKey).Scan(&id)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		var others int
		if err := tx.QueryRow(ctx, `select count(*) from series where shop_number = $1 and state <> 'ended'`, n.ShopNumber).Scan(&others); err != nil {
			return err
		}
		if others >= most {
			return series.ErrTooMany
		}
		if err := tx.QueryRow(ctx, `insert into series (shop_number, name, rule, starts_on, clock, skips, skip_holidays, publishes, content, request_key)
			values (@shop, @name, @rule, @starts::text::date, @clock, @skips::text[]::date[], @skip_holidays, @publishes, @content, nullif(@request_key, '')) returning id`, args).Scan(&id); err != nil {
			return err
		}
		e.ObjectID = pg.Itoa(id)
		return pg.InsertAudit(ctx, tx, e)
	})
	if err != nil {
		return n, err
	}
	return s.Series(ctx, id)
}

// Save stores new settings or a new state; see [series.Store].
func (s Series) Save(ctx context.Context, n series.Series, e staff.Entry) (series.Series, error) {
	args, err := seriesArgs(n)
	if err != nil {
		return n, err
	}
	args["id"], args["version"], args["state"] = n.ID, n.Version, n.State
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, fault.ErrStale, `update series set name = @name, rule = @rule, starts_on = @starts::text::date, clock = @clock, skips = @skips::text[]::date[],
			skip_holidays = @skip_holidays, publishes = @publishes, content = @content, state = @state, version = version + 1, due_at = clock_timestamp(),
			ended_at = case when state <> 'ended' and @state = 'ended' then clock_timestamp() else ended_at end
			where id = @id and version = @version`, args); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	if err != nil {
		return n, err
	}
	return s.Series(ctx, n.ID)
}

// Occurrences returns the occurrences from the day on with their drops; see [series.Store].
func (s Series) Occurrences(ctx context.Context, id int64, from series.Day, limit int) ([]series.Listed, error) {
	rows := pg.Rows(ctx, s.Pool, `select `+occurrenceColumns+`, coalesce(t.name, ''), coalesce(t.opens_at, 'epoch'), coalesce(t.state, '')
		from series_drops d left join templates t on t.id = d.template_id
		where d.series_id = $1 and d.day >= $2::text::date and d.state <> 'removed' order by d.day limit $3`, id, from, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l series.Listed, err error) {
		l.Occurrence, err = scanOccurrence(row, &l.Name, &l.OpensAt, &l.Drop)
		return l, err
	})
	return list, pg.Translate(err)
}

// occurrenceColumns are the columns of a row d of series_drops.
const occurrenceColumns = `d.series_id, d.day::text, d.try, d.state, coalesce(d.template_id, 0), d.given, d.version, d.why, case when d.copied_at is null then -1 else d.reminded end`

// scanOccurrence reads [occurrenceColumns] and, after them, more.
func scanOccurrence(row pgx.CollectableRow, more ...any) (o series.Occurrence, err error) {
	var given, why []byte
	if err := row.Scan(append([]any{&o.SeriesID, &o.Day, &o.Try, &o.State, &o.TemplateID, &given, &o.Version, &why, &o.Reminded}, more...)...); err != nil {
		return o, err
	}
	if why != nil {
		if err := json.Unmarshal(why, &o.Why); err != nil {
			return o, err
		}
	}
	if given != nil {
		o.Given, err = template.Fields.Unmarshal(given)
	}
	return o, err
}

// SetHolidays replaces the holidays of a shop; see [series.Store].
func (s Series) SetHolidays(ctx context.Context, shop int64, list []series.Day, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `update shops set holidays = $2::text[]::date[] where number = $1`, shop, days(list)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update series set due_at = clock_timestamp() where shop_number = $1 and state = 'active'`, shop); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Holidays returns the holidays of a shop.
func (s Series) Holidays(ctx context.Context, shop int64) (list []series.Day, err error) {
	err = s.Pool.QueryRow(ctx, `select holidays::text[] from shops where number = $1`, shop).Scan(&list)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return list, pg.Translate(err)
}

// Standing counts the standing reservations of a series, up to [standingCounted].
func (s Series) Standing(ctx context.Context, id int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from (select from series_reservations where series_id = $1 limit $2) r`, id, standingCounted).Scan(&n)
	return n, pg.Translate(err)
}

// standingCounted bounds a count of rows for a page: a million rows take about 0.1 s.
const standingCounted = 1_000_000

// Refused returns the drops to come that series could not create, change or publish, the soonest first.
func (s Series) Refused(ctx context.Context, limit int) ([]RefusedDrop, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[RefusedDrop], `select r.id, r.shop_number, r.name, coalesce(d.template_id, 0), d.day::text
		from series_drops d join series r on r.id = d.series_id left join templates t on t.id = d.template_id
		where d.why is not null and d.state <> 'removed' and d.day >= (clock_timestamp() - interval '1 day')::date
			and case when d.template_id is null then true else t.state in ('draft', 'published', 'paused') and t.opens_at > clock_timestamp() end
			and not (coalesce(t.state, 'draft') <> 'draft' and d.why ->> 'Code' <> $2)
		order by d.day, r.id limit $1`, limit, series.ErrLeft.Code)
}

// A RefusedDrop is a drop of a series that needs staff.
type RefusedDrop struct {
	SeriesID, Shop int64
	Series         string
	TemplateID     int64 // 0 = it could not be created
	Day            string
}

// SeriesWait asks for series that are due, and for published drops whose standing reservations are not copied.
const SeriesWait pg.Question = `
(select from series where state = 'active' and due_at <= statement_timestamp() limit 1)
union all
(select from series_drops d join templates t on t.id = d.template_id
	where d.template_id is not null and d.copied_at is null and t.state in ('published', 'paused') and t.opens_at > statement_timestamp() limit 1)`

// SeriesLate returns for how long the series that is due the longest has been due.
func (s Series) SeriesLate(ctx context.Context) (late time.Duration, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(clock_timestamp() - min(due_at), '0') from series where state = 'active' and due_at <= clock_timestamp()`).Scan(&late)
	return late, pg.Translate(err)
}
