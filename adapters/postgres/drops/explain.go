package drops

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// stepOf maps the audit log's names of changes to the timeline's names.
var stepOf = map[string]reminder.StepKind{
	"template.publish": reminder.StepPublished, "template.move": reminder.StepMoved, "template.pause": reminder.StepPaused,
	"template.resume": reminder.StepResumed, "template.reopen": reminder.StepResumed, "template.close": reminder.StepClosed, "template.cancel": reminder.StepCancelled,
}

// TemplateSteps returns the template's changes, oldest first.
func (r *Reservations) TemplateSteps(ctx context.Context, templateID int64) ([]reminder.TemplateStep, error) {
	return templateSteps(ctx, r.DB, templateID)
}

func templateSteps(ctx context.Context, db *pg.DB, templateID int64) ([]reminder.TemplateStep, error) {
	actions := make([]string, 0, len(stepOf))
	for a := range stepOf {
		actions = append(actions, a)
	}
	rows := pg.Rows(ctx, db.Pool, `select at, action, actor, before, after from audit
		where object_kind = 'template' and object_id = $1 and action = any($2) order by id limit 500`, pg.Itoa(templateID), actions)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s reminder.TemplateStep, err error) {
		var action string
		var before, after []byte
		if err := row.Scan(&s.At, &action, &s.By, &before, &after); err != nil {
			return s, err
		}
		s.Kind = stepOf[action]
		if s.Kind == reminder.StepMoved {
			s.From, s.To = openingIn(before), openingIn(after)
		}
		return s, nil
	})
	return list, pg.Translate(err)
}

// Planned returns the planned times of slots that were created after their due
// time; see [reminder.ExplainStore].
func (r *Reservations) Planned(ctx context.Context, templateID int64) (map[int64]time.Time, error) {
	rows := pg.Rows(ctx, r.Pool, `select id, planned_at from slots_of($1) where planned_at > due_at`, templateID)
	planned := map[int64]time.Time{}
	var id int64
	var at time.Time
	_, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		planned[id] = at
		return nil
	})
	return planned, pg.Translate(err)
}

// Withdrawn returns when the user cancelled all remaining reminders; see
// [reminder.ExplainStore].
func (r *Reservations) Withdrawn(ctx context.Context, templateID int64, by user.ID) (at time.Time, err error) {
	err = r.Pool.QueryRow(ctx, `select at from former_reservations where user_id = $1 and template_id = $2`, by, templateID).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, pg.Translate(err)
}

// RowsRemoved returns when the figures of the template were kept and its rows removed; see
// [reminder.ExplainStore].
func (r *Reservations) RowsRemoved(ctx context.Context, templateID int64) (at *time.Time, err error) {
	err = r.Pool.QueryRow(ctx, `select counted_at from drop_archives where template_id = $1`, templateID).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return at, pg.Translate(err)
}

// openingIn returns the opening of a spec as stored in the audit log.
func openingIn(spec []byte) *time.Time {
	var s struct{ OpensAt *time.Time }
	_ = json.Unmarshal(spec, &s) // an older form of the entry has no opening to show
	return s.OpensAt
}
