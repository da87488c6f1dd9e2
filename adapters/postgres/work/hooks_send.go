package work

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event/hook"
	"dropbell/domain/staff"
)

// leaseHooksSQL leases due deliveries of endpoint @endpoint and returns them. While the circuit
// is open, one delivery is leased as a probe, and no further delivery is leased while that lease
// lasts.
const leaseHooksSQL = `
with e as (
    select id, failures from hook_endpoints
    where id = @endpoint and enabled and (held_until is null or held_until <= clock_timestamp()) for no key update
), busy as (
    select count(*) as n from hook_deliveries where endpoint_id = @endpoint and state = 'waiting' and lease_until > clock_timestamp()
), due as (
    select d.id from hook_deliveries d, e, busy
    where d.endpoint_id = e.id and d.state = 'waiting' and d.next_at <= statement_timestamp() and (d.lease_until is null or d.lease_until <= clock_timestamp())
    order by d.next_at, d.id
    limit (select case when e.failures >= @tolerated then 1 else greatest(0, @most - busy.n) end from e, busy) for update of d skip locked
), probing as (
    update hook_endpoints set held_until = clock_timestamp() + @lasting::interval
    where id = @endpoint and (select failures from e) >= @tolerated and exists (select from due)
), mine as (
    update hook_deliveries d set lease_token = @token, lease_until = clock_timestamp() + @lasting::interval from due where d.id = due.id
    returning d.id, d.event_id, d.attempts, d.next_at
)
select m.id, m.event_id, m.attempts, v.type, v.payload from mine m join hook_events v on v.id = m.event_id order by m.next_at, m.id`

// Lease leases due deliveries; see [hook.Outbound].
func (s Hooks) Lease(ctx context.Context, endpointID int64, limit int, lasting time.Duration) (l hook.Lease, err error) {
	l.Token = uuid.NewString()
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		rows := pg.Rows(ctx, tx, leaseHooksSQL, pgx.StrictNamedArgs{"endpoint": endpointID, "most": limit, "lasting": lasting, "token": l.Token,
			"tolerated": hook.Tolerated})
		var d hook.Due
		var payload string
		if _, err := pgx.ForEachRow(rows, []any{&d.ID, &d.EventID, &d.Attempts, &d.Type, &payload}, func() error {
			d.Payload = []byte(payload)
			l.Due = append(l.Due, d)
			return nil
		}); err != nil || len(l.Due) == 0 {
			return err
		}
		l.Endpoint, err = oneEndpoint(ctx, tx, `select `+endpointColumns+` from hook_endpoints e where id = $1`, endpointID)
		return err
	})
	return l, err
}

// recordHooksSQL records attempts of deliveries whose lease is @token, and returns how many
// succeeded and failed. A result that is recorded a second time finds no lease.
const recordHooksSQL = `
with given as (
    select * from unnest(@ids::bigint[], @attempts::int[], @ats::timestamptz[], @tooks::int[], @statuses::int[], @errors::text[], @responses::text[],
        @ok::bool[], @again::interval[]) as g (id, attempt, at, took_ms, status, error, response, ok, again)
), mine as (
    update hook_deliveries d set attempts = g.attempt, lease_token = null, lease_until = null,
        state = case when g.ok then 'delivered' when g.again is null then 'failed' else 'waiting' end,
        next_at = coalesce(clock_timestamp() + g.again, d.next_at),
        done_at = case when g.ok or g.again is null then clock_timestamp() end
    from given g where d.id = g.id and d.lease_token = @token returning g.*
), logged as (
    insert into hook_attempts (delivery_id, attempt, at, took_ms, status, error, response)
    select id, attempt, at, took_ms, status, error, response from mine on conflict do nothing
), counted as (
    insert into hook_hours as h (endpoint_id, hour, delivered, failed, took_ms)
    select @endpoint, date_trunc('hour', clock_timestamp()), count(*) filter (where ok), count(*) filter (where not ok), sum(took_ms) from mine having count(*) > 0
    on conflict (endpoint_id, hour) do update set delivered = h.delivered + excluded.delivered, failed = h.failed + excluded.failed, took_ms = h.took_ms + excluded.took_ms
)
select count(*) filter (where ok), count(*) filter (where not ok) from mine`

// Record stores results; see [hook.Outbound]. It locks the endpoint's row first, as leasing
// does.
func (s Hooks) Record(ctx context.Context, l hook.Lease, results []hook.Result, hold func(int, hook.Answer) time.Duration) (goesOn bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		e, err := oneEndpoint(ctx, tx, `select `+endpointColumns+` from hook_endpoints e where id = $1 for no key update`, l.Endpoint.ID)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // removed meanwhile, with its deliveries
		}
		if err != nil {
			return err
		}
		var succeeded, failed int
		if err := tx.QueryRow(ctx, recordHooksSQL, resultArgs(l, results)).Scan(&succeeded, &failed); err != nil {
			return err
		}
		goesOn, err = judge(ctx, tx, e, succeeded, failed, results, hold)
		return err
	})
	return goesOn, err
}

