package delivery

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/staff"
)

// Suppressions stores the mail addresses to which no mail is sent.
type Suppressions struct{ *pg.DB }

// NewSuppressions returns the list of db.
func NewSuppressions(db *pg.DB) Suppressions { return Suppressions{db} }

// suppressSQL suppresses reported addresses; its arrays have one element for each report. An
// address that staff released stays released, unless the reported event happened after the
// release.
const suppressSQL = `
insert into suppressions as s (address, reason, provider, cause)
select distinct on (lower(g.address)) lower(g.address), g.reason, g.provider, g.cause
from unnest(@addresses::text[], @reasons::text[], @providers::text[], @causes::text[], @instants::timestamptz[])
    with ordinality as g (address, reason, provider, cause, happened_at, place)
left join suppressions k on k.address = lower(g.address)
where k.address is null or k.released_at < coalesce(nullif(g.happened_at, '0001-01-01'), '-infinity')
order by lower(g.address), g.place
on conflict (address) do update set reason = excluded.reason, provider = excluded.provider, cause = excluded.cause,
    since = clock_timestamp(), released_at = null
where s.released_at is not null`

// refuseSQL counts one more refused mail for each of the addresses, and suppresses addresses
// with @most refused mails. The count starts again when an address is released.
const refuseSQL = `
with counted as (
    insert into soft_bounces as b (address, count)
    select lower(address), count(*) from unnest(@addresses::text[]) as g (address) group by 1 order by 1
    on conflict (address) do update set count = b.count + excluded.count, last_at = clock_timestamp()
    returning address, count
)
insert into suppressions as s (address, reason, provider, cause)
select distinct on (c.address) c.address, 'soft_bounced', g.provider, g.cause from counted c
join unnest(@addresses::text[], @providers::text[], @causes::text[]) as g (address, provider, cause) on lower(g.address) = c.address
where c.count >= @most order by c.address
on conflict (address) do update set reason = excluded.reason, provider = excluded.provider, cause = excluded.cause,
    since = clock_timestamp(), released_at = null
where s.released_at is not null`

// addressed collects the reports of a group about mail addresses.
type addressed struct {
	suppressed, refused []feedback.Report
	reached             []string
}

// note adds a report that changed the status of a message, or that names no message.
func (a *addressed) note(r feedback.Report) {
	if !strings.Contains(r.Address, "@") || strings.ContainsRune(r.Address, 0) || len(r.Address) > 254 {
		return // of a text message, or none
	}
	r.Address, r.Cause = strings.ToValidUTF8(strings.TrimSpace(r.Address), "?"), delivery.DetailOf(r.Cause)
	switch r.Status {
	case feedback.Bounced, feedback.Complained:
		a.suppressed = append(a.suppressed, r)
	case feedback.SoftBounced:
		a.refused = append(a.refused, r)
	case feedback.Delivered:
		a.reached = append(a.reached, r.Address)
	}
}

// queue adds the statements. If a mail of the group was delivered to an address, the delivery
// counts as the address's last event, since the order within a group is unknown.
func (a *addressed) queue(all *pgx.Batch) {
	if len(a.suppressed) > 0 {
		addresses, providers, causes := columnsOf(a.suppressed)
		reasons, instants := make([]string, len(a.suppressed)), make([]time.Time, len(a.suppressed))
		for i, r := range a.suppressed {
			reasons[i], instants[i] = string(r.Status), r.At
		}
		all.Queue(suppressSQL, pgx.StrictNamedArgs{"addresses": addresses, "reasons": reasons, "providers": providers, "causes": causes, "instants": instants})
	}
	if len(a.refused) > 0 {
		addresses, providers, causes := columnsOf(a.refused)
		all.Queue(refuseSQL, pgx.StrictNamedArgs{"addresses": addresses, "providers": providers, "causes": causes, "most": feedback.SoftBounces})
	}
	if len(a.reached) > 0 {
		all.Queue(`delete from soft_bounces where address in (select lower(a) from unnest($1::text[]) as g (a))`, a.reached)
	}
}

