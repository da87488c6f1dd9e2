package pg

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/staff"
)

// InsertAudit records e, with the origin of ctx, in the running transaction: a
// change and its audit record are stored together or not at all.
func InsertAudit(ctx context.Context, tx pgx.Tx, e staff.Entry) error {
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
		pgx.NamedArgs{"actor": AuditActor(e.Actor), "action": e.Action, "kind": e.ObjectKind, "object": e.ObjectID, "shop": e.ShopNumber,
			"reason": e.Reason, "before": before, "after": after, "address": address, "request": request})
	return err
}

// AuditActor returns the actor's label and name. The name is stored too because
// the audit log must stay readable after the member or key is removed.
func AuditActor(a staff.Actor) string { return strings.TrimSpace(a.Label + " " + a.Name) }

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
