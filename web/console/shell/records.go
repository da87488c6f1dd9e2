package shell

import (
	"context"
	"net/http"
	"strconv"

	"dropbell/domain/staff"
	pageparts "dropbell/views/pages/parts"
)

// Records reads the audit log, the newest entries first.
type Records interface {
	Records(ctx context.Context, q staff.AuditQuery) ([]staff.Record, error)
}

// LastChangedBy returns the name of the member who last changed the object; "" if the log has no
// entry about it.
func LastChangedBy(r *http.Request, log Records, kind string, id int64) (string, error) {
	last, err := log.Records(r.Context(), staff.AuditQuery{ObjectKind: kind, ObjectID: strconv.FormatInt(id, 10), Limit: 1})
	if err != nil || len(last) == 0 {
		return "", err
	}
	return pageparts.ActorName(r.Context(), last[0].Actor), nil
}
