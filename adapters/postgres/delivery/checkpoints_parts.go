package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// exceptionArgs are the parameters of recordingExceptions.
func exceptionArgs(list []checkpoint) pgx.StrictNamedArgs {
	var batches []int64
	var es []delivery.Exception
	for _, c := range list {
		for _, e := range c.Exceptions {
			batches, es = append(batches, c.batch), append(es, e)
		}
	}
	n := len(es)
	users, outcomes, reasons := make([]int64, n), make([]string, n), make([]string, n)
	details, prints, attempts, providers := make([]string, n), make([]string, n), make([]int32, n), make([]int64, n)
	next, first, last := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, e := range es {
		users[i], outcomes[i], reasons[i] = int64(e.UserID), string(e.Outcome), e.Reason
		details[i], prints[i], attempts[i] = e.Detail, e.Fingerprint, int32(e.Attempts)
		next[i], first[i], last[i], providers[i] = e.NextRetryAt, e.FirstAt, e.LastAt, e.Via
	}
	return pgx.StrictNamedArgs{"e_batches": batches, "e_users": users, "e_outcomes": outcomes, "e_reasons": reasons,
		"e_details": details, "e_fingerprints": prints, "e_attempts": attempts, "e_next": next, "e_first": first, "e_last": last, "e_providers": providers}
}

// recordingProviders records the users of mine whose messages each provider accepted. The
// arrays have one element for each batch and provider.
const recordingProviders = `routed as (
    insert into batch_providers as p (batch_id, provider_id, users, sent_count)
    select m.id, r.provider_id, r.users, r.sent_count
    from mine m join unnest(@p_batches::bigint[], @p_ids::bigint[], @p_users::bytea[], @p_counts::int[])
        as r (batch_id, provider_id, users, sent_count) on r.batch_id = m.id
    on conflict (batch_id, provider_id) do update set users = excluded.users, sent_count = excluded.sent_count
)`

// tookPart is the part of a batch that one provider accepted; users is nil if the provider
// accepted all sent messages.
type tookPart struct {
	provider int64
	users    []byte
	count    int32
}

// viaWith returns the users by provider, including the users of p.
func (l *lease) viaWith(p delivery.Progress) map[int64]*roaring64.Bitmap {
	if len(p.Via) == 0 {
		return l.via
	}
	next := make(map[int64]*roaring64.Bitmap, len(l.via)+1)
	for id, users := range l.via {
		next[id] = users.Clone()
	}
	for id, provider := range p.Via {
		if next[provider] == nil {
			next[provider] = roaring64.New()
		}
		next[provider].Add(uint64(id))
	}
	return next
}

// tookParts encodes the users by provider.
func tookParts(via map[int64]*roaring64.Bitmap, sent *roaring64.Bitmap, done bool) (list []tookPart, err error) {
	for _, id := range slices.Sorted(maps.Keys(via)) {
		part := tookPart{provider: id, count: int32(via[id].GetCardinality())}
		if !done || via[id].GetCardinality() != sent.GetCardinality() {
			via[id].RunOptimize()
			if part.users, err = via[id].ToBytes(); err != nil {
				return nil, err
			}
		}
		list = append(list, part)
	}
	return list, nil
}

// providerArgs are the parameters of recordingProviders.
func providerArgs(list []checkpoint) pgx.StrictNamedArgs {
	var batches, ids []int64
	var users [][]byte
	var counts []int32
	for _, c := range list {
		for _, p := range c.providers {
			batches, ids, users, counts = append(batches, c.batch), append(ids, p.provider), append(users, p.users), append(counts, p.count)
		}
	}
	return pgx.StrictNamedArgs{"p_batches": batches, "p_ids": ids, "p_users": users, "p_counts": counts}
}

// loadProviders reads the users whose messages each provider accepted.
func (l *lease) loadProviders(ctx context.Context) error {
	rows, err := l.db.Pool.Query(ctx, `select provider_id, users from batch_providers where batch_id = $1`, l.batch.ID)
	if err != nil {
		return pg.Translate(err)
	}
	l.via, err = usersByProvider(rows, l.sent)
	return pg.Translate(err)
}

// usersByProvider reads rows of providers and sets of users. A provider without a set accepted
// all sent messages.
func usersByProvider(rows pgx.Rows, sent *roaring64.Bitmap) (map[int64]*roaring64.Bitmap, error) {
	via := map[int64]*roaring64.Bitmap{}
	var provider int64
	var raw []byte
	_, err := pgx.ForEachRow(rows, []any{&provider, &raw}, func() (err error) {
		if raw == nil {
			via[provider] = sent.Clone()
			return nil
		}
		via[provider], err = pg.DecodeSet(raw)
		return err
	})
	return via, err
}

// providerOf returns a function that returns the name of the provider that accepted the
// message to a user; empty = the environment's provider.
func providerOf(ctx context.Context, tx pgx.Tx, batch int64, sent *roaring64.Bitmap) (func(user.ID) string, error) {
	rows := pg.Rows(ctx, tx, `select b.provider_id, b.users, p.name from batch_providers b join providers p on p.id = b.provider_id where b.batch_id = $1`, batch)
	names := map[string]*roaring64.Bitmap{}
	var id int64
	var raw []byte
	var name string
	_, err := pgx.ForEachRow(rows, []any{&id, &raw, &name}, func() error {
		users := sent
		if raw != nil {
			set, err := pg.DecodeSet(raw)
			if err != nil {
				return err
			}
			users = set
		}
		if names[name] != nil { // two of one name
			users = roaring64.Or(names[name], users)
		}
		names[name] = users
		return nil
	})
	return func(id user.ID) string {
		for name, users := range names {
			if users.Contains(uint64(id)) {
				return name
			}
		}
		return ""
	}, err
}
