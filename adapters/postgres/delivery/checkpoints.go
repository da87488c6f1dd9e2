package delivery

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// A checkpoint is the progress of one batch that one statement records.
type checkpoint struct {
	batch  int64
	token  string
	sent   []byte
	counts tallied
	delivery.Progress
	lasting time.Duration
	trace   string
	// journalled says that the batch has accepted messages of its own.
	journalled bool
	// providers are the providers that accepted messages of the batch.
	providers []tookPart
	// slot is the slot of the reminder; 0 = the batch is no reminder.
	slot int
}

// checkpointAnswer is the result of a checkpoint. recorded is false if the lease is no longer
// held. stop is the reason to stop the batch.
type checkpointAnswer struct {
	recorded bool
	stop     string
}

// checkpointParts are the optional parts of a checkpoint's statement. Most checkpoints have
// none.
type checkpointParts struct{ exceptions, accepted, providers, consents bool }

// checkpointStatements return the id of each batch whose lease is still held, and the reason
// to stop the batch, empty if the batch continues.
var checkpointStatements = func() map[checkpointParts]string {
	all := map[checkpointParts]string{}
	for i := range 16 {
		p := checkpointParts{i&1 != 0, i&2 != 0, i&4 != 0, i&8 != 0}
		sql := `with ` + recordingBatches
		for _, part := range []struct {
			has bool
			sql string
		}{{p.exceptions, recordingExceptions}, {p.accepted, removingAccepted}, {p.providers, recordingProviders}, {p.consents, removingConsents}} {
			if part.has {
				sql += ", " + part.sql
			}
		}
		all[p] = sql + checkpointAnswers
	}
	return all
}()

const checkpointAnswers = `
select id, coalesce(stop_reason, '') from mine`

// recordingBatches defines mine, the recorded batches. One statement records any number of
// batches and, when a batch ends, its event. Rows are locked in the order of their ids. The
// arrays have one element for each batch.
//
// A batch has a token only while it is running, so the state is not a condition. With the
// state the planner would use the index of running batches. That index keeps every batch that
// ever ran until a vacuum, so the search would get slower with every finished batch. A lease
// that still lasts long enough is not extended: changing an indexed column would add new
// entries to all indexes of the row.
//
// held carries the arguments of a batch together with its row: a join of arguments and rows
// would copy the sets of all batches for each batch.
const recordingBatches = `held as (
    -- How late it is, is asked once per batch: the clock must not pass the edge of a step between reading a count and writing it.
    select g.*, width_bucket(extract(epoch from clock_timestamp() - greatest(b.due_at, b.planned_at))::float8, @lateness_steps) as step
    from (select * from unnest(@ids::bigint[], @tokens::uuid[], @sent::bytea[], @sent_counts::int[], @skipped_counts::int[],
        @expired_counts::int[], @dead_counts::int[], @failed_counts::int[], @rest_outcomes::text[], @rest_reasons::text[],
        @done::bool[], @until::timestamptz[], @lasting::interval[], @traces::text[])
        as g (id, token, sent, sent_count, skipped_count, expired_count, dead_count, failed_count, rest_outcome, rest_reason, done, until, lasting, trace) order by id) g
        cross join lateral (select * from batches where id = g.id limit 1 for update) b
    where b.lease_token = g.token
), mine as (
    update batches b set sent = g.sent, sent_count = g.sent_count, skipped_count = g.skipped_count, expired_count = g.expired_count,
        dead_count = g.dead_count, failed_count = g.failed_count, rest_outcome = nullif(g.rest_outcome, ''), rest_reason = nullif(g.rest_reason, ''),
        state = case when g.done then 'done' when g.until is not null then 'ready' else b.state end,
        next_run_at = coalesce(g.until, b.next_run_at),
        lease_until = case when g.done or g.until is not null then null
            when b.lease_until > clock_timestamp() + g.lasting / 2 then b.lease_until
            else clock_timestamp() + g.lasting end,
        lease_token = case when g.done or g.until is not null then null else b.lease_token end,
        -- The first end counts: a batch whose dead letters are replayed was delivered then.
        finished_at = case when g.done then coalesce(b.finished_at, clock_timestamp()) else b.finished_at end,
        -- What is sent since the last checkpoint is as late as this one. One
        -- that is repeated, because its answer got lost, counts nothing.
        late[g.step] = coalesce(b.late[g.step], 0) + greatest(0, g.sent_count - b.sent_count)
    from held g where b.id = g.id and b.lease_token = g.token
    returning b.id, b.channel, b.kind, b.owner_id, b.template_id, b.sent_count, b.from_user, b.to_user, g.done, g.trace,
        coalesce(b.stop_reason, case when b.held then 'held' end) as stop_reason
), announced as (
    insert into outbox (topic, payload, trace)
    select @topic, jsonb_build_object('batch_id', id::text, 'kind', kind, 'owner_id', owner_id::text, 'template_id', template_id::text,
        'channel', channel, 'sent', sent_count, 'from_user', from_user::text, 'to_user', to_user::text,
        'at', clock_timestamp()), trace
    from mine where done
)`

