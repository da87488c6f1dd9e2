package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// An accepted is one message that a provider has accepted.
type accepted struct {
	batch int64
	token string
	user  user.ID
	via   int64 // the provider
}

// acceptedSQL records messages of several batches, as one row for each batch and provider. It
// skips batches whose lease another worker has, and returns the batches that were recorded.
const acceptedSQL = `
insert into accepted_messages (batch_id, users, provider_id)
select b.id, g.users, g.provider_id
from (select id, token, provider_id, array_agg(user_id) as users
    from unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[]) as g (id, token, user_id, provider_id) group by id, token, provider_id) g
cross join lateral (select id, lease_token from batches where id = g.id limit 1) b
where b.lease_token = g.token
returning batch_id`

// accept records the messages in one transaction. For each message of list, in order, it
// returns whether the lease was still held.
func (s Batches) accept(ctx context.Context, list []accepted) ([]bool, error) {
	ids, tokens, users, providers := make([]int64, len(list)), make([]string, len(list)), make([]int64, len(list)), make([]int64, len(list))
	for i, a := range list {
		ids[i], tokens[i], users[i], providers[i] = a.batch, a.token, int64(a.user), a.via
	}
	held := map[int64]bool{}
	err := s.PlannedOnce(ctx, acceptedSQL, []any{ids, tokens, users, providers}, func(rows pgx.Rows) error {
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

// Accepted records that a provider accepted the message to the user; see [delivery.Lease].
func (l *lease) Accepted(ctx context.Context, id user.ID, via int64) error {
	held, err := l.accept(ctx, accepted{batch: l.batch.ID, token: l.token, user: id, via: via})
	if err == nil && !held {
		return delivery.ErrLeaseLost
	}
	l.journalled.Store(true)
	return err
}

// loadAccepted reads the messages that an earlier run handed to a provider and that are in no
// checkpoint. It reads them from the journal and from the providers' reports.
func (l *lease) loadAccepted(ctx context.Context) error {
	// If two workers handed over a message, the first worker's row counts.
	rows := pg.Rows(ctx, l.db.Pool, `select distinct on (id) id, provider_id
		from (select unnest(users) as id, provider_id, at from accepted_messages where batch_id = $1) a order by id, at`, l.batch.ID)
	via := map[user.ID]int64{}
	var id user.ID
	var provider int64
	_, err := pgx.ForEachRow(rows, []any{&id, &provider}, func() error {
		l.journalled.Store(true)
		if _, left := slices.BinarySearch(l.batch.Left, id); !left || l.outcomes[id].Final() && l.outcomes[id] != "" {
			return nil
		}
		l.batch.Accepted = append(l.batch.Accepted, id)
		if provider != 0 {
			via[id] = provider
		}
		return nil
	})
	l.batch.AcceptedVia = via
	if err != nil {
		return pg.Translate(err)
	}
	return l.loadReported(ctx)
}

// loadReported adds messages with a final report that a worker handed over and could not
// record: a report may come before the provider's answer. Otherwise such a message would be
// sent again, or skipped because its bounce has suppressed the address. A soft bounce is not
// final. A message with an exception is retried as the exception says, because staff may have
// corrected the address since. A report does not say which provider accepted the message.
func (l *lease) loadReported(ctx context.Context) error {
	var sets [4][]byte
	err := l.db.Pool.QueryRow(ctx, `select delivered, bounced, complained from batch_feedback where batch_id = $1`, l.batch.ID).
		Scan(&sets[0], &sets[1], &sets[2])
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return pg.Translate(err)
	}
	known, err := pg.DecodeReported(sets)
	if err != nil {
		return err
	}
	accepted, provider := slices.Clone(l.batch.Accepted), l.onlyProvider()
	for _, id := range l.batch.Left {
		if _, journalled := slices.BinarySearch(accepted, id); !journalled && l.outcomes[id] == "" && known.Of(id) != "" {
			l.batch.Accepted = append(l.batch.Accepted, id)
			if provider != 0 {
				l.batch.AcceptedVia[id] = provider
			}
		}
	}
	slices.Sort(l.batch.Accepted)
	return nil
}

// onlyProvider returns the provider that accepted all sent and accepted messages of the batch.
// 0 = the environment's provider, or more than one provider.
func (l *lease) onlyProvider() int64 {
	took := map[int64]uint64{}
	for _, provider := range l.batch.AcceptedVia {
		took[provider]++
	}
	for provider, users := range l.via {
		took[provider] += users.GetCardinality()
	}
	for provider, n := range took {
		if n == l.sent.GetCardinality()+uint64(len(l.batch.Accepted)) {
			return provider
		}
	}
	return 0
}
