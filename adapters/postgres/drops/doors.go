package drops

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/door"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// SaveDoors implements [door.Store]. The template is locked before its doors. A frozen door stays frozen. The reminders
// of users of a door that moves count to its new opening.
func (s Templates) SaveDoors(ctx context.Context, t template.Template, tests []door.Test, e staff.Entry) (template.Template, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, fault.ErrStale, `update templates set doors = $3, version = version + 1, updated_at = now() where id = $1 and version = $2`, t.ID, t.Version, len(t.Doors)); err != nil {
			return err
		}
		old, err := doorsBefore(ctx, tx, t)
		if err != nil {
			return err
		}
		leads := make([]int, len(t.Doors))
		for i, d := range t.Doors {
			leads[i] = d.LeadMinutes
		}
		var frozen bool // since the doors were read
		if err := tx.QueryRow(ctx, `select exists (select from doors d left join unnest($2::int[]) with ordinality as a (lead, place) on a.place = d.place
			where d.template_id = $1 and d.frozen_at is not null and d.lead_minutes is distinct from a.lead)`, t.ID, leads).Scan(&frozen); err != nil {
			return err
		}
		if frozen {
			return template.ErrDoorsFixed
		}
		b := &pgx.Batch{}
		b.Queue(`delete from doors where template_id = $1 and place > $2`, t.ID, len(t.Doors))
		for i, d := range t.Doors {
			texts, err := json.Marshal(d.Texts)
			if err != nil {
				return err
			}
			b.Queue(`insert into doors as d (template_id, place, name, who, segment_id, lead_minutes, share, user_limit, texts, weight)
				values ($1, $2, $3, $4, nullif($5::bigint, 0), $6, $7, $8, coalesce(nullif($9::jsonb, 'null'), '{}'), $10)
				on conflict (template_id, place) do update set name = excluded.name, who = excluded.who, segment_id = excluded.segment_id,
					lead_minutes = excluded.lead_minutes, share = excluded.share, user_limit = excluded.user_limit, texts = excluded.texts, weight = excluded.weight`,
				t.ID, i+1, d.Name, d.Who, d.SegmentID, d.LeadMinutes, d.Share, d.Limit, texts, d.Chances())
		}
		b.Queue(`delete from door_tests where template_id = $1`, t.ID)
		for _, test := range tests {
			b.Queue(`insert into door_tests (template_id, user_id, note, wants) values ($1, $2, $3, $4)`, t.ID, test.UserID, test.Note, test.Wants)
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := moveDoors(ctx, tx, old, t); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		return announceTemplate(ctx, tx, event.TemplateChanged, event.Template{TemplateID: t.ID, ShopNumber: t.ShopNumber, Version: t.Version + 1, OpensAt: t.OpensAt})
	})
	if err != nil {
		return t, err
	}
	return s.Template(ctx, t.ID)
}

// doorsBefore returns t with the doors as they are stored, as far as their openings are concerned.
func doorsBefore(ctx context.Context, tx pgx.Tx, t template.Template) (template.Template, error) {
	rows, err := tx.Query(ctx, `select who, lead_minutes from doors where template_id = $1 order by place`, t.ID)
	if err != nil {
		return t, err
	}
	t.Doors, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d template.Door, err error) { return d, row.Scan(&d.Who, &d.LeadMinutes) })
	return t, err
}

// DoorTests implements [door.Store].
func (s Templates) DoorTests(ctx context.Context, templateID int64) ([]door.Test, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[door.Test], `select user_id, note, wants, 0 as gets from door_tests where template_id = $1 order by user_id`, templateID)
}

// DoorRefusals implements [door.Counter].
func (s Templates) DoorRefusals(ctx context.Context, templateID int64) ([]door.Refusal, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[door.Refusal], `select door, code, claims from door_refusals where template_id = $1 order by door, claims desc, code`, templateID)
}

// thawDoors lets the members of all doors be frozen anew, since the drop opens at another time. None of the doors is
// open. Members that are being cut meanwhile hold the door's row.
func thawDoors(ctx context.Context, tx pgx.Tx, templateID int64) error {
	if _, err := tx.Exec(ctx, `update doors set frozen_at = null, cut_at = null, cut_to = 0, members = 0 where template_id = $1`, templateID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `delete from door_members where template_id = $1`, templateID)
	return err
}
