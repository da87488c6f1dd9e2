package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"dropbell/domain/staff"
)

// A DraftKind is the kind of a deleted draft, named as in the audit log.
type DraftKind string

// The kinds of drafts.
const (
	DropDraft     DraftKind = "template"
	CampaignDraft DraftKind = "campaign"
)

// table returns the table that holds drafts of the kind. fresh is the SQL for the
// fields that restoring a draft resets: the request key, so that a later creation
// with this key is a new request, and a campaign's approval, which must be asked
// for again.
func (k DraftKind) table() (name, fresh string) {
	if k == CampaignDraft {
		return "campaigns", `jsonb_build_object('request_key', null, 'approval_asked_at', null, 'approved_by', '')`
	}
	return "templates", `jsonb_build_object('request_key', null)`
}

// The parts of a deleted drop are kept with its row, under these names.
const (
	doorParts     = "doors of the drop"
	doorTestParts = "tests of the doors"
)

// ErrReferenced is returned for a draft that cannot be deleted because rows of
// other tables refer to it.
var ErrReferenced = errors.New("rows of other tables are about the draft")

// DeleteDraft removes the draft's row and keeps its content in deleted_drafts,
// from which [RestoreDraft] restores it. DeleteDraft returns false if no draft
// has this id and version, and [ErrReferenced] if other rows refer to the draft.
func DeleteDraft(ctx context.Context, tx pgx.Tx, kind DraftKind, id, version int64, e staff.Entry) (bool, error) {
	table, _ := kind.table()
	parts := `'{}'`
	if kind == DropDraft {
		parts = `jsonb_build_object('` + doorParts + `', coalesce((select jsonb_agg(to_jsonb(p)) from doors p where p.template_id = gone.id), '[]'),
			'` + doorTestParts + `', coalesce((select jsonb_agg(to_jsonb(p)) from door_tests p where p.template_id = gone.id), '[]'))`
	}
	tag, err := tx.Exec(ctx, `
		with gone as (delete from `+table+` d where d.id = $1 and d.version = $2 and d.state = 'draft' returning d.*)
		insert into deleted_drafts (kind, id, shop_number, name, content, deleted_by)
		select $3, id, coalesce(shop_number, 0), name, to_jsonb(gone) || `+parts+`, $4 from gone`, id, version, kind, e.Actor.Label+" "+e.Actor.Name)
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && failed.Code == "23503" {
		return false, ErrReferenced
	}
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	e.ObjectID = Itoa(id)
	return true, InsertAudit(ctx, tx, e)
}

// A DeletedDraft is a draft that can be restored.
type DeletedDraft struct {
	Shop int64
	Name string
	At   time.Time
	By   string
}

// DeletedDraftOf returns the deleted draft. found is false if there is none, or
// if it was deleted longer than kept ago.
func DeletedDraftOf(ctx context.Context, q Querier, kind DraftKind, id int64, kept time.Duration) (d DeletedDraft, found bool, err error) {
	rows := Rows(ctx, q, `select shop_number, name, deleted_at, deleted_by from deleted_drafts
		where kind = $1 and id = $2 and deleted_at > clock_timestamp() - $3::interval`, kind, id, kept)
	d, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[DeletedDraft])
	if errors.Is(err, pgx.ErrNoRows) {
		return d, false, nil
	}
	return d, err == nil, err
}

// RestoreDraft makes the deleted draft a draft again, with its old id and the
// next version, so that forms that showed the draft before are stale. It returns
// false if there is no deleted draft to restore. Of two concurrent calls only one
// restores the draft. Columns that were added to the table since the deletion get
// their defaults.
func RestoreDraft(ctx context.Context, tx pgx.Tx, kind DraftKind, id int64, kept time.Duration, e staff.Entry) (bool, error) {
	table, fresh := kind.table()
	var columns []string
	err := tx.QueryRow(ctx, `
		with mine as (select content from deleted_drafts where kind = $1 and id = $2 and deleted_at > clock_timestamp() - $3::interval for update)
		select array(select attname::text from pg_attribute where attrelid = $4::regclass and attnum > 0 and not attisdropped and mine.content ? attname) from mine`,
		kind, id, kept, table).Scan(&columns)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if !slices.Contains(columns, "id") {
		return false, fmt.Errorf("the deleted %s %d has no id in its row", kind, id)
	}
	for i, name := range columns {
		columns[i] = pgx.Identifier{name}.Sanitize()
	}
	list := strings.Join(columns, ", ")
	doors := ``
	if kind == DropDraft {
		doors = `, door as (
			insert into doors select p.* from mine, jsonb_populate_recordset(null::doors, before -> '` + doorParts + `') p
		), tests as (
			insert into door_tests select p.* from mine, jsonb_populate_recordset(null::door_tests, before -> '` + doorTestParts + `') p
		)`
	}
	_, err = tx.Exec(ctx, `
		with mine as (delete from deleted_drafts where kind = $1 and id = $2 returning content as before)`+doors+`
		insert into `+table+` (`+list+`) overriding system value
		select `+list+` from mine, jsonb_populate_record(null::`+table+`, before || `+fresh+` || jsonb_build_object('version', (before ->> 'version')::bigint + 1,
			'updated_at', clock_timestamp()))`, kind, id)
	if err != nil {
		return false, err
	}
	e.ObjectID = Itoa(id)
	return true, InsertAudit(ctx, tx, e)
}
