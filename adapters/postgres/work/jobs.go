// Package work stores the background work of the programs: jobs and their items, uploaded files,
// answers kept for repeated requests, timers, the outbox of events, and messages that a handler
// gave up on. It also deletes rows past their retention.
package work

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/job"
	"dropbell/domain/staff"
)

// Jobs keeps work in the background, and with it the files it reads.
type Jobs struct{ Uploads }

// NewJobs returns the jobs of db.
func NewJobs(db *pg.DB) Jobs { return Jobs{NewUploads(db)} }

// StartJob stores a job for the workers; see [job.Store].
func (s Jobs) StartJob(ctx context.Context, j job.Job, requestKey string, e staff.Entry) (started job.Job, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		started, err = pg.StartJob(ctx, tx, j, requestKey, e)
		return err
	})
	if pg.Violates(err, "jobs_upload_id_fkey") { // removed in this very moment
		return j, job.ErrUploadNotFound
	}
	return started, err
}

// Job returns one job; see [job.Store].
func (s Jobs) Job(ctx context.Context, id int64) (job.Job, error) {
	j, err := pg.ScanBackground(s.Pool.QueryRow(ctx, `select `+pg.BackgroundColumns+` from jobs j where j.id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return j, job.ErrNotFound
	}
	return j, pg.Translate(err)
}

// Jobs lists jobs, newest first; see [job.Query].
func (s Jobs) Jobs(ctx context.Context, q job.Query) ([]job.Job, error) {
	return pg.Collect(ctx, s.Pool, func(row pgx.CollectableRow) (job.Job, error) { return pg.ScanBackground(row) }, `select `+pg.BackgroundColumns+` from jobs j
		where ($1 = '' or j.kind = $1) and (cardinality($2::text[]) = 0 or j.state = any($2))
			and (cardinality($3::bigint[]) = 0 or j.shop_number = any($3) or split_part(j.created_by, ' ', 1) = $4)
			and ($5::bigint = 0 or j.id < $5)
		order by j.id desc limit $6`, q.Kind, append([]job.State{}, q.States...), append([]int64{}, q.Shops...), q.Actor, q.Before, max(1, q.Limit))
}

// CancelJob ends a job; its worker's next save finds the lease gone.
func (s Jobs) CancelJob(ctx context.Context, id int64, e staff.Entry) (j job.Job, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		j, err = pg.ScanBackground(tx.QueryRow(ctx, `
			update jobs j set state = 'cancelled', finished_at = clock_timestamp(), lease_token = null, lease_until = null
			where j.id = $1 and j.state in ('waiting', 'running') returning `+pg.BackgroundColumns, id))
		if errors.Is(err, pgx.ErrNoRows) {
			return job.ErrOver
		}
		if err != nil {
			return err
		}
		e.Before, e.After = map[string]any{"done": j.Done, "failed": j.Failed, "total": j.Total}, map[string]any{"state": j.State}
		return pg.InsertAudit(ctx, tx, e)
	})
	return j, err
}

// RowErrors yields the failed rows of a job, one at a time as the database returns them.
func (s Jobs) RowErrors(ctx context.Context, id int64, yield func(job.RowError) error) error {
	return s.rowErrors(ctx, `select line, row, error, because from job_errors where job_id = $1 order by id`, id, yield)
}

// LastRowError returns the row that failed last.
func (s Jobs) LastRowError(ctx context.Context, id int64) (last job.RowError, err error) {
	err = s.rowErrors(ctx, `select line, row, error, because from job_errors where job_id = $1 order by id desc limit 1`, id,
		func(e job.RowError) error { last = e; return nil })
	return last, err
}

func (s Jobs) rowErrors(ctx context.Context, query string, id int64, yield func(job.RowError) error) error {
	rows := pg.Rows(ctx, s.Pool, query, id)
	var e job.RowError
	var because []byte
	_, err := pgx.ForEachRow(rows, []any{&e.Line, &e.Row, &e.Error, &because}, func() error {
		e.Because = nil
		if err := json.Unmarshal(because, &e.Because); err != nil {
			return err
		}
		return yield(e)
	})
	return pg.Translate(err)
}
