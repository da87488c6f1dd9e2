package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/rehearsal"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// Rehearsals stores rehearsals; see [rehearsal.Store] and [rehearsal.RunStore].
type Rehearsals struct{ *pg.DB }

// NewRehearsals returns the store of db.
func NewRehearsals(db *pg.DB) Rehearsals { return Rehearsals{db} }

const rehearsalColumns = `id, template_id, shop_number, state, share_permille, asked_by, asked_at, opens_at, ended_at, progress, report, detail, removed_at is not null`

func scanRehearsal(row pgx.CollectableRow) (r rehearsal.Rehearsal, err error) {
	var progress, report []byte
	if err := row.Scan(&r.ID, &r.TemplateID, &r.Shop, &r.State, &r.SharePermille, &r.By, &r.AskedAt, &r.OpensAt, &r.EndedAt, &progress, &report, &r.Detail, &r.Removed); err != nil {
		return r, err
	}
	if err := json.Unmarshal(progress, &r.Progress); err != nil {
		return r, err
	}
	if report != nil {
		r.Report = &rehearsal.Report{}
		err = json.Unmarshal(report, r.Report)
	}
	return r, err
}

// Ask stores a rehearsal; see [rehearsal.Store].
func (s Rehearsals) Ask(ctx context.Context, r rehearsal.Rehearsal, e staff.Entry) (rehearsal.Rehearsal, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `insert into rehearsals (id, template_id, shop_number, asked_by) values (nextval(pg_get_serial_sequence('templates', 'id')), $1, $2, $3) returning `+rehearsalColumns,
			r.TemplateID, r.Shop, r.By)
		if err == nil {
			r, err = pgx.CollectExactlyOneRow(rows, scanRehearsal)
		}
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.ConstraintName == "rehearsals_running" {
			return rehearsal.ErrBusy
		}
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
	return r, err
}

func (s Rehearsals) list(ctx context.Context, condition string, args ...any) ([]rehearsal.Rehearsal, error) {
	return pg.Collect(ctx, s.Pool, scanRehearsal, `select `+rehearsalColumns+` from rehearsals where `+condition, args...)
}

// Of returns the rehearsals of a drop; see [rehearsal.Store].
func (s Rehearsals) Of(ctx context.Context, templateID int64, limit int) ([]rehearsal.Rehearsal, error) {
	return s.list(ctx, `template_id = $1 order by id desc limit $2`, templateID, limit)
}

// Open returns the last rehearsal of one of the shops (none = of any shop) whose world is there and has opened its
// doors to test keys; false if there is none. The world of a rehearsal that came with its shop from another database is not there.
func (s Rehearsals) Open(ctx context.Context, shops []int64) (rehearsal.Rehearsal, bool, error) {
	list, err := s.list(ctx, `removed_at is null and opens_at is not null and state in ('running', 'done') and to_regnamespace('rehearsal_' || id) is not null and (cardinality($1::bigint[]) = 0 or shop_number = any($1)) order by id desc limit 1`, append([]int64{}, shops...))
	if err != nil || len(list) == 0 {
		return rehearsal.Rehearsal{}, false, err
	}
	return list[0], true, nil
}

// Reserved counts the users who have reserved reminders of a drop.
func (s Rehearsals) Reserved(ctx context.Context, templateID int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) from reservations where template_id = $1`, templateID).Scan(&n)
	return n, pg.Translate(err)
}

// Near reports whether a drop opens soon or has just opened; see [rehearsal.Store].
func (s Rehearsals) Near(ctx context.Context, since, until time.Duration) (near bool, err error) {
	err = s.Pool.QueryRow(ctx, `select exists (select from templates t where t.state = 'published' and t.opens_at > statement_timestamp() - @since::interval
			and t.opens_at - coalesce((select max(lead_minutes) from doors d where d.template_id = t.id), 0) * interval '1 minute' < statement_timestamp() + @until::interval)`,
		pgx.StrictNamedArgs{"since": since, "until": until}).Scan(&near)
	return near, pg.Translate(err)
}

// Evening returns what the evening of a drop showed; see [rehearsal.Store].
func (s Rehearsals) Evening(ctx context.Context, templateID int64) (e rehearsal.Evening, err error) {
	if e.Wave, err = s.wave(ctx, templateID, ` and s.opens_at <= t.opens_at and t.opens_at <= statement_timestamp()`); err == nil {
		e.SoldOut, err = s.SoldOut(ctx, templateID)
	}
	return e, err
}

// SoldOut returns how long after the opening of a drop as many coupons were given as its stock has, in milliseconds; 0 = they were not.
func (s Rehearsals) SoldOut(ctx context.Context, templateID int64) (ms int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(extract(epoch from given.at + interval '1 second' - t.opens_at) * 1000), 0)::bigint
		from templates t cross join lateral (select min(second) as at from (select second, sum(issued) over (order by second) as issued from claim_seconds where template_id = t.id) c where issued >= t.stock) given
		where t.id = $1 and given.at >= t.opens_at`, templateID).Scan(&ms)
	return ms, pg.Translate(err)
}

