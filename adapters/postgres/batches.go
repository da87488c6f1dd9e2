package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/user"
)

// Batches keeps batches and the outcomes of their recipients.
type Batches struct{ *DB }

// NewBatches returns the batch store of db.
func NewBatches(db *DB) Batches { return Batches{db} }

// encodeSet returns ascending ids as a roaring bitmap (64 bit, portable format).
func encodeSet(ids []user.ID) ([]byte, error) {
	set := roaring64.New()
	for _, id := range ids {
		set.Add(uint64(id))
	}
	set.RunOptimize()
	return set.ToBytes()
}

func decodeSet(b []byte) (*roaring64.Bitmap, error) {
	set := roaring64.New()
	if len(b) == 0 {
		return set, nil
	}
	return set, set.UnmarshalBinary(b)
}

func idsOf(set *roaring64.Bitmap) []user.ID {
	ids := make([]user.ID, 0, set.GetCardinality())
	for it := set.Iterator(); it.HasNext(); {
		ids = append(ids, user.ID(it.Next()))
	}
	return ids
}

// leaseSQL claims the most urgent ready batch of channel $1: reminders before
// campaigns, nearest deadline first. Batches of paused campaigns are held.
const leaseSQL = `
with next as (
    select id from batches where channel = $1 and state = 'ready' and not held and next_run_at <= clock_timestamp()
    order by priority, worthless_after, id limit 1 for update skip locked
), b as (
    update batches b set state = 'running', lease_token = $2, lease_until = clock_timestamp() + $3,
        started_at = coalesce(started_at, clock_timestamp()), runs = runs + 1
    from next where b.id = next.id returning b.*
)
select b.id, b.kind, b.owner_id, b.template_id, b.due_at, b.worthless_after, coalesce(b.stop_reason, ''), b.due, b.sent,
    b.due_count, b.runs, clock_timestamp(),
    coalesce(t.name, ''), coalesce(t.shop_number::text, ''), coalesce(t.claim_url, ''),
    coalesce(s.slot, 0), case when b.kind in ('campaign', 'test') then coalesce(t.opens_at, '0001-01-01')
        else coalesce(s.opens_at, t.opens_at, b.worthless_after) end,
    b.priority, coalesce(c.rate_per_second, 0), c.content, coalesce(h.name, ''), coalesce(c.ends_at, '0001-01-01'), coalesce(c.shop_number, 0),
    array(select u.id from users u where u.opt_outs <> 0 and u.id between b.from_user and b.to_user and u.opt_outs & (1 << b.channel) <> 0)
from b left join templates t on t.id = b.template_id left join slots s on b.kind = 'reminder' and s.id = b.owner_id
left join campaigns c on b.kind in ('campaign', 'test') and c.id = b.owner_id left join shops h on h.number = coalesce(c.shop_number, t.shop_number)`

// LeaseNext leases the most urgent ready batch, or returns [delivery.ErrNoWork].
func (s Batches) LeaseNext(ctx context.Context, c delivery.Channel, lasting time.Duration) (delivery.Lease, error) {
	l := &lease{db: s.DB, token: uuid.NewString(), lasting: lasting, outcomes: map[user.ID]delivery.Outcome{}}
	b := &l.batch
	b.Channel, b.Exceptions, b.OptedOut = c, map[user.ID]delivery.Exception{}, map[user.ID]bool{}
	var due, sent []byte
	var runs int
	var optedOut []int64
	var campaignShop int64
	err := s.pool.QueryRow(ctx, leaseSQL, c, l.token, lasting).Scan(&b.ID, &b.Subject.Kind, &b.Owner, &b.Subject.TemplateID,
		&b.Subject.DueAt, &b.WorthlessAfter, &b.StopReason, &due, &sent, &l.dueCount, &runs, &b.Now,
		&b.Subject.TemplateName, &b.Subject.ShopNumber, &b.Subject.ClaimURL, &b.Subject.Slot, &b.Subject.OpensAt,
		&b.Priority, &b.RatePerSecond, &b.Subject.Copy, &b.Subject.ShopName, &b.Subject.EndsAt, &campaignShop, &optedOut)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, delivery.ErrNoWork
	}
	if err != nil {
		return nil, translate(err)
	}
	b.Subject.OwnerID = b.Owner
	if b.Subject.ShopNumber == "" && campaignShop != 0 {
		b.Subject.ShopNumber = itoa(campaignShop)
	}
	if err := l.noticeDays(ctx); err != nil {
		return nil, err
	}
	for _, id := range optedOut {
		b.OptedOut[user.ID(id)] = true
	}
	if err := l.decode(due, sent); err != nil {
		return nil, err
	}
	if runs > 1 { // nobody can have an exception before the first run
		err = l.loadExceptions(ctx)
	}
	return l, err
}

