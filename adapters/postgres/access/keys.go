package access

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/staff"
)

const keyColumns = `id, name, prefix, scopes, created_by, created_at, expires_at, last_used_at, revoked_at`

func scanKey(row pgx.CollectableRow) (staff.Key, error) {
	var k staff.Key
	err := row.Scan(&k.ID, &k.Name, &k.Prefix, &k.Scopes, &k.CreatedBy, &k.CreatedAt, &k.ExpiresAt, &k.LastUsedAt, &k.RevokedAt)
	return k, err
}

// Key returns the key stored under hash, usable or not, or
// [staff.ErrKeyNotFound].
func (s Staff) Key(ctx context.Context, hash []byte) (staff.Key, error) {
	return pg.One(ctx, s.Pool, scanKey, staff.ErrKeyNotFound, `select `+keyColumns+` from api_keys where hash = $1`, hash)
}

// TouchKey records that a key was used, at most once a minute: a busy key must not write a row
// per request.
func (s Staff) TouchKey(ctx context.Context, id int64) error {
	_, err := s.Pool.Exec(ctx, `update api_keys set last_used_at = now()
		where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')`, id)
	return pg.Translate(err)
}

// Keys lists every key, the newest first.
func (s Staff) Keys(ctx context.Context) ([]staff.Key, error) {
	return pg.Collect(ctx, s.Pool, scanKey, `select `+keyColumns+` from api_keys order by id desc`)
}

// InsertKey stores a new key, once per request key. The request key is stored in the table of
// the API's idempotency keys, for the same time; the names of the API's callers are different.
func (s Staff) InsertKey(ctx context.Context, k staff.Key, hash []byte, requestKey string, e staff.Entry) (staff.Key, error) {
	err := s.Tx(ctx, func(tx pgx.Tx) error {
		if requestKey != "" {
			if err := pg.Change(ctx, tx, staff.ErrKeyRepeated, `insert into idempotency_keys (actor, key, request_hash, status, locked_until) values ($1, $2, '', 0, now())
				on conflict (actor, key) do nothing`, e.Actor.Label, "key.create:"+requestKey); err != nil {
				return err
			}
		}
		_, err := insertKey(ctx, tx, &k, hash, e)
		return err
	})
	return k, err
}

// EnsureKey stores a key unless a key with the same hash exists.
func (s Staff) EnsureKey(ctx context.Context, k staff.Key, hash []byte, e staff.Entry) (created bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		created, err = insertKey(ctx, tx, &k, hash, e)
		return err
	})
	return created && err == nil, err
}

func insertKey(ctx context.Context, tx pgx.Tx, k *staff.Key, hash []byte, e staff.Entry) (created bool, err error) {
	err = tx.QueryRow(ctx, `
		insert into api_keys (name, prefix, hash, scopes, created_by, expires_at) values ($1, $2, $3, $4, $5, $6)
		on conflict (hash) do nothing returning id, created_at`,
		k.Name, k.Prefix, hash, k.Scopes, k.CreatedBy, k.ExpiresAt).Scan(&k.ID, &k.CreatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	e.ObjectID = strconv.FormatInt(k.ID, 10)
	return true, pg.InsertAudit(ctx, tx, e)
}

// RevokeKey returns [staff.ErrKeyNotFound] if there is no such key. If the key was already
// revoked, RevokeKey keeps the instant of revocation and records nothing.
func (s Staff) RevokeKey(ctx context.Context, id int64, at time.Time, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		var revoked bool
		err := tx.QueryRow(ctx, `select revoked_at is not null from api_keys where id = $1 for update`, id).Scan(&revoked)
		if errors.Is(err, pgx.ErrNoRows) {
			return staff.ErrKeyNotFound
		}
		if err != nil || revoked {
			return err
		}
		if _, err := tx.Exec(ctx, `update api_keys set revoked_at = $2 where id = $1`, id, at); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}
