package audience

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/user"
)

// Addresses returns mail addresses by user; see [feedback.Addresses].
func (s Users) Addresses(ctx context.Context, ids []user.ID) (map[user.ID]string, error) {
	rows, err := s.Pool.Query(ctx, `select id, email from users where id = any($1) and email <> ''`, ids)
	if err != nil {
		return nil, pg.Translate(err)
	}
	found := make(map[user.ID]string, len(ids))
	var id user.ID
	var email string
	_, err = pgx.ForEachRow(rows, []any{&id, &email}, func() error {
		found[id] = email
		return nil
	})
	return found, pg.Translate(err)
}
