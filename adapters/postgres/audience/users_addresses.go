package audience

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/user"
)

// Addresses returns mail addresses by user; see [feedback.Addresses].
func (s Users) Addresses(ctx context.Context, ids []user.ID) (map[user.ID]string, error) {
	return s.textOf(ctx, `select id, email from users where id = any($1) and email <> ''`, ids)
}

// Names returns the names of the users with these ids; users without a name are left out.
func (s Users) Names(ctx context.Context, ids []user.ID) (map[user.ID]string, error) {
	s.DB = s.Reports(ctx)
	return s.textOf(ctx, `select id, name from users where id = any($1) and name <> ''`, ids)
}

// textOf returns a text for each user that the statement finds.
func (s Users) textOf(ctx context.Context, sql string, ids []user.ID) (map[user.ID]string, error) {
	rows := pg.Rows(ctx, s.Pool, sql, ids)
	found := make(map[user.ID]string, len(ids))
	var id user.ID
	var text string
	_, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
		found[id] = text
		return nil
	})
	return found, pg.Translate(err)
}
