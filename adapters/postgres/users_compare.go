package postgres

import (
	"context"

	"dropbell/domain/user"
)

// Compare tells what changes would do; see [user.ImportStore].
func (s Users) Compare(ctx context.Context, changes []user.Change) (fresh, changed int64, err error) {
	args, err := userArgs(changes)
	if err != nil {
		return 0, 0, err
	}
	err = s.pool.QueryRow(ctx, `
		select count(*) filter (where u.id is null), count(*) filter (where u.id is not null and `+differs+`)
		from `+userInput+` left join users u on u.id = i.id`, args...).Scan(&fresh, &changed)
	return fresh, changed, translate(err)
}