func columnsOf(list []feedback.Report) (addresses, providers, causes []string) {
	for _, r := range list {
		addresses, providers, causes = append(addresses, r.Address), append(providers, r.Provider), append(causes, r.Cause)
	}
	return addresses, providers, causes
}

const suppressionColumns = `address, reason, provider, cause, since`

func scanSuppression(row pgx.CollectableRow) (s feedback.Suppression, err error) {
	return s, row.Scan(&s.Address, &s.Reason, &s.Provider, &s.Cause, &s.Since)
}

// Suppressions lists addresses; see [feedback.SuppressionStore].
func (s Suppressions) Suppressions(ctx context.Context, prefix, after string, limit int) ([]feedback.Suppression, error) {
	return pg.Collect(ctx, s.Pool, scanSuppression, `select `+suppressionColumns+` from suppressions
		where released_at is null and starts_with(address, $1) and address > $2 order by address limit $3`, prefix, after, limit)
}

// latestSQL returns suppressions, the latest first, with the hashes of their addresses.
const latestSQL = `
select ` + suppressionColumns + `, hashtextextended(address, 0) as hash
from suppressions
where released_at is null and (@reason::text = '' or reason = @reason)
  and (since, hashtextextended(address, 0)) < (coalesce(nullif(@since::timestamptz, '0001-01-01 00:00:00+00'), 'infinity'), @hash::bigint)
order by since desc, hash desc limit @limit`

// Latest lists the latest; see [feedback.SuppressionStore].
func (s Suppressions) Latest(ctx context.Context, reason string, after feedback.Place, limit int) (list []feedback.Suppression, next feedback.Place, err error) {
	rows := pg.Rows(ctx, s.Pool, latestSQL, pgx.StrictNamedArgs{"reason": reason, "since": after.Since, "hash": after.Hash, "limit": limit + 1})
	var places []feedback.Place
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (s feedback.Suppression, err error) {
		var hash int64
		err = row.Scan(&s.Address, &s.Reason, &s.Provider, &s.Cause, &s.Since, &hash)
		places = append(places, feedback.Place{Since: s.Since, Hash: hash})
		return s, err
	})
	if err != nil || len(list) <= limit {
		return list, next, pg.Translate(err)
	}
	return list[:limit], places[limit-1], nil
}

// Suppression returns the suppression of one address; see [feedback.SuppressionStore].
func (s Suppressions) Suppression(ctx context.Context, address string) (feedback.Suppression, error) {
	return pg.One(ctx, s.Pool, scanSuppression, feedback.ErrNotSuppressed, `select `+suppressionColumns+` from suppressions where released_at is null and address = $1`, address)
}

// Suppress adds an address; see [feedback.SuppressionStore].
func (s Suppressions) Suppress(ctx context.Context, given feedback.Suppression, e staff.Entry) (kept feedback.Suppression, added bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `insert into suppressions as s (address, reason, cause) values ($1, $2, $3)
			on conflict (address) do update set reason = excluded.reason, provider = '', cause = excluded.cause, since = clock_timestamp(), released_at = null
			where s.released_at is not null`, given.Address, given.Reason, given.Cause)
		if err != nil {
			return err
		}
		if added = tag.RowsAffected() > 0; added {
			if err := pg.InsertAudit(ctx, tx, e); err != nil {
				return err
			}
		}
		kept, err = pgx.CollectExactlyOneRow(pg.Rows(ctx, tx, `select `+suppressionColumns+` from suppressions where address = $1`, given.Address), scanSuppression)
		return err
	})
	return kept, added, err
}

// Release takes an address off the list; see [feedback.SuppressionStore].
func (s Suppressions) Release(ctx context.Context, address string, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var was string
		err := tx.QueryRow(ctx, `with gone as (delete from soft_bounces where address = $1)
			update suppressions set released_at = clock_timestamp() where address = $1 and released_at is null returning reason`, address).Scan(&was)
		if errors.Is(err, pgx.ErrNoRows) {
			return feedback.ErrNotSuppressed
		}
		if err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}