// lease is the exclusive right to a batch: every write is fenced by its token.
type lease struct {
	db       *DB
	token    string
	lasting  time.Duration
	batch    delivery.Batch
	dueCount int
	sent     *roaring64.Bitmap
	outcomes map[user.ID]delivery.Outcome // of all exception rows
}

func (l *lease) decode(due, sent []byte) (err error) {
	left, err := decodeSet(due)
	if err != nil {
		return err
	}
	if l.sent, err = decodeSet(sent); err != nil {
		return err
	}
	left.AndNot(l.sent)
	l.batch.Left = idsOf(left)
	return nil
}

func (l *lease) loadExceptions(ctx context.Context) error {
	rows, err := l.db.pool.Query(ctx, `select user_id, outcome, reason, detail, fingerprint, attempts,
		coalesce(next_retry_at, '0001-01-01'), first_at, last_at from exceptions where batch_id = $1`, l.batch.ID)
	if err != nil {
		return translate(err)
	}
	var e delivery.Exception
	_, err = pgx.ForEachRow(rows, []any{&e.UserID, &e.Outcome, &e.Reason, &e.Detail, &e.Fingerprint, &e.Attempts,
		&e.NextRetryAt, &e.FirstAt, &e.LastAt}, func() error {
		l.batch.Exceptions[e.UserID], l.outcomes[e.UserID] = e, e.Outcome
		return nil
	})
	return translate(err)
}

// Batch returns the batch as it was leased; its worker owns the value.
func (l *lease) Batch() *delivery.Batch { return &l.batch }

// Extend keeps the lease for another while.
func (l *lease) Extend(ctx context.Context) error {
	tag, err := l.db.pool.Exec(ctx, `update batches set lease_until = clock_timestamp() + $3
		where id = $1 and lease_token = $2 and state = 'running'`, l.batch.ID, l.token, l.lasting)
	if err == nil && tag.RowsAffected() == 0 {
		return delivery.ErrLeaseLost
	}
	return translate(err)
}

// checkpointSQL records progress in one statement, and with it, when the
// batch ends, the event that says so. $1 batch, $2 token.
const checkpointSQL = `
with mine as (
    update batches set sent = $3, sent_count = $4, skipped_count = $5, expired_count = $6, dead_count = $7, failed_count = $8,
        rest_outcome = nullif($9, ''), rest_reason = nullif($10, ''),
        state = case when $11 then 'done' when $12::timestamptz is not null then 'ready' else state end,
        next_run_at = coalesce($12, next_run_at),
        lease_until = case when $11 or $12::timestamptz is not null then null else clock_timestamp() + $13 end,
        lease_token = case when $11 or $12::timestamptz is not null then null else lease_token end,
        -- The first end counts: a batch whose dead letters are replayed was delivered then.
        finished_at = case when $11 then coalesce(finished_at, clock_timestamp()) else finished_at end,
        -- What is sent since the last checkpoint is as late as this one. One
        -- that is repeated, because its answer got lost, counts nothing.
        late[width_bucket(extract(epoch from clock_timestamp() - due_at)::float8, $25)] =
            coalesce(late[width_bucket(extract(epoch from clock_timestamp() - due_at)::float8, $25)], 0) + greatest(0, $4 - sent_count)
    where id = $1 and lease_token = $2 and state = 'running'
    returning id, channel, kind, owner_id, template_id, sent_count, coalesce(stop_reason, case when held then 'held' end) as stop_reason
), rows as (
    insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts, next_retry_at, first_at, last_at)
    select m.id, e.user_id, m.channel, e.outcome, e.reason, e.detail, e.fingerprint, e.attempts,
        nullif(e.next_retry_at, '0001-01-01'), e.first_at, e.last_at
    from mine m, unnest($14::bigint[], $15::text[], $16::text[], $17::text[], $18::text[], $19::int[], $20::timestamptz[],
        $21::timestamptz[], $22::timestamptz[])
        as e (user_id, outcome, reason, detail, fingerprint, attempts, next_retry_at, first_at, last_at)
    on conflict (batch_id, user_id) do update set outcome = excluded.outcome, reason = excluded.reason, detail = excluded.detail,
        fingerprint = excluded.fingerprint, attempts = excluded.attempts, next_retry_at = excluded.next_retry_at, last_at = excluded.last_at
), grouped as (
    insert into dead_letter_groups as g (channel, fingerprint, dead, first_at, last_at, sample)
    select m.channel, e.fingerprint, count(*), min(e.last_at), max(e.last_at), max(e.detail)
    from mine m, unnest($14::bigint[], $15::text[], $17::text[], $18::text[], $22::timestamptz[]) as e (user_id, outcome, detail, fingerprint, last_at)
    -- A checkpoint may be repeated whose answer got lost: whoever is dead is counted.
    where e.outcome = 'dead' and not exists (select from exceptions x where x.batch_id = m.id and x.user_id = e.user_id and x.outcome = 'dead')
    group by 1, 2 order by 1, 2
    on conflict (channel, fingerprint) do update set dead = g.dead + excluded.dead, last_at = excluded.last_at, sample = excluded.sample
), announced as (
    insert into outbox (topic, payload, trace)
    select $23, jsonb_build_object('batch_id', id::text, 'kind', kind, 'owner_id', owner_id::text, 'template_id', template_id::text,
        'channel', channel, 'sent', sent_count, 'at', clock_timestamp()), $24
    from mine where $11
)
select coalesce(stop_reason, '') from mine`

