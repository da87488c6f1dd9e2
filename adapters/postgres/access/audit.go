package access

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// RecordAll stores entries with their origins, either all entries or none. Both lists have the
// same length.
func (a Audit) RecordAll(ctx context.Context, entries []staff.Entry, from []*staff.Origin) error {
	return a.Tx(ctx, func(tx pgx.Tx) error {
		for i, e := range entries {
			if err := pg.InsertAudit(staff.WithOrigin(ctx, from[i]), tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// Audit reads the audit log.
type Audit struct{ *pg.DB }

// NewAudit returns the audit log of db.
func NewAudit(db *pg.DB) Audit { return Audit{db} }

// Record stores an entry about an action that changes no other row, such as an export of
// personal data.
func (a Audit) Record(ctx context.Context, e staff.Entry) error {
	return a.Tx(ctx, func(tx pgx.Tx) error { return pg.InsertAudit(ctx, tx, e) })
}

// RecordRevealed stores an entry about contacts that are shown. It returns [staff.ErrRevealed],
// with the time until contacts may be shown again, if the limit of the last hour is reached: the
// limit of the member, or of all members for the entry's shop.
func (a Audit) RecordRevealed(ctx context.Context, e staff.Entry) error {
	return a.Tx(ctx, func(tx pgx.Tx) error {
		// One request of a shop, or of a member without a shop, at a time: concurrent requests
		// would otherwise exceed the limits together.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:revealed:' || case when $1 = 0 then $2 else '' end, $1))`, e.ShopNumber, e.Actor.Label); err != nil {
			return err
		}
		var wait time.Duration
		if err := tx.QueryRow(ctx, `
			with shown as (
				select at, split_part(actor, ' ', 1) = @member as own, shop_number = nullif(@shop::bigint, 0) as beside from audit
				where action = @action and at > statement_timestamp() - @within::interval
			)
			select coalesce(greatest(
				(select at from shown where own order by at desc offset @most - 1 limit 1),
				(select at from shown where beside order by at desc offset @most_of_shop - 1 limit 1)
			) + @within::interval - statement_timestamp(), interval '0')`,
			pgx.StrictNamedArgs{"member": e.Actor.Label, "shop": e.ShopNumber, "action": e.Action, "within": staff.RevealedWithin, "most": staff.MaxRevealed,
				"most_of_shop": staff.MaxRevealedOfShop}).Scan(&wait); err != nil {
			return err
		}
		if wait > 0 {
			return &fault.RetryAfter{Err: staff.ErrRevealed, After: wait}
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Records lists audit records, newest first. A query with a text looks at a bounded number of
// records; see [Audit.Search].
func (a Audit) Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error) {
	page, err := a.Search(ctx, q)
	return page.List, err
}
