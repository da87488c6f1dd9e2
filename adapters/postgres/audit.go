package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/staff"
)

// insertAudit records e in the running transaction, with the origin of ctx, so
// that a change and its record are stored together or not at all.
func insertAudit(ctx context.Context, tx pgx.Tx, e staff.Entry) error {
	before, err := auditJSON(e.Before)
	if err != nil {
		return err
	}
	after, err := auditJSON(e.After)
	if err != nil {
		return err
	}
	from := staff.OriginOf(ctx)
	from.Note(e)
	address, request := "", ""
	if from != nil {
		address, request = from.Address, from.RequestID
	}
	_, err = tx.Exec(ctx, `
		insert into audit (actor, action, object_kind, object_id, shop_number, reason, before, after, address, request_id)
		values (@actor, @action, @kind, @object, nullif(@shop::bigint, 0), @reason, @before, @after, nullif(@address, ''), nullif(@request, ''))`,
		pgx.NamedArgs{"actor": auditActor(e.Actor), "action": e.Action, "kind": e.ObjectKind, "object": e.ObjectID, "shop": e.ShopNumber,
			"reason": e.Reason, "before": before, "after": after, "address": address, "request": request})
	return err
}

// RecordAll stores entries with their origins, all or none; the lists are of
// one length.
func (a Audit) RecordAll(ctx context.Context, entries []staff.Entry, from []*staff.Origin) error {
	return a.tx(ctx, func(tx pgx.Tx) error {
		for i, e := range entries {
			if err := insertAudit(staff.WithOrigin(ctx, from[i]), tx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// auditActor keeps the name beside the label: it must stay readable after the
// person or key is gone.
func auditActor(a staff.Actor) string { return strings.TrimSpace(a.Label + " " + a.Name) }

// auditJSON returns nil, which is stored as null, when there is nothing to show.
func auditJSON(v any) ([]byte, error) {
	if v == nil {
		return nil, nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("audit value: %w", err)
	}
	return b, nil
}

// Audit reads the audit log.
type Audit struct{ *DB }

// NewAudit returns the audit log of db.
func NewAudit(db *DB) Audit { return Audit{db} }

// Record stores an entry about something that changes nothing else, such as
// personal data that was taken out.
func (a Audit) Record(ctx context.Context, e staff.Entry) error {
	return a.tx(ctx, func(tx pgx.Tx) error { return insertAudit(ctx, tx, e) })
}

// Records lists what was recorded, newest first. A query with a text looks at
// a bounded number of records; see [Audit.Search].
func (a Audit) Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error) {
	page, err := a.Search(ctx, q)
	return page.List, err
}