func resultArgs(l hook.Lease, results []hook.Result) pgx.StrictNamedArgs {
	n := len(results)
	ids, attempts, ats, tooks := make([]int64, n), make([]int32, n), make([]time.Time, n), make([]int32, n)
	statuses, errs, responses := make([]int32, n), make([]string, n), make([]string, n)
	ok, again := make([]bool, n), make([]*time.Duration, n)
	for i, r := range results {
		ids[i], attempts[i], ats[i], tooks[i] = r.DeliveryID, int32(r.Attempt), r.At, int32(r.Answer.Took.Milliseconds())
		statuses[i], errs[i], responses[i] = int32(r.Answer.Status), pg.Storable(r.Answer.Cause()), pg.Storable(r.Answer.Response)
		ok[i], again[i] = r.Answer.OK(), r.Again
	}
	return pgx.StrictNamedArgs{"token": l.Token, "endpoint": l.Endpoint.ID, "ids": ids, "attempts": attempts, "ats": ats, "tooks": tooks,
		"statuses": statuses, "errors": errs, "responses": responses, "ok": ok, "again": again}
}

// judge updates the endpoint's state after succeeded and failed attempts. It returns true if the
// endpoint stays enabled and is not paused.
func judge(ctx context.Context, tx pgx.Tx, e hook.Endpoint, succeeded, failed int, results []hook.Result, hold func(int, hook.Answer) time.Duration) (bool, error) {
	var last hook.Answer
	gone := false
	for _, r := range results {
		if !r.Answer.OK() {
			last, gone = r.Answer, gone || r.Answer.Gone()
		}
	}
	failures := 0
	if succeeded == 0 {
		failures = e.Failures + failed
	}
	var pause *time.Duration
	if d := hold(failures, last); failed > 0 && d > 0 {
		pause = &d
	}
	var why hook.Why
	err := tx.QueryRow(ctx, `
		update hook_endpoints e set failures = @failures,
			failing_since = case when @succeeded then null when @failed then coalesce(failing_since, clock_timestamp()) else failing_since end,
			held_until = case when @pause::interval is not null then clock_timestamp() + @pause::interval when @succeeded or @failed then null else held_until end,
			last_success_at = case when @succeeded then clock_timestamp() else last_success_at end,
			last_failure_at = case when @failed then clock_timestamp() else last_failure_at end,
			last_error = case when @failed then @error else last_error end,
			enabled = enabled and not (d.gone or d.failing),
			disabled_reason = case when not enabled then disabled_reason when d.gone then 'gone' when d.failing then 'failing' else '' end,
			disabled_at = case when enabled and (d.gone or d.failing) then clock_timestamp() else disabled_at end,
			version = case when enabled and (d.gone or d.failing) then version + 1 else version end
		from (select @gone::bool as gone, @failed and not @succeeded and coalesce(f.failing_since < clock_timestamp() - @limit::interval, false) as failing
			from hook_endpoints f where f.id = @id) d
		where e.id = @id returning disabled_reason`,
		pgx.StrictNamedArgs{"id": e.ID, "failures": failures, "succeeded": succeeded > 0, "failed": failed > 0, "pause": pause, "error": pg.Storable(last.Cause()),
			"gone": gone && failed > 0, "limit": hook.DisableAfter}).Scan(&why)
	if err != nil {
		return false, err
	}
	if e.Enabled && why != "" {
		after := e
		after.Enabled, after.Why = false, why
		entry := e.Entry(staff.System(), "disable", e.Shown(), after.Shown())
		entry.Reason = staff.ReasonWebhookFailing
		if why == hook.ByGone {
			entry.Reason = staff.ReasonWebhookGone
		}
		return false, pg.InsertAudit(ctx, tx, entry)
	}
	return e.Enabled && why == "" && pause == nil, nil
}

// Release gives deliveries back; see [hook.Outbound].
func (s Hooks) Release(ctx context.Context, l hook.Lease, ids []int64) error {
	_, err := s.Pool.Exec(ctx, `update hook_deliveries set lease_token = null, lease_until = null where id = any($1) and lease_token = $2`, ids, l.Token)
	return pg.Translate(err)
}

// DueEndpoints returns up to limit endpoints that something is due at.
func (s Hooks) DueEndpoints(ctx context.Context, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select id from hook_endpoints e where enabled and (held_until is null or held_until <= clock_timestamp())
		and exists (select from hook_deliveries d where d.endpoint_id = e.id and d.state = 'waiting' and d.next_at <= statement_timestamp()
			and (d.lease_until is null or d.lease_until <= clock_timestamp())) order by random() limit $1`, limit)
}

// HookState is how the endpoints do, for gauges.
type HookState struct {
	Waiting       int64   // deliveries that are due, up to 100,000
	OldestSeconds float64 // of these, since they were due
	Failing       int64   // enabled endpoints whose last attempt failed
	Disabled      int64   // by failures
}

// State returns how the endpoints do.
func (s Hooks) State(ctx context.Context) (st HookState, err error) {
	err = s.Pool.QueryRow(ctx, `
		select count(d.next_at), coalesce(extract(epoch from clock_timestamp() - min(d.next_at)), 0)::float8,
			(select count(*) from hook_endpoints where enabled and failing_since is not null),
			(select count(*) from hook_endpoints where disabled_reason in ('failing', 'gone'))
		from (select d.next_at from hook_endpoints e join lateral (select next_at from hook_deliveries d where d.endpoint_id = e.id and d.state = 'waiting'
			and d.next_at <= statement_timestamp() order by next_at limit 100000) d on true
			where e.enabled and (e.held_until is null or e.held_until <= clock_timestamp()) limit 100000) d`).
		Scan(&st.Waiting, &st.OldestSeconds, &st.Failing, &st.Disabled)
	return st, pg.Translate(err)
}
