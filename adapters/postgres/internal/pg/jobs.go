package pg

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/event"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// BackgroundColumns are the columns of a job j; see [ScanBackground].
const BackgroundColumns = `j.id, j.kind, j.title, j.shop_number, j.needs, j.params, j.cursor, j.result, j.state, j.total, j.done, j.failed,
	j.reason, j.detail, j.actor, j.created_by, coalesce(j.upload_id, 0), j.created_at, j.started_at, j.finished_at,
	case when j.state = 'running' then (select i.since from (select greatest(j.next_run_at, coalesce(j.lease_until, j.started_at)) as since) i
		where i.since <= clock_timestamp() - ` + idleAfter + `) end`

// idleAfter is [job.IdleAfter].
const idleAfter = `interval '10 seconds'`

func backgroundFields(j *job.Job, actor *[]byte) []any {
	return []any{&j.ID, &j.Kind, &j.Title, &j.ShopNumber, &j.Needs, &j.Params, &j.Cursor, &j.Result, &j.State, &j.Total, &j.Done, &j.Failed,
		&j.Reason, &j.Detail, actor, &j.CreatedBy, &j.UploadID, &j.CreatedAt, &j.StartedAt, &j.FinishedAt, &j.IdleSince}
}

// ScanBackground reads a job, and into more any columns that follow.
func ScanBackground(row pgx.Row, more ...any) (j job.Job, err error) {
	var actor []byte
	if err := row.Scan(append(backgroundFields(&j, &actor), more...)...); err != nil {
		return j, err
	}
	return j, json.Unmarshal(actor, &j.Actor)
}

// startSQL returns the new job. It returns no row if an earlier call with the
// same request key stored the job, or if the job's upload is incomplete.
const startSQL = `
insert into jobs as j (kind, title, shop_number, needs, params, total, created_by, actor, upload_id, request_key)
select @kind, @title, @shop, @needs, coalesce(@params::jsonb, '{}'), @total, @created_by, @actor, nullif(@upload::bigint, 0), @request_key
where @upload::bigint = 0 or exists (select from uploads where id = @upload and sha256 is not null)
on conflict (kind, split_part(created_by, ' ', 1), request_key) where request_key <> '' do nothing
returning ` + BackgroundColumns

// StartJob stores a job for the workers in the running transaction, with its
// audit entry and event; see [job.Store].
func StartJob(ctx context.Context, tx pgx.Tx, j job.Job, requestKey string, e staff.Entry) (job.Job, error) {
	actor, err := json.Marshal(j.Actor)
	if err != nil {
		return j, err
	}
	started, err := ScanBackground(tx.QueryRow(ctx, startSQL, pgx.StrictNamedArgs{
		"kind": j.Kind, "title": j.Title, "shop": j.ShopNumber, "needs": j.Needs, "params": j.Params, "total": j.Total,
		"created_by": j.CreatedBy, "actor": actor, "upload": j.UploadID, "request_key": requestKey,
	}))
	if errors.Is(err, pgx.ErrNoRows) {
		return startedBefore(ctx, tx, j, requestKey)
	}
	if err != nil {
		return j, err
	}
	if e.ObjectKind == "job" {
		e.ObjectID = Itoa(started.ID)
	}
	if err := InsertAudit(ctx, tx, e); err != nil {
		return started, err
	}
	return started, Announce(ctx, tx, event.JobCreated, event.Job{JobID: started.ID, Kind: started.Kind, At: started.CreatedAt})
}

func startedBefore(ctx context.Context, tx pgx.Tx, j job.Job, requestKey string) (job.Job, error) {
	if requestKey == "" {
		return j, job.ErrUploadNotFound
	}
	found, err := ScanBackground(tx.QueryRow(ctx, `select `+BackgroundColumns+` from jobs j
		where j.kind = $1 and split_part(j.created_by, ' ', 1) = split_part($2, ' ', 1) and j.request_key = $3`, j.Kind, j.CreatedBy, requestKey))
	if errors.Is(err, pgx.ErrNoRows) {
		return j, job.ErrUploadNotFound
	}
	return found, err
}