// wave returns how long the longest wave of a drop took, in milliseconds; 0 unless the slot s and the drop t meet the condition.
func (s Rehearsals) wave(ctx context.Context, templateID int64, condition string) (ms int64, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(max(extract(epoch from r.done_at - greatest(s.due_at, s.planned_at))) * 1000, 0)::bigint
		from slots s join templates t on t.id = s.template_id join slot_results r on r.slot_id = s.id
		where s.template_id = $1 and s.state = 'finished' and r.sent > 0`+condition, templateID).Scan(&ms)
	return ms, pg.Translate(err)
}

// Take leases a rehearsal; see [rehearsal.RunStore].
func (s Rehearsals) Take(ctx context.Context, token string, lease time.Duration) (r rehearsal.Rehearsal, ok bool, err error) {
	if _, err := s.Pool.Exec(ctx, `update rehearsals set state = 'failed', ended_at = clock_timestamp(), detail = $1
		where state = 'running' and lease_until < clock_timestamp()`, rehearsal.Interrupted); err != nil {
		return r, false, pg.Translate(err)
	}
	list, err := s.list(ctx, `state = 'asked' order by id limit 1`)
	if err != nil || len(list) == 0 {
		return r, false, err
	}
	err = killpoint.Around("rehearsal.take", func() error {
		rows := pg.Rows(ctx, s.Pool, `update rehearsals set state = 'running', token = $1, lease_until = clock_timestamp() + $2
			where id = $3 and state = 'asked' returning `+rehearsalColumns, token, lease, list[0].ID)
		r, err = pgx.CollectExactlyOneRow(rows, scanRehearsal)
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	return r, err == nil, pg.Translate(err)
}

// change updates a running rehearsal at a point, or returns [rehearsal.ErrLost].
func (s Rehearsals) change(ctx context.Context, point string, id int64, token, set string, args ...any) error {
	return killpoint.Around(point, func() error {
		return pg.Translate(pg.Change(ctx, s.Pool, rehearsal.ErrLost, `update rehearsals set `+set+` where id = $1 and token = $2 and state = 'running'`, append([]any{id, token}, args...)...))
	})
}

// Note stores the progress; see [rehearsal.RunStore].
func (s Rehearsals) Note(ctx context.Context, id int64, token string, p rehearsal.Progress, lease time.Duration) error {
	return s.change(ctx, "rehearsal.note", id, token, `progress = $3, lease_until = clock_timestamp() + $4`, p, lease)
}

// Began stores the share and the opening; see [rehearsal.RunStore].
func (s Rehearsals) Began(ctx context.Context, id int64, token string, sharePermille int64, opensAt time.Time) error {
	return s.change(ctx, "rehearsal.began", id, token, `share_permille = $3, opens_at = $4`, sharePermille, opensAt)
}

// End ends a rehearsal; see [rehearsal.RunStore].
func (s Rehearsals) End(ctx context.Context, id int64, token string, report *rehearsal.Report, detail string) error {
	state := rehearsal.Done
	if report == nil {
		state = rehearsal.Failed
	}
	err := s.change(ctx, "rehearsal.end", id, token, `state = $3, ended_at = clock_timestamp(), report = $4, detail = $5`, state, report, detail)
	if errors.Is(err, rehearsal.ErrLost) {
		return nil
	}
	return err
}

// Remains returns a rehearsal whose world is to be removed; see [rehearsal.RunStore].
func (s Rehearsals) Remains(ctx context.Context, kept time.Duration) (id int64, err error) {
	err = s.Pool.QueryRow(ctx, `
		-- a rehearsal that has ended, or the schema of one whose row is gone, as after a move of its shop
		(select id from rehearsals where removed_at is null and (state = 'failed' or state = 'done' and ended_at < clock_timestamp() - $1::interval) order by ended_at limit 1)
		union all
		(select n.id from (select substring(nspname from '^rehearsal_([0-9]{1,18})$')::bigint as id from pg_namespace where nspname ~ '^rehearsal_[0-9]{1,18}$') n
			where not exists (select from rehearsals r where r.id = n.id and r.removed_at is null) limit 1)
		limit 1`, kept).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return id, pg.Translate(err)
}

// Removed records that a world is gone; see [rehearsal.RunStore].
func (s Rehearsals) Removed(ctx context.Context, id int64) error {
	return s.at(ctx, "rehearsal.removed", `update rehearsals set removed_at = clock_timestamp() where id = $1 and removed_at is null`, id)
}

// A Measure is how the provider of a channel was measured lately.
type Measure struct {
	// Latency is that of a call, in milliseconds. Failed and Refused are shares of messages, 0…1.
	Latency, Failed, Refused float64
}

// Measures returns how the providers of the channels were measured, by channel.
func (s Rehearsals) Measures(ctx context.Context) (map[int16]Measure, error) {
	rows := pg.Rows(ctx, s.Pool, `
		-- channel, latency of a call in ms, share of failed messages, share of refused messages
		select c, coalesce(p.latency, 0)::float8, coalesce(p.failed, 0)::float8, coalesce(r.refused, 0)::float8
		from `+channelsSQL+` c
		left join (select channel, sum(total_ms)::float8 / nullif(sum(calls), 0) as latency, sum(failed)::float8 / nullif(sum(messages), 0) as failed from provider_calls group by 1) p on p.channel = c
		left join (select channel, sum(dead)::float8 / nullif(sum(sent + dead), 0) as refused from slot_results
			where slot_id = any(array(select id from slots where state = 'finished' order by finished_at desc limit 120)) group by 1) r on r.channel = c`)
	list := map[int16]Measure{}
	var c int16
	var m Measure
	_, err := pgx.ForEachRow(rows, []any{&c, &m.Latency, &m.Failed, &m.Refused}, func() error {
		list[c] = m
		return nil
	})
	return list, pg.Translate(err)
}

// Curve returns how many coupons the last drop of the shop issued in each of its first seconds; nil = there was none.
func (s Rehearsals) Curve(ctx context.Context, shop int64, seconds int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `
		with last as (select id, date_trunc('second', opens_at) as at from templates where shop_number = $1 and state in ('published', 'closed') and opens_at < statement_timestamp() and issued > 0 order by opens_at desc limit 1)
		select coalesce(c.issued, 0) from last cross join generate_series(0, $2 - 1) n left join claim_seconds c on c.template_id = last.id and c.second = last.at + n * interval '1 second' order by n`, shop, seconds)
}

// guestSQL is true for the hundredth of the users who are guests of the dress rehearsal of template $1.
const guestSQL = `(hashtextextended(id::text, $1) & 1048575) * 100 < 1048576`

// Guests returns the next guests of a dress rehearsal; see [rehearsal.Guests].
func (s Rehearsals) Guests(ctx context.Context, templateID int64, after user.ID, limit int) ([]user.ID, error) {
	return s.users(ctx, `select id from users where id > $2 and `+guestSQL+` order by id limit $3`, templateID, after, limit)
}

// Stranger returns a user who is no guest; see [rehearsal.Guests].
func (s Rehearsals) Stranger(ctx context.Context, templateID int64) (id user.ID, err error) {
	err = s.Pool.QueryRow(ctx, `select id from users where not (`+guestSQL+`) order by id limit 1`, templateID).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return id, pg.Translate(err)
}