// recordingExceptions records the exceptions of mine. All batches have the same channel. The
// arrays have one element for each exception.
const recordingExceptions = `told as (
    select (select channel from mine limit 1) as channel, e.* from unnest(@e_batches::bigint[], @e_users::bigint[], @e_outcomes::text[], @e_reasons::text[],
        @e_details::text[], @e_fingerprints::text[], @e_attempts::int[],
        @e_next::timestamptz[], @e_first::timestamptz[], @e_last::timestamptz[], @e_providers::bigint[])
        as e (batch_id, user_id, outcome, reason, detail, fingerprint, attempts, next_retry_at, first_at, last_at, provider_id)
    where e.batch_id = any(array(select id from mine)) -- a join would look at all exceptions for each batch
), rows as (
    insert into exceptions (batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts, next_retry_at, first_at, last_at, provider_id)
    select batch_id, user_id, channel, outcome, reason, detail, fingerprint, attempts, nullif(next_retry_at, '0001-01-01'), first_at, last_at, provider_id from told
    on conflict (batch_id, user_id) do update set outcome = excluded.outcome, reason = excluded.reason, detail = excluded.detail,
        fingerprint = excluded.fingerprint, attempts = excluded.attempts, next_retry_at = excluded.next_retry_at, last_at = excluded.last_at,
        provider_id = excluded.provider_id
), grouped as (
    insert into dead_letter_groups as g (channel, fingerprint, dead, first_at, last_at, sample)
    select channel, fingerprint, count(*), min(last_at), max(last_at), max(detail)
    from told e
    -- A checkpoint whose answer was lost may be repeated: its dead recipients are counted already.
    where outcome = 'dead' and not exists (select from exceptions x where x.batch_id = e.batch_id and x.user_id = e.user_id and x.outcome = 'dead')
    group by 1, 2 order by 1, 2
    -- Batches are stored in another order than they were delivered in.
    on conflict (channel, fingerprint) do update set dead = g.dead + excluded.dead, sample = excluded.sample,
        first_at = least(g.first_at, excluded.first_at), last_at = greatest(g.last_at, excluded.last_at)
)`

// removingAccepted removes the individually recorded messages of mine: the set of sent
// messages now contains them.
const removingAccepted = `away as (
    delete from accepted_messages a using mine m where m.done and a.batch_id = m.id
)`

// checkpoints records the progress of the leases. The answers are in the order of list, which
// contains each batch at most once.
func (s Batches) checkpoints(ctx context.Context, list []checkpoint) ([]checkpointAnswer, error) {
	has := func(one func(c checkpoint) bool) bool { return slices.ContainsFunc(list, one) }
	parts := checkpointParts{
		exceptions: has(func(c checkpoint) bool { return len(c.Exceptions) > 0 }),
		accepted:   has(func(c checkpoint) bool { return c.journalled && c.Done }),
		providers:  has(func(c checkpoint) bool { return len(c.providers) > 0 }),
		consents:   has(func(c checkpoint) bool { return len(c.ConsentsUsed) > 0 }),
	}
	sql, args := checkpointStatements[parts], checkpointArgs(list)
	if parts.exceptions {
		maps.Copy(args, exceptionArgs(list))
	}
	if parts.providers {
		maps.Copy(args, providerArgs(list))
	}
	if parts.consents {
		maps.Copy(args, consentArgs(list))
	}
	at := make(map[int64]int, len(list))
	for i, c := range list {
		at[c.batch] = i
	}
	answers := make([]checkpointAnswer, len(list))
	read := func(rows pgx.Rows) error {
		for rows.Next() {
			var id int64
			a := checkpointAnswer{recorded: true}
			if err := rows.Scan(&id, &a.stop); err != nil {
				return err
			}
			answers[at[id]] = a
		}
		return rows.Err()
	}
	return answers, killpoint.Around("batches.checkpoint", func() error { return s.PlannedOnce(ctx, sql, []any{args}, read) })
}

