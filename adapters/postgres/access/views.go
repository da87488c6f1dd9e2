package access

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

const viewSQL = `select v.id, v.staff_id, m.name, v.list, v.name, v.query, v.shared from saved_views v join staff m on m.id = v.staff_id `

// Views returns, by name, the member's own views of the list and the views that other members
// share.
func (s Staff) Views(ctx context.Context, member int64, list string) ([]staff.SavedView, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[staff.SavedView], viewSQL+`where v.list = $2 and (v.staff_id = $1 or v.shared) order by lower(v.name), v.id limit 500`, member, list)
}

// View returns [staff.ErrViewNotFound] if there is none.
func (s Staff) View(ctx context.Context, id int64) (staff.SavedView, error) {
	return pg.One(ctx, s.Pool, pgx.RowToStructByPos[staff.SavedView], staff.ErrViewNotFound, viewSQL+`where v.id = $1`, id)
}

// SaveView stores a view or replaces the view with that name; see [staff.ViewStore]. Concurrent
// saves of one member run one after the other, so that the limit holds.
func (s Staff) SaveView(ctx context.Context, v staff.SavedView, most int) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from staff where id = $1 for no key update`, v.Owner); err != nil {
			return err
		}
		var others int
		err := tx.QueryRow(ctx, `select count(*) from saved_views where staff_id = $1 and list = $2 and lower(name) <> lower($3)`, v.Owner, v.List, v.Name).Scan(&others)
		if err != nil {
			return err
		}
		if others >= most {
			return staff.ErrTooManyViews
		}
		_, err = tx.Exec(ctx, `insert into saved_views (staff_id, list, name, query, shared) values ($1, $2, $3, $4, $5)
			on conflict (staff_id, list, lower(name)) do update set name = excluded.name, query = excluded.query, shared = excluded.shared, updated_at = clock_timestamp()`,
			v.Owner, v.List, v.Name, v.Query, v.Shared)
		return err
	})
}

// RenameView returns [staff.ErrViewNotFound], and [staff.ErrViewTaken].
func (s Staff) RenameView(ctx context.Context, id int64, name string) error {
	tag, err := s.Pool.Exec(ctx, `update saved_views set name = $2, updated_at = clock_timestamp() where id = $1`, id, name)
	if pg.Violates(err, "saved_views_name") {
		return staff.ErrViewTaken
	}
	if err == nil && tag.RowsAffected() == 0 {
		return staff.ErrViewNotFound
	}
	return pg.Translate(err)
}

// DeleteView deletes the view, if it is there.
func (s Staff) DeleteView(ctx context.Context, id int64) error {
	_, err := s.Pool.Exec(ctx, `delete from saved_views where id = $1`, id)
	return pg.Translate(err)
}