// Checkpoint records progress durably; see [delivery.Lease].
func (l *lease) Checkpoint(ctx context.Context, p delivery.Progress) (stop string, err error) {
	sent := l.sent.Clone()
	for _, id := range p.Sent {
		sent.Add(uint64(id))
	}
	outcomes := l.outcomesWith(p)
	counts := tally(outcomes, sent.GetCardinality(), l.dueCount, p)
	sent.RunOptimize()
	encoded, err := sent.ToBytes()
	if err != nil {
		return "", err
	}
	var until *time.Time
	if !p.ReleaseUntil.IsZero() {
		until = &p.ReleaseUntil
	}
	args := []any{l.batch.ID, l.token, encoded, counts.sent, counts.skipped, counts.expired, counts.dead, counts.failed,
		string(p.Rest), p.RestReason, p.Done, until, l.lasting}
	args = append(append(args, exceptionColumns(p.Exceptions)...), event.BatchFinished, traceOf(ctx), latenessSeconds())
	err = l.db.pool.QueryRow(ctx, checkpointSQL, args...).Scan(&stop)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", l.lostOrRecorded(ctx, p, counts)
	}
	if err != nil {
		return "", translate(err)
	}
	l.sent, l.outcomes = sent, outcomes
	return stop, nil
}

// lostOrRecorded tells a lost lease from a last checkpoint that was committed
// although its answer never arrived and that is now being repeated.
func (l *lease) lostOrRecorded(ctx context.Context, p delivery.Progress, c tallied) error {
	if !p.Done {
		return delivery.ErrLeaseLost
	}
	var recorded bool
	err := l.db.pool.QueryRow(ctx, `select exists (select from batches where id = $1 and state = 'done' and sent_count = $2
		and skipped_count = $3 and expired_count = $4 and dead_count = $5)`,
		l.batch.ID, c.sent, c.skipped, c.expired, c.dead).Scan(&recorded)
	if err == nil && !recorded {
		return delivery.ErrLeaseLost
	}
	return translate(err)
}

func (l *lease) outcomesWith(p delivery.Progress) map[user.ID]delivery.Outcome {
	if len(p.Exceptions) == 0 {
		return l.outcomes
	}
	next := make(map[user.ID]delivery.Outcome, len(l.outcomes)+len(p.Exceptions))
	for id, o := range l.outcomes {
		next[id] = o
	}
	for _, e := range p.Exceptions {
		next[e.UserID] = e.Outcome
	}
	return next
}

type tallied struct{ sent, skipped, expired, dead, failed int }

// tally counts the outcomes; the rest, if it has one, is whoever is left.
func tally(outcomes map[user.ID]delivery.Outcome, sent uint64, due int, p delivery.Progress) tallied {
	t := tallied{sent: int(sent)}
	for _, o := range outcomes {
		switch o {
		case delivery.Skipped:
			t.skipped++
		case delivery.Expired:
			t.expired++
		case delivery.Dead, delivery.Discarded:
			t.dead++
		case delivery.Failed:
			t.failed++
		}
	}
	rest := due - t.sent - t.skipped - t.expired - t.dead - t.failed
	switch p.Rest {
	case delivery.Skipped:
		t.skipped += rest
	case delivery.Expired:
		t.expired += rest
	}
	return t
}

func exceptionColumns(es []delivery.Exception) []any {
	n := len(es)
	users, outcomes, reasons := make([]int64, n), make([]string, n), make([]string, n)
	details, prints, attempts := make([]string, n), make([]string, n), make([]int32, n)
	next, first, last := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
	for i, e := range es {
		users[i], outcomes[i], reasons[i] = int64(e.UserID), string(e.Outcome), e.Reason
		details[i], prints[i], attempts[i] = e.Detail, e.Fingerprint, int32(e.Attempts)
		next[i], first[i], last[i] = e.NextRetryAt, e.FirstAt, e.LastAt
	}
	return []any{users, outcomes, reasons, details, prints, attempts, next, first, last}
}
