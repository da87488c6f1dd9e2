package delivery

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery/feedback"
)

// Early stores reports whose serials are not known yet; see [feedback.Serials].
func (s Serials) Early(ctx context.Context, provider string, list []feedback.Early) error {
	serials, statuses, causes, instants := make([]string, len(list)), make([]string, len(list)), make([]string, len(list)), make([]*time.Time, len(list))
	for i, e := range list {
		serials[i], statuses[i], causes[i] = e.Serial, string(e.Report.Status), e.Report.Cause
		if !e.Report.At.IsZero() {
			instants[i] = &list[i].Report.At
		}
	}
	_, err := s.Pool.Exec(ctx, `insert into sms_early (provider, serial, status, cause, at)
		select $1, e.serial, e.status, e.cause, e.at from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[]) as e (serial, status, cause, at)
		order by e.serial, e.status on conflict do nothing`, provider, serials, statuses, causes, instants)
	return pg.Translate(err)
}

// EarlyReceiptsWait asks whether a report of the last minutes waits for its
// serial, see [feedback.Matcher].
const EarlyReceiptsWait pg.Question = `select from sms_early where kept_at > statement_timestamp() - interval '10 minutes' order by kept_at desc limit 1`

// Match returns early reports whose serials are known; see [feedback.EarlyStore].
func (s Serials) Match(ctx context.Context, within time.Duration, limit int) ([]feedback.Matched, error) {
	rows := pg.Rows(ctx, s.Pool, `select e.provider, e.serial, e.status, e.cause, e.at, k.reference
		from sms_early e join sms_serials k on k.provider = e.provider and k.serial = e.serial
		where e.kept_at > clock_timestamp() - $1::interval order by e.kept_at limit $2`, within, limit)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m feedback.Matched, err error) {
		var at *time.Time
		err = row.Scan(&m.Report.Provider, &m.Serial, &m.Report.Status, &m.Report.Cause, &at, &m.Reference)
		if at != nil {
			m.Report.At = *at
		}
		return m, err
	})
	return list, pg.Translate(err)
}

// Forget removes reports that were stored; see [feedback.EarlyStore].
func (s Serials) Forget(ctx context.Context, list []feedback.Matched) error {
	providers, serials, statuses := make([]string, len(list)), make([]string, len(list)), make([]string, len(list))
	for i, m := range list {
		providers[i], serials[i], statuses[i] = m.Report.Provider, m.Serial, string(m.Report.Status)
	}
	_, err := s.Pool.Exec(ctx, `delete from sms_early e using unnest($1::text[], $2::text[], $3::text[]) as d (provider, serial, status)
		where e.provider = d.provider and e.serial = d.serial and e.status = d.status`, providers, serials, statuses)
	return pg.Translate(err)
}
