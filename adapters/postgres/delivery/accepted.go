package delivery

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// An accepted is one message that a provider has taken.
type accepted struct {
	batch int64
	token string
	user  user.ID
}

// acceptedSQL records messages of several batches, a row for each batch. It
// skips batches whose lease another worker has. It returns the batches that were
// recorded.
const acceptedSQL = `
insert into accepted_messages (batch_id, users)
select b.id, g.users
from (select id, token, array_agg(user_id) as users from unnest($1::bigint[], $2::uuid[], $3::bigint[]) as g (id, token, user_id) group by id, token) g
cross join lateral (select id, lease_token from batches where id = g.id limit 1) b
where b.lease_token = g.token
returning batch_id`

// accept records the messages in one transaction. The answers are in the order of
// list: whether the lease was still held.
func (s Batches) accept(ctx context.Context, list []accepted) ([]bool, error) {
	ids, tokens, users := make([]int64, len(list)), make([]string, len(list)), make([]int64, len(list))
	for i, a := range list {
		ids[i], tokens[i], users[i] = a.batch, a.token, int64(a.user)
	}
	held := map[int64]bool{}
	err := s.PlannedOnce(ctx, acceptedSQL, []any{ids, tokens, users}, func(rows pgx.Rows) error {
		for rows.Next() {
			var id int64
			if err := rows.Scan(&id); err != nil {
				return err
			}
			held[id] = true
		}
		return rows.Err()
	})
	answers := make([]bool, len(list))
	for i, a := range list {
		answers[i] = held[a.batch]
	}
	return answers, err
}

func (s Batches) acceptAlone(ctx context.Context, a accepted) (held bool, err error) {
	answers, err := s.accept(ctx, []accepted{a})
	return answers[0], pg.Translate(err)
}

// Accepted records that the message to the user was taken; see [delivery.Lease].
func (l *lease) Accepted(ctx context.Context, id user.ID) error {
	held, err := l.accept(ctx, accepted{batch: l.batch.ID, token: l.token, user: id})
	if err == nil && !held {
		return delivery.ErrLeaseLost
	}
	l.journalled.Store(true)
	return err
}

// loadAccepted reads what a former run handed over and has in no checkpoint.
func (l *lease) loadAccepted(ctx context.Context) error {
	rows, err := l.db.Pool.Query(ctx, `select distinct unnest(users) as id from accepted_messages where batch_id = $1 order by id`, l.batch.ID)
	if err != nil {
		return pg.Translate(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[user.ID])
	if err != nil {
		return pg.Translate(err)
	}
	l.journalled.Store(len(ids) > 0)
	l.batch.Accepted = slices.DeleteFunc(ids, func(id user.ID) bool {
		_, left := slices.BinarySearch(l.batch.Left, id)
		return !left || l.outcomes[id].Final() && l.outcomes[id] != ""
	})
	return nil
}
