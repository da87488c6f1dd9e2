package access

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

// RecordAll stores entries with their origins, all or none; the lists are of
// one length.
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

// Record stores an entry about something that changes nothing else, such as
// personal data that was taken out.
func (a Audit) Record(ctx context.Context, e staff.Entry) error {
	return a.Tx(ctx, func(tx pgx.Tx) error { return pg.InsertAudit(ctx, tx, e) })
}

// Records lists what was recorded, newest first. A query with a text looks at
// a bounded number of records; see [Audit.Search].
func (a Audit) Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error) {
	page, err := a.Search(ctx, q)
	return page.List, err
}
