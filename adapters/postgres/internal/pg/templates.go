package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/template"
)

// TemplateColumns are the columns of a template t of a shop s; see [ScanTemplate]. The column of
// channels is never empty; without days a template has no channels.
var TemplateColumns = FieldColumns(template.Fields, "t", map[string]string{"notify_channels": "case when t.notify_days <> 0 then t.notify_channels else 0 end",
	"refund_to": "case t.refund_to when 'user' then 'holder' else t.refund_to end"}) +
	`, t.id, s.name, s.timezone, s.claim_url, t.issued, t.returned, t.held, t.state, t.version, t.created_at, t.updated_at, t.published_at, t.ended_at, t.remind_once, t.door_base, ` + DoorsOf +
	`, coalesce((select d.series_id from series_drops d where d.template_id = t.id), 0)`

// DoorsOf are the doors of the template t, null for a template without doors; see [template.Door].
const DoorsOf = `case when t.doors > 0 then (select jsonb_agg(jsonb_build_object('name', d.name, 'who', d.who, 'segment_id', coalesce(d.segment_id, 0),
	'lead_minutes', d.lead_minutes, 'share', d.share, 'user_limit', d.user_limit, 'weight', d.weight, 'texts', d.texts, 'frozen_at', d.frozen_at, 'members', d.members,
	'booked_share', d.booked_share, 'claimed_share', d.claimed_share) order by d.place)
	from doors d where d.template_id = t.id) end`

// TemplateFrom is where [TemplateColumns] come from.
const TemplateFrom = ` from templates t join shops s on s.number = t.shop_number `

// ScanTemplate reads [TemplateColumns].
func ScanTemplate(row pgx.CollectableRow) (template.Template, error) {
	var t template.Template
	err := row.Scan(TemplateFields(&t)...)
	return t, err
}

// TemplateRow is the row of template $1.
//
// Each stored claim is counted in the template's row. While a transaction keeps an old
// snapshot open, PostgreSQL keeps every version of the row: tens of thousands after some
// minutes of a rush. "id = …" would visit all of them, the oldest first. The index holds the
// versions of a row in the order of their places, and new versions lie at the end of the
// table. An index scan from the end meets the newest version first or soon, and limit 1 stops
// there.
const TemplateRow = `(select * from templates where id between $1 and $1 order by id desc limit 1)`

// Template returns the template, or [template.ErrNotFound].
func Template(ctx context.Context, db *DB, id int64) (template.Template, error) {
	return One(ctx, db.Pool, ScanTemplate, template.ErrNotFound, `select `+TemplateColumns+` from `+TemplateRow+` t join shops s on s.number = t.shop_number`, id)
}

// TemplateFields are the destinations of [TemplateColumns].
func TemplateFields(t *template.Template) []any {
	return append(FieldPlaces(template.Fields, &t.Spec), &t.ID, &t.ShopName, &t.ShopTimezone, &t.ShopClaimURL, &t.Issued,
		&t.Returned, &t.Held, &t.Stored, &t.Version, &t.CreatedAt, &t.UpdatedAt, &t.PublishedAt, &t.EndedAt, &t.RemindOnce,
		&t.DoorBase, &t.Doors, &t.SeriesID)
}

// TemplateEndsAt is [template.Spec.EndsAt] of the row t; least ignores nulls.
const TemplateEndsAt = `least(t.closes_at, t.valid_until)`
