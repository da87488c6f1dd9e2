package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/flight"
	"dropbell/domain/template"
)

// Flights stores the results of flight checks; see [flight.Store].
type Flights struct{ *pg.DB }

// NewFlights returns the store of db.
func NewFlights(db *pg.DB) Flights { return Flights{db} }

// takeFlightSQL takes the drop that opens first of those that are to be checked, and returns its id. A
// drop with red findings is checked again every ten minutes, so that its alert ends once they are corrected.
const takeFlightSQL = `
insert into flight_checks as f (template_id, taken_until)
select t.id, clock_timestamp() + @lease from templates t left join flight_checks k on k.template_id = t.id,
	lateral (select t.opens_at - coalesce((select max(d.lead_minutes) from doors d where d.template_id = t.id), 0) * interval '1 minute' as opens_at) first
where t.state in ('draft', 'published', 'paused') and t.opens_at > statement_timestamp() and first.opens_at > statement_timestamp()
	and (k.template_id is null or k.taken_until < statement_timestamp() and (k.version <> t.version
		or k.checked_at < first.opens_at - interval '24 hours' and first.opens_at - interval '24 hours' <= statement_timestamp()
		or k.checked_at < first.opens_at - interval '1 hour' and first.opens_at - interval '1 hour' <= statement_timestamp()
		or k.red > 0 and k.checked_at < statement_timestamp() - interval '10 minutes'))
order by t.opens_at, t.id limit 1
on conflict (template_id) do update set taken_until = excluded.taken_until where f.taken_until < statement_timestamp()
returning template_id`

// Take takes a drop that is to be checked; see [flight.Store].
func (s Flights) Take(ctx context.Context, lease time.Duration) (id int64, err error) {
	err = s.Pool.QueryRow(ctx, takeFlightSQL, pgx.StrictNamedArgs{"lease": lease}).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return id, pg.Translate(err)
}

// Keep stores a check and ends its lease; see [flight.Store].
func (s Flights) Keep(ctx context.Context, c flight.Check) error {
	findings, err := json.Marshal(c.Findings)
	if err != nil {
		return err
	}
	_, err = s.Pool.Exec(ctx, `update flight_checks set version = @version, checked_at = statement_timestamp(), red = @red, amber = @amber, findings = @findings, taken_until = 'epoch'
		where template_id = @id and version <= @version`, pgx.StrictNamedArgs{"id": c.TemplateID, "version": c.Version, "red": c.Count(flight.Red), "amber": c.Count(flight.Amber), "findings": findings})
	return pg.Translate(err)
}

// Kept returns the last stored check; see [flight.Store].
func (s Flights) Kept(ctx context.Context, templateID int64) (c flight.Check, ok bool, err error) {
	var findings []byte
	err = s.Pool.QueryRow(ctx, `select template_id, version, checked_at, findings from flight_checks where template_id = $1 and version > 0`, templateID).
		Scan(&c.TemplateID, &c.Version, &c.At, &findings)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, false, nil
	}
	if err == nil {
		err = json.Unmarshal(findings, &c.Findings)
	}
	return c, err == nil, pg.Translate(err)
}

// Around returns the drops that open near another one; see [flight.Store].
func (s Flights) Around(ctx context.Context, t template.Template, distance time.Duration) (drops, reserved int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*), coalesce(sum((select max(booked) from (select sum(booked)::bigint as booked from bookings b where b.template_id = t.id group by slot) slots)), 0)::bigint
		from templates t where t.state = 'published' and t.id <> @id and t.opens_at between @at::timestamptz - @distance::interval and @at::timestamptz + @distance::interval`,
		pgx.StrictNamedArgs{"id": t.ID, "at": t.OpensAt, "distance": distance}).Scan(&drops, &reserved)
	return drops, reserved, pg.Translate(err)
}
