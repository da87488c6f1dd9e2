package work

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/fault"
	"dropbell/domain/job"
)

// takeable is a condition on job j: no worker has it, or its worker fell silent.
const takeable = `j.state in ('waiting', 'running') and j.next_run_at <= clock_timestamp()
	and coalesce(j.lease_until, '-infinity') <= clock_timestamp()`

// JobsWait asks for jobs that have not ended.
const JobsWait pg.Question = `select from jobs where state in ('waiting', 'running') order by id limit 1`

// LeaseJob takes a job for a worker; see [job.WorkStore]. A lease that expired without being
// given back counts as an attempt.
func (s Jobs) LeaseJob(ctx context.Context, id int64, kinds []string, lasting time.Duration) (l job.Lease, err error) {
	l.Token = uuid.NewString()
	l.Job, err = pg.ScanBackground(s.Pool.QueryRow(ctx, `
		update jobs j set state = 'running', started_at = coalesce(j.started_at, clock_timestamp()),
			attempts = j.attempts + case when j.lease_token is null then 0 else 1 end,
			lease_token = $3, lease_until = clock_timestamp() + $4
		where j.id = $1 and j.kind = any($2) and `+takeable+`
		returning `+pg.BackgroundColumns+`, j.attempts`, id, kinds, l.Token, lasting), &l.Attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		return l, job.ErrNoWork
	}
	return l, pg.Translate(err)
}

// KeepJob renews a lease that has not been lost.
func (s Jobs) KeepJob(ctx context.Context, l job.Lease, lasting time.Duration) error {
	return pg.Translate(pg.Change(ctx, s.Pool, job.ErrLeaseLost, `update jobs set lease_until = clock_timestamp() + $3 where id = $1 and lease_token = $2 and state = 'running'`,
		l.ID, l.Token, lasting))
}

// saveJobSQL returns the job as the step left it, nothing if the lease was lost.
const saveJobSQL = `
update jobs j set cursor = coalesce(@cursor::jsonb, j.cursor), result = coalesce(@result::jsonb, j.result),
    total = @total, done = @done, failed = @failed, attempts = 0, reason = '', detail = '',
    state = case when @finished then 'done' else 'running' end,
    finished_at = case when @finished then clock_timestamp() end,
    lease_token = case when @finished then null else j.lease_token end,
    lease_until = case when @finished then null else clock_timestamp() + @lasting::interval end
where j.id = @id and j.lease_token = @token and j.state = 'running' returning ` + pg.BackgroundColumns

// SaveJob stores a step's progress and its row errors together.
func (s Jobs) SaveJob(ctx context.Context, l job.Lease, p job.Progress, lasting time.Duration) (j job.Job, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		j, err = pg.ScanBackground(tx.QueryRow(ctx, saveJobSQL, pgx.StrictNamedArgs{
			"id": l.ID, "token": l.Token, "cursor": p.Cursor, "result": p.Result,
			"total": p.Total, "done": p.Done, "failed": p.Failed, "finished": p.Finished, "lasting": lasting,
		}))
		if errors.Is(err, pgx.ErrNoRows) {
			return job.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		return insertRowErrors(ctx, tx, l.ID, p.Errors)
	})
	return j, err
}

// maxRow is how many bytes of a failed row are stored at most.
const maxRow = 2000

func insertRowErrors(ctx context.Context, tx pgx.Tx, id int64, list []job.RowError) error {
	if len(list) == 0 {
		return nil
	}
	lines, rows, errs, why := make([]int64, len(list)), make([]string, len(list)), make([]string, len(list)), make([][]byte, len(list))
	for i, e := range list {
		lines[i], rows[i], errs[i], why[i] = e.Line, brief(e.Row), brief(e.Error), storedCauses(e.Because)
	}
	_, err := tx.Exec(ctx, `insert into job_errors (job_id, line, row, error, because)
		select $1, e.line, e.row, e.error, e.because
		from unnest($2::bigint[], $3::text[], $4::text[], $5::jsonb[]) with ordinality as e (line, row, error, because, n) order by e.n`,
		id, lines, rows, errs, why)
	return err
}

// storedCauses leaves out causes that are too long to be stored whole: half a cause would have
// another meaning.
func storedCauses(list []fault.Field) []byte {
	stored := make([]fault.Field, 0, len(list))
	room := maxRow
	for _, f := range list {
		if room -= len(f.Name) + len(f.Key) + len(f.Message); room < 0 {
			return []byte("[]")
		}
		stored = append(stored, fault.Field{Name: pg.Storable(f.Name), Key: f.Key, Message: pg.Storable(f.Message)})
	}
	raw, _ := json.Marshal(stored) // strings
	return raw
}

// brief returns the beginning of s without characters that PostgreSQL cannot store; rows come
// from files of any content.
func brief(s string) string { return pg.Storable(s[:min(len(s), maxRow)]) }

// setBackJobSQL returns nothing; no row changes if the lease was lost.
const setBackJobSQL = `
update jobs set attempts = @attempts, reason = @reason, detail = @detail, state = case when @over then 'failed' else state end,
    finished_at = case when @over then clock_timestamp() end, next_run_at = clock_timestamp() + @wait::interval,
    lease_token = null, lease_until = null
where id = @id and lease_token = @token and state = 'running'`

// SetBackJob stores that a step failed and gives the lease back.
func (s Jobs) SetBackJob(ctx context.Context, l job.Lease, b job.Setback) error {
	return pg.Translate(pg.Change(ctx, s.Pool, job.ErrLeaseLost, setBackJobSQL, pgx.StrictNamedArgs{"id": l.ID, "token": l.Token, "attempts": b.Attempts,
		"reason": b.Reason, "detail": brief(b.Detail), "over": b.Over, "wait": b.Wait}))
}

// ReleaseJob gives a lease back. The job goes to the end of the queue of due jobs.
func (s Jobs) ReleaseJob(ctx context.Context, l job.Lease) error {
	_, err := s.Pool.Exec(ctx, `update jobs set lease_token = null, lease_until = null, next_run_at = clock_timestamp()
		where id = $1 and lease_token = $2 and state = 'running'`, l.ID, l.Token)
	return pg.Translate(err)
}

// DueJobs lists jobs that could be taken, longest due first.
func (s Jobs) DueJobs(ctx context.Context, kinds []string, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], `select j.id from jobs j where j.kind = any($1) and `+takeable+` order by j.next_run_at, j.id limit $2`, kinds, limit)
}

// JobsByState counts jobs that are not over, for the gauges.
func (s Jobs) JobsByState(ctx context.Context) (waiting, running int64, err error) {
	err = s.Pool.QueryRow(ctx, `select count(*) filter (where state = 'waiting'), count(*) filter (where state = 'running')
		from jobs where state in ('waiting', 'running')`).Scan(&waiting, &running)
	return waiting, running, pg.Translate(err)
}
