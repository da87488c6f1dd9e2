package drops

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/reminder"
	"dropbell/domain/report"
	"dropbell/domain/staff"
)

// Reports reads the data that only reports of drops use, and stores the links to reports.
type Reports struct{ *pg.DB }

// NewReports returns the reports of db.
func NewReports(db *pg.DB) Reports { return Reports{db} }

// People counts the drop's users as of one instant; see [report.Store].
func (s Reports) People(ctx context.Context, templateID int64) (p report.People, err error) {
	s.DB = s.Reports(ctx)
	err = s.Instant(ctx, func(tx pgx.Tx) error {
		p, err = pg.People(ctx, tx, templateID)
		return err
	})
	return p, err
}

// Events returns the changes that staff made to the drop, oldest first.
func (s Reports) Events(ctx context.Context, templateID int64) ([]reminder.TemplateStep, error) {
	return templateSteps(ctx, s.DB, templateID)
}

const linkColumns = `id, template_id, created_at, created_by, expires_at, revoked_at`

func scanLink(row pgx.CollectableRow) (l report.Link, err error) {
	err = row.Scan(&l.ID, &l.TemplateID, &l.CreatedAt, &l.CreatedBy, &l.ExpiresAt, &l.RevokedAt)
	return l, err
}

// AddLink stores a link; see [report.Store]. Links of one drop are created one after another,
// so two concurrent requests cannot exceed the limit together.
func (s Reports) AddLink(ctx context.Context, templateID int64, life time.Duration, most int, e staff.Entry) (l report.Link, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('report_links', $1))`, templateID); err != nil {
			return err
		}
		var valid int
		if err := tx.QueryRow(ctx, `select count(*) from report_links where template_id = $1 and revoked_at is null and expires_at > clock_timestamp()`,
			templateID).Scan(&valid); err != nil {
			return err
		}
		if valid >= most {
			return report.ErrTooManyLinks
		}
		rows, err := tx.Query(ctx, `insert into report_links (template_id, created_by, expires_at)
			values ($1, $2, clock_timestamp() + $3::interval) returning `+linkColumns, templateID, pg.AuditActor(e.Actor), life)
		if err != nil {
			return err
		}
		if l, err = pgx.CollectExactlyOneRow(rows, scanLink); err != nil {
			return err
		}
		e.After = map[string]any{"link": l.ID, "expires_at": l.ExpiresAt}
		return pg.InsertAudit(ctx, tx, e)
	})
	return l, err
}

// RevokeLink ends a link; see [report.Store].
func (s Reports) RevokeLink(ctx context.Context, templateID, id int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var valid bool
		err := tx.QueryRow(ctx, `select revoked_at is null and expires_at > clock_timestamp() from report_links
			where id = $1 and template_id = $2 for update`, id, templateID).Scan(&valid)
		if errors.Is(err, pgx.ErrNoRows) {
			return report.ErrNoLink
		}
		if err != nil || !valid {
			return err
		}
		if _, err := tx.Exec(ctx, `update report_links set revoked_at = clock_timestamp() where id = $1`, id); err != nil {
			return err
		}
		e.Before = map[string]any{"link": id}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Links returns the drop's links, the latest first.
func (s Reports) Links(ctx context.Context, templateID int64, limit int) ([]report.Link, error) {
	return pg.Collect(ctx, s.Pool, scanLink, `select `+linkColumns+` from report_links where template_id = $1 order by id desc limit $2`, templateID, limit)
}

// OpenLink returns the drop of a valid link; see [report.Store].
func (s Reports) OpenLink(ctx context.Context, id int64) (templateID int64, err error) {
	err = s.Pool.QueryRow(ctx, `select template_id from report_links where id = $1 and revoked_at is null and expires_at > clock_timestamp()`, id).Scan(&templateID)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, report.ErrNoLink
	}
	return templateID, pg.Translate(err)
}
