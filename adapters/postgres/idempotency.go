package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/killpoint"
)

// IdempotencyKeyLife is how long the answer to a request is kept.
const IdempotencyKeyLife = 24 * time.Hour

// A Recorded is what is known about an idempotency key when a request with
// it arrives. Exactly one of the four cases holds: Answered, Conflict, Busy,
// or this request is the one to be carried out.
type Recorded struct {
	// Answered says that the first request was answered with Status, Header
	// and Body.
	Answered bool
	Status   int
	Header   http.Header
	Body     []byte
	// Conflict says that the key belongs to another request.
	Conflict bool
	// Busy says that the first request is still being answered.
	Busy bool
	// Again says that an earlier attempt began and never ended; it may or may
	// not have had its effect.
	Again bool
	// Attempt numbers the attempt that is to be carried out.
	Attempt int64
}

// An IdempotencyRequest names a request that may come more than once.
type IdempotencyRequest struct {
	Actor string
	Key   string
	Hash  []byte // of everything that makes it the same request
	// Attempt is the number that Begin gave; it fences all that follows.
	Attempt int64
}

// ErrAttemptLost is returned to an attempt that was silent for longer than its
// lease: another one has taken the key, and answers.
var ErrAttemptLost = errors.New("another attempt has the idempotency key")

// Idempotency keeps the answers to requests that carry an idempotency key.
type Idempotency struct{ *DB }

// NewIdempotency returns the store of idempotency keys of db.
func NewIdempotency(db *DB) Idempotency { return Idempotency{db} }

// Begin takes the key for lease, after which the attempt counts as dead unless
// it was renewed, or tells what stands in the way.
func (s Idempotency) Begin(ctx context.Context, r IdempotencyRequest, lease time.Duration) (Recorded, error) {
	for {
		mine, taken, err := s.take(ctx, r, lease)
		if err != nil || taken {
			return mine, translate(err)
		}
		found, err := s.look(ctx, r)
		if !errors.Is(err, pgx.ErrNoRows) {
			return found, translate(err)
		}
		// It was released or removed in between: try to take it again.
		if ctx.Err() != nil {
			return Recorded{}, translate(ctx.Err())
		}
	}
}

func (s Idempotency) take(ctx context.Context, r IdempotencyRequest, lease time.Duration) (mine Recorded, taken bool, err error) {
	err = killpoint.Before("idempotency.take")
	if err != nil {
		return Recorded{}, false, err
	}
	err = s.pool.QueryRow(ctx, `
		insert into idempotency_keys as k (actor, key, request_hash, locked_until)
		values ($1, $2, $3, clock_timestamp() + $4::interval)
		on conflict (actor, key) do update
			-- Its life is over: as if it had never been.
			set request_hash = excluded.request_hash, locked_until = clock_timestamp() + $4::interval, status = null, header = null, body = null,
				attempt = k.attempt + 1, created_at = case when k.created_at < now() - $5::interval then now() else k.created_at end
			where k.created_at < now() - $5::interval
				or (k.status is null and k.locked_until <= clock_timestamp() and k.request_hash = excluded.request_hash)
		returning created_at < now(), attempt`,
		r.Actor, r.Key, r.Hash, lease, IdempotencyKeyLife).Scan(&mine.Again, &mine.Attempt)
	if errors.Is(err, pgx.ErrNoRows) {
		return Recorded{}, false, nil
	}
	if err == nil {
		err = killpoint.After("idempotency.take")
	}
	return mine, err == nil, err
}

func (s Idempotency) look(ctx context.Context, r IdempotencyRequest) (Recorded, error) {
	var same bool
	var status *int
	var header, body []byte
	err := s.pool.QueryRow(ctx, `select request_hash = $3, status, header, body from idempotency_keys
		where actor = $1 and key = $2`, r.Actor, r.Key, r.Hash).Scan(&same, &status, &header, &body)
	switch {
	case err != nil:
		return Recorded{}, err
	case !same:
		return Recorded{Conflict: true}, nil
	case status == nil:
		return Recorded{Busy: true}, nil
	}
	found := Recorded{Answered: true, Status: *status, Body: body}
	return found, json.Unmarshal(header, &found.Header)
}

// unfinished selects the key of an attempt that nobody has overtaken.
const unfinished = ` where actor = $1 and key = $2 and request_hash = $3 and attempt = $4 and status is null`

// Renew prolongs the attempt by lease from now. It returns [ErrAttemptLost] if
// it has ended or was taken over.
func (s Idempotency) Renew(ctx context.Context, r IdempotencyRequest, lease time.Duration) error {
	tag, err := s.pool.Exec(ctx, `update idempotency_keys set locked_until = clock_timestamp() + $5::interval`+unfinished,
		r.Actor, r.Key, r.Hash, r.Attempt, lease)
	return held(tag.RowsAffected(), err)
}

// Finish keeps the answer; the first answer to a key stays. It returns
// [ErrAttemptLost] if the answer will be another one's.
func (s Idempotency) Finish(ctx context.Context, r IdempotencyRequest, a Recorded) error {
	header, err := json.Marshal(a.Header)
	if err != nil {
		return err
	}
	var rows int64
	err = killpoint.Around("idempotency.finish", func() error {
		tag, err := s.pool.Exec(ctx, `update idempotency_keys set status = $5, header = $6, body = $7`+unfinished,
			r.Actor, r.Key, r.Hash, r.Attempt, a.Status, header, a.Body)
		rows = tag.RowsAffected()
		return err
	})
	return held(rows, err)
}

// Fail ends an attempt without an answer, so that the next one need not wait.
// The key stays, because the attempt may have had its effect. It returns
// [ErrAttemptLost] if another one is under way already.
func (s Idempotency) Fail(ctx context.Context, r IdempotencyRequest) error {
	// The number is raised lest a renewal that is under way come after this.
	tag, err := s.pool.Exec(ctx, `update idempotency_keys set locked_until = clock_timestamp(), attempt = attempt + 1`+unfinished,
		r.Actor, r.Key, r.Hash, r.Attempt)
	return held(tag.RowsAffected(), err)
}

func held(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrAttemptLost
	}
	return translate(err)
}
