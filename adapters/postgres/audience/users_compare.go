package audience

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/user"
)

// Compare counts the users that changes would add and change; see [user.ImportStore].
func (s Users) Compare(ctx context.Context, changes []user.Change) (fresh, changed int64, err error) {
	args, err := userArgs(changes)
	if err != nil {
		return 0, 0, err
	}
	// Returns how many users are new and how many would change.
	err = s.Pool.QueryRow(ctx, `
		select count(*) filter (where u.id is null), count(*) filter (where u.id is not null and `+differs+`)
		from `+userInput+` left join users u on u.id = i.id`, args).Scan(&fresh, &changed)
	return fresh, changed, pg.Translate(err)
}

// RememberRows stores the rows that a check has read; see [user.ImportStore].
func (s Users) RememberRows(ctx context.Context, jobID int64, list []user.CheckedRow, before int64) ([]user.CheckedRow, error) {
	ids, lines, digests := make([]int64, len(list)), make([]int64, len(list)), make([]int64, len(list))
	for i, r := range list {
		ids[i], lines[i], digests[i] = int64(r.ID), r.Line, r.Digest
	}
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[user.CheckedRow], `
		with given as (select * from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as g (user_id, line, digest)), kept as (
			insert into checked_rows (job_id, user_id, line, digest) select $1, user_id, line, digest from given order by user_id on conflict do nothing)
		select g.user_id, c.line, c.digest from given g cross join lateral (select line, digest from checked_rows
			where job_id = $1 and user_id = g.user_id and line < $5 order by line desc limit 1) c`, jobID, ids, lines, digests, before)
}

// ForgetRows removes it again.
func (s Users) ForgetRows(ctx context.Context, jobID int64, limit int) (int, error) {
	tag, err := s.Pool.Exec(ctx, `delete from checked_rows where (job_id, user_id, line) in (
		select job_id, user_id, line from checked_rows where job_id = $1 order by user_id, line limit $2)`, jobID, limit)
	return int(tag.RowsAffected()), pg.Translate(err)
}
