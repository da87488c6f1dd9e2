package work

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/killpoint"
)

// IdempotencyKeyLife is how long the answer to a request is kept.
const IdempotencyKeyLife = 24 * time.Hour

// A Recorded is the idempotency record that a request finds when it arrives. Exactly one of four
// cases holds: Answered, Conflict, Busy, or this request is to be executed.
type Recorded struct {
	// Answered says that the first request was answered. The answer is Status, Header and Body,
	// or, if Found is set, it follows from Known and Found.
	Answered bool
	Status   int
	Header   http.Header
	Body     []byte
	// Known and Found were stored by the transaction that executed the request: Known is the
	// state before, Found is the decision.
	Known []byte
	Found []int64
	// Conflict says that the key belongs to another request.
	Conflict bool
	// Busy says that the first request is still being answered.
	Busy bool
	// Again says that an earlier attempt began and never ended. That attempt may or may not have
	// had its effect.
	Again bool
	// Attempt numbers the attempt that is to be executed.
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

// ErrAttemptLost is returned to an attempt that was silent for longer than its lease: another
// attempt has taken the key, and will answer.
var ErrAttemptLost = errors.New("another attempt has the idempotency key")

// Idempotency stores the answers to requests with an idempotency key. Keys are taken, and
// answers are stored, by group commit; see [pg.Committer].
type Idempotency struct {
	*pg.DB
	begin  *pg.Committer[keyOf, begunKey, takenKey]
	finish *pg.Committer[keyOf, finishedKey, bool]
}

// keyOf identifies a key: two requests with one key are never in the same group.
type keyOf struct{ actor, key string }

// A begunKey is the request for a key.
type begunKey struct {
	IdempotencyRequest
	lease time.Duration
}

// A takenKey is the answer to a begunKey: whether the key was taken.
type takenKey struct {
	taken, again bool
	attempt      int64
}

// A finishedKey keeps an answer.
type finishedKey struct {
	IdempotencyRequest
	status       int
	header, body []byte
}

// NewIdempotency starts the groups of the idempotency keys of db.
func NewIdempotency(db *pg.DB) Idempotency {
	s := Idempotency{DB: db}
	cfg := pg.Grouping{Timeout: 5 * time.Second}.Config(db)
	cfg.LockWait, cfg.Name = pg.LockWait, "idempotency key"
	s.begin = pg.NewFairCommitter(cfg, func(b begunKey) keyOf { return keyOf{b.Actor, b.Key} }, func(b begunKey) int64 { return laneOf(b.Actor) }, s.takeAll)
	s.finish = pg.NewFairCommitter(cfg, func(f finishedKey) keyOf { return keyOf{f.Actor, f.Key} }, func(f finishedKey) int64 { return laneOf(f.Actor) }, s.finishAll)
	return s
}

var laneSeed = maphash.MakeSeed()

// laneOf returns the lane of an actor: groups of one lane do not lock rows of the actor's keys
// concurrently.
func laneOf(actor string) int64 { return int64(maphash.String(laneSeed, actor)) }

// Close answers everything that was accepted and stops.
func (s Idempotency) Close() {
	s.begin.Close()
	s.finish.Close()
}

// Begin takes the key for lease. After lease the attempt counts as dead unless it was renewed.
// If the key cannot be taken, Begin returns the stored request that prevents that.
func (s Idempotency) Begin(ctx context.Context, r IdempotencyRequest, lease time.Duration) (Recorded, error) {
	for {
		mine, taken, err := s.take(ctx, r, lease)
		if err != nil || taken {
			return mine, pg.Translate(err)
		}
		found, err := s.look(ctx, r)
		if !errors.Is(err, pgx.ErrNoRows) {
			return found, pg.Translate(err)
		}
		// It was released or removed in between: try to take it again.
		if ctx.Err() != nil {
			return Recorded{}, pg.Translate(ctx.Err())
		}
	}
}

func (s Idempotency) take(ctx context.Context, r IdempotencyRequest, lease time.Duration) (mine Recorded, taken bool, err error) {
	t, err := s.begin.Do(ctx, begunKey{r, lease})
	return Recorded{Again: t.again, Attempt: t.attempt}, t.taken, err
}

// takeKeysSQL takes keys that are free, expired, or held by an attempt that counts as dead. It
// returns the taken keys. $1 actors, $2 keys, $3 hashes, $4 leases, $5 the life of a key.
const takeKeysSQL = `
with asked as (
    select * from unnest($1::text[], $2::text[], $3::bytea[], $4::interval[]) with ordinality as a (actor, key, hash, lease, n)
), taken as (
    insert into idempotency_keys as k (actor, key, request_hash, locked_until)
    select actor, key, hash, clock_timestamp() + lease from asked order by actor, key
    on conflict (actor, key) do update
        -- Its life is over: as if it had never been.
        set request_hash = excluded.request_hash, locked_until = excluded.locked_until, status = null, header = null, body = null,
            known = null, found = null, attempt = k.attempt + 1, created_at = case when k.created_at < now() - $5::interval then now() else k.created_at end
        where k.created_at < now() - $5::interval
            or (k.status is null and k.locked_until <= clock_timestamp() and k.request_hash = excluded.request_hash)
    returning actor, key, created_at < now() as again, attempt
)
select a.n, t.again, t.attempt from asked a join taken t using (actor, key)`

func (s Idempotency) takeAll(ctx context.Context, group []begunKey) ([]takenKey, error) {
	actors, keys, hashes, leases := make([]string, len(group)), make([]string, len(group)), make([][]byte, len(group)), make([]time.Duration, len(group))
	for i, b := range group {
		actors[i], keys[i], hashes[i], leases[i] = b.Actor, b.Key, b.Hash, b.lease
	}
	answers := make([]takenKey, len(group))
	err := killpoint.Around("idempotency.take", func() error {
		return s.PlannedOnce(ctx, takeKeysSQL, []any{actors, keys, hashes, leases, IdempotencyKeyLife}, func(rows pgx.Rows) error {
			for rows.Next() {
				var n int64
				t := takenKey{taken: true}
				if err := rows.Scan(&n, &t.again, &t.attempt); err != nil {
					return err
				}
				answers[n-1] = t
			}
			return rows.Err()
		})
	})
	return answers, err
}

func (s Idempotency) look(ctx context.Context, r IdempotencyRequest) (Recorded, error) {
	var same bool
	var status *int
	var header, body, known []byte
	var decision []int64
	err := s.Pool.QueryRow(ctx, `select request_hash = $3, status, header, body, known, found from idempotency_keys
		where actor = $1 and key = $2`, r.Actor, r.Key, r.Hash).Scan(&same, &status, &header, &body, &known, &decision)
	switch {
	case err != nil:
		return Recorded{}, err
	case !same:
		return Recorded{Conflict: true}, nil
	case decision != nil:
		return Recorded{Answered: true, Known: known, Found: decision}, nil
	case status == nil:
		return Recorded{Busy: true}, nil
	}
	found := Recorded{Answered: true, Status: *status, Body: body}
	return found, json.Unmarshal(header, &found.Header)
}

// unfinished selects the key of an attempt that no other attempt has replaced. A key that was
// stored together with its decision never had an attempt.
const unfinished = ` where actor = $1 and key = $2 and request_hash = $3 and attempt = $4 and status is null and locked_until < 'infinity'`

// Renew extends the attempt's lease to lease from now. It returns [ErrAttemptLost] if the
// attempt has ended or was taken over.
func (s Idempotency) Renew(ctx context.Context, r IdempotencyRequest, lease time.Duration) error {
	tag, err := s.Pool.Exec(ctx, `update idempotency_keys set locked_until = clock_timestamp() + $5::interval`+unfinished,
		r.Actor, r.Key, r.Hash, r.Attempt, lease)
	return held(tag.RowsAffected(), err)
}

// Finish stores the answer; the first answer to a key is kept. It returns [ErrAttemptLost] if
// another attempt's answer is kept.
func (s Idempotency) Finish(ctx context.Context, r IdempotencyRequest, a Recorded) error {
	header, err := json.Marshal(a.Header)
	if err != nil {
		return err
	}
	kept, err := s.finish.Do(ctx, finishedKey{r, a.Status, header, a.Body})
	if err == nil && !kept {
		return ErrAttemptLost
	}
	return pg.Translate(err)
}

// finishKeysSQL stores answers. It returns the answers that are the first answers to their keys.
// $1 actors, $2 keys, $3 hashes, $4 attempts, $5 to $7 status, headers and bodies.
const finishKeysSQL = `
with ended as (
    select * from unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::int[], $6::text[], $7::bytea[]) with ordinality
        as a (actor, key, hash, attempt, status, header, body, n)
)
update idempotency_keys k set status = e.status, header = e.header::jsonb, body = e.body
from ended e
where k.actor = e.actor and k.key = e.key and k.request_hash = e.hash and k.attempt = e.attempt and k.status is null
    and k.locked_until < 'infinity'
returning e.n`

func (s Idempotency) finishAll(ctx context.Context, group []finishedKey) ([]bool, error) {
	n := len(group)
	actors, keys, hashes, attempts := make([]string, n), make([]string, n), make([][]byte, n), make([]int64, n)
	statuses, headers, bodies := make([]int32, n), make([]string, n), make([][]byte, n)
	for i, f := range group {
		actors[i], keys[i], hashes[i], attempts[i] = f.Actor, f.Key, f.Hash, f.Attempt
		statuses[i], headers[i], bodies[i] = int32(f.status), string(f.header), f.body
	}
	kept := make([]bool, n)
	err := killpoint.Around("idempotency.finish", func() error {
		return s.PlannedOnce(ctx, finishKeysSQL, []any{actors, keys, hashes, attempts, statuses, headers, bodies}, func(rows pgx.Rows) error {
			for rows.Next() {
				var n int64
				if err := rows.Scan(&n); err != nil {
					return err
				}
				kept[n-1] = true
			}
			return rows.Err()
		})
	})
	return kept, err
}

// Fail ends an attempt without an answer, so that the next attempt need not wait. The key is
// kept, because the attempt may have had its effect. Fail returns [ErrAttemptLost] if another
// attempt is already under way.
func (s Idempotency) Fail(ctx context.Context, r IdempotencyRequest) error {
	// The number is raised lest a renewal that is under way come after this.
	tag, err := s.Pool.Exec(ctx, `update idempotency_keys set locked_until = clock_timestamp(), attempt = attempt + 1`+unfinished,
		r.Actor, r.Key, r.Hash, r.Attempt)
	return held(tag.RowsAffected(), err)
}

func held(rows int64, err error) error {
	if err == nil && rows == 0 {
		return ErrAttemptLost
	}
	return pg.Translate(err)
}
