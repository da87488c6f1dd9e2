package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/user"
)

// Recipients returns what is known of these users.
func (s Batches) Recipients(ctx context.Context, ids []user.ID) (map[user.ID]user.User, error) {
	rows, err := s.pool.Query(ctx, `select `+userColumns+` from users where id = any($1)`, ids)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanUser)
	known := make(map[user.ID]user.User, len(list))
	for _, u := range list {
		known[u.ID] = u
	}
	return known, translate(err)
}