func (s Batches) checkpointAlone(ctx context.Context, c checkpoint) (checkpointAnswer, error) {
	answers, err := s.checkpoints(ctx, []checkpoint{c})
	if err != nil {
		return checkpointAnswer{}, pg.Translate(err)
	}
	return answers[0], nil
}

// checkpointArgs are the parameters of recordingBatches.
func checkpointArgs(list []checkpoint) pgx.StrictNamedArgs {
	n := len(list)
	ids, tokens, sent := make([]int64, n), make([]string, n), make([][]byte, n)
	var counts [5][]int32
	for i := range counts {
		counts[i] = make([]int32, n)
	}
	rests, reasons, done := make([]string, n), make([]string, n), make([]bool, n)
	until, lasting, traces := make([]*time.Time, n), make([]time.Duration, n), make([]string, n)
	for i, c := range list {
		ids[i], tokens[i], sent[i] = c.batch, c.token, c.sent
		for j, v := range []int{c.counts.sent, c.counts.skipped, c.counts.expired, c.counts.dead, c.counts.failed} {
			counts[j][i] = int32(v)
		}
		rests[i], reasons[i], done[i], lasting[i], traces[i] = string(c.Rest), c.RestReason, c.Done, c.lasting, c.trace
		if !c.ReleaseUntil.IsZero() {
			until[i] = &c.ReleaseUntil
		}
	}
	return pgx.StrictNamedArgs{"ids": ids, "tokens": tokens, "sent": sent, "sent_counts": counts[0], "skipped_counts": counts[1],
		"expired_counts": counts[2], "dead_counts": counts[3], "failed_counts": counts[4], "rest_outcomes": rests,
		"rest_reasons": reasons, "done": done, "until": until, "lasting": lasting, "traces": traces,
		"topic": event.BatchFinished, "lateness_steps": pg.LatenessSeconds()}
}

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
	via := l.viaWith(p)
	took, err := tookParts(via, sent, p.Done)
	if err != nil {
		return "", err
	}
	answer, err := l.save(ctx, checkpoint{batch: l.batch.ID, token: l.token, sent: encoded, counts: counts, Progress: p,
		lasting: l.lasting, trace: pg.TraceOf(ctx), journalled: l.journalled.Load(), providers: took, slot: l.batch.Subject.Slot})
	switch {
	case err != nil:
		return "", err
	case !answer.recorded:
		return "", l.lostOrRecorded(ctx, p, counts)
	}
	l.sent, l.outcomes, l.via = sent, outcomes, via
	return answer.stop, nil
}

// lostOrRecorded distinguishes two cases: the lease was lost, or this is the repetition of a
// last checkpoint that was committed and whose answer was lost.
func (l *lease) lostOrRecorded(ctx context.Context, p delivery.Progress, c tallied) error {
	if !p.Done {
		return delivery.ErrLeaseLost
	}
	var recorded bool
	err := l.db.Pool.QueryRow(ctx, `select exists (select from batches where id = $1 and state = 'done' and sent_count = $2
		and skipped_count = $3 and expired_count = $4 and dead_count = $5)`,
		l.batch.ID, c.sent, c.skipped, c.expired, c.dead).Scan(&recorded)
	if err == nil && !recorded {
		return delivery.ErrLeaseLost
	}
	return pg.Translate(err)
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

// tally counts the outcomes; the outcome p.Rest, if set, applies to all other recipients.
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
