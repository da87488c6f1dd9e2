package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/staff"
)

// insertAudit records e in the running transaction, so that a change and its
// record are stored together or not at all.
func insertAudit(ctx context.Context, tx pgx.Tx, e staff.Entry) error {
	before, err := auditJSON(e.Before)
	if err != nil {
		return err
	}
	after, err := auditJSON(e.After)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into audit (actor, action, object_kind, object_id, shop_number, reason, before, after)
		values ($1, $2, $3, $4, nullif($5::bigint, 0), $6, $7, $8)`,
		auditActor(e.Actor), e.Action, e.ObjectKind, e.ObjectID, e.ShopNumber, e.Reason, before, after)
	return err
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

// Records lists what was recorded, newest first.
func (a Audit) Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error) {
	var from, to any
	if q.From != nil {
		from = *q.From
	}
	if q.To != nil {
		to = *q.To
	}
	rows, err := a.pool.Query(ctx, `
		select id, at, actor, action, object_kind, object_id, coalesce(shop_number, 0), reason, before, after
		from audit
		where ($1 = '' or object_kind = $1) and ($2 = '' or object_id = $2)
			-- "staff:1" must not find "staff:12".
			and ($3 = '' or actor = $3 or starts_with(actor, $3 || ' '))
			and ($4 = '' or action = $4 or starts_with(action, $4 || '.'))
			and ($5::timestamptz is null or at >= $5) and ($6::timestamptz is null or at < $6)
			and ($7 = 0 or id < $7)
			and (cardinality($8::bigint[]) = 0 or shop_number = any($8))
		order by id desc limit $9`,
		q.ObjectKind, q.ObjectID, q.Actor, q.Action, from, to, q.BeforeID, append([]int64{}, q.Shops...), max(1, q.Limit))
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[staff.Record])
	return list, translate(err)
}
