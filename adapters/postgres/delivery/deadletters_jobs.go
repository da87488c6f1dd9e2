package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/staff"
)

const jobColumns = `id, action, filter, rate, state, total, done, late, sent, created_by, created_at, finished_at`

func scanJob(row pgx.CollectableRow) (j delivery.DeadLetterJob, err error) {
	var filter []byte
	if err = row.Scan(&j.ID, &j.Action, &filter, &j.Rate, &j.State, &j.Total, &j.Done, &j.Late, &j.Sent, &j.CreatedBy, &j.CreatedAt, &j.FinishedAt); err != nil {
		return j, err
	}
	return j, json.Unmarshal(filter, &j.Filter)
}

// StartDeadLetterJob stores a job for the workers; see
// [delivery.DeadLetterStore].
func (s DeadLetters) StartDeadLetterJob(ctx context.Context, j delivery.DeadLetterJob, requestKey string, e staff.Entry) (delivery.DeadLetterJob, error) {
	filter, err := json.Marshal(j.Filter)
	if err != nil {
		return j, err
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		started, err := oneLetterJob(ctx, tx, `insert into dead_letter_jobs (action, filter, rate, total, created_by, request_key)
			values ($1, $2, $3, $4, $5, nullif($6, '')) on conflict (request_key) do nothing
			returning `+jobColumns, j.Action, filter, j.Rate, j.Total, j.CreatedBy, requestKey)
		if errors.Is(err, pgx.ErrNoRows) { // by an earlier attempt at the same request
			j, err = oneLetterJob(ctx, tx, `select `+jobColumns+` from dead_letter_jobs where request_key = $1`, requestKey)
			return err
		}
		if err != nil {
			return err
		}
		j = started
		e.ObjectID = pg.Itoa(j.ID)
		return pg.InsertAudit(ctx, tx, e)
	})
	return j, err
}

func oneLetterJob(ctx context.Context, tx pgx.Tx, sql string, args ...any) (delivery.DeadLetterJob, error) {
	return pgx.CollectExactlyOneRow(pg.Rows(ctx, tx, sql, args...), scanJob)
}

// withinShops selects the jobs that are limited to some of the shops $1. A job
// without shops concerns all shops.
const withinShops = ` (cardinality($1::bigint[]) = 0 or filter->'shops' <> '[]' and filter->'shops' <@ to_jsonb($1::bigint[]))`

// DeadLetterJobs lists recent jobs; see [delivery.DeadLetterStore].
func (s DeadLetters) DeadLetterJobs(ctx context.Context, shops []int64, limit int) ([]delivery.DeadLetterJob, error) {
	return pg.Collect(ctx, s.Pool, scanJob, `select `+jobColumns+` from dead_letter_jobs where`+withinShops+` order by id desc limit $2`,
		append([]int64{}, shops...), limit)
}

// CancelDeadLetterJob stops a running job; see [delivery.DeadLetterStore].
func (s DeadLetters) CancelDeadLetterJob(ctx context.Context, id int64, shops []int64, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, delivery.ErrNoDeadLetterJob, `update dead_letter_jobs set state = 'cancelled', finished_at = now()
			where id = $2 and state = 'running' and`+withinShops, append([]int64{}, shops...), id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// DeadLetterJobsWait asks for jobs that are under way.
const DeadLetterJobsWait pg.Question = `select from dead_letter_jobs where state = 'running' order by id limit 1`

// StepDeadLetterJob takes the next batch of the oldest job that no other worker
// has locked. One transaction settles the batch and stores the job's progress, so
// a worker that dies leaves neither half a batch nor a wrong count.
func (s DeadLetters) StepDeadLetterJob(ctx context.Context) (more bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		j, err := oneLetterJob(ctx, tx, `select `+jobColumns+` from dead_letter_jobs where state = 'running'
			and coalesce(lease_until, '-infinity') <= clock_timestamp() order by id limit 1 for update skip locked`)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		more = true
		return stepJob(ctx, tx, j)
	})
	return more, err
}

// busyPause is how long a job waits for a batch that a worker is delivering.
const busyPause = 2 * time.Second

func stepJob(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob) error {
	wheres, args := conditions(j.Filter)
	args = append(args, j.ID)
	next := together(wheres, func(where string) string {
		return `select e.batch_id` + deadFrom + where + fmt.Sprintf(
			` and e.batch_id > (select after_batch from dead_letter_jobs where id = $%d) order by e.batch_id limit 1`, len(args))
	})
	var id int64
	err := tx.QueryRow(ctx, `select batch_id from (`+next+`) as n order by batch_id limit 1`, args...).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, `update dead_letter_jobs set state = 'finished', finished_at = now() where id = $1`, j.ID)
		return err
	}
	if err != nil {
		return err
	}
	p, err := paceOf(ctx, tx, j, id)
	if err != nil {
		return err
	}
	b, err := lockDead(ctx, tx, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows): // removed meanwhile, and its dead letters with it
		return nil
	case err != nil:
		return err
	case b.running: // its worker holds outcomes in memory: come back later
		_, err := tx.Exec(ctx, `update dead_letter_jobs set lease_until = clock_timestamp() + $2 where id = $1`, j.ID, busyPause)
		return err
	}
	return settle(ctx, tx, j, b, p)
}

// longestCatchUp bounds the time without a worker for which a replay makes up at
// once.
const longestCatchUp = 3 * time.Second

// shortestPause is the minimum pause of a replay that has used up its rate.
const shortestPause = 250 * time.Millisecond

// pace is the number of dead letters that a replay may release now, and its
// position in its batch.
type pace struct {
	rate  int
	now   int // of the batch, unless it is no use
	after int64
	// since is the time for which the rate has not been used.
	since time.Duration
}

// paceOf reads the pace of job j for the batch. Dead letters are not released
// before their turn: until then they can still be cancelled, and do not count as
// failures of the provider when the deadline passes.
func paceOf(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob, batch int64) (pace, error) {
	p := pace{rate: j.Rate, now: math.MaxInt32}
	if j.Action == delivery.Discard {
		p.rate = 0
	}
	err := tx.QueryRow(ctx, `select coalesce(case when part_batch = $2 then part_user end, 0),
		least(coalesce(clock_timestamp() - paced_at, interval '1 second'), $3) from dead_letter_jobs where id = $1`, j.ID, batch, longestCatchUp).Scan(&p.after, &p.since)
	if p.rate > 0 {
		p.now = int(float64(p.rate) * p.since.Seconds())
	}
	return p, err
}

// deadBatch is a locked batch with dead letters.
type deadBatch struct {
	id      int64
	running bool
	inTime  bool
	sent    []byte
}

// lockDead locks a batch after its template and its owner, such as a slot or an
// announcement. Moving an opening uses the same order. While the template is
// locked, the answer whether the batch is in time stays valid. While the owner is
// locked, the owner cannot be finished before its batch is made ready again.
func lockDead(ctx context.Context, tx pgx.Tx, id int64) (b deadBatch, err error) {
	for _, sql := range []string{
		`select from templates where id = (select template_id from batches where id = $1) for share`,
		`select from slots where id = (select owner_id from batches where id = $1 and kind = 'reminder') for update`,
		`select from announcements where id = (select owner_id from batches where id = $1 and kind in ` + pg.Announced + `) for update`,
		`select from campaigns where id = (select owner_id from batches where id = $1 and kind = 'campaign') for update`,
		`select from notice_runs where id = (select owner_id from batches where id = $1 and kind = 'notice') for update`,
	} {
		if _, err := tx.Exec(ctx, sql, id); err != nil {
			return b, err
		}
	}
	err = tx.QueryRow(ctx, `select b.id, b.state = 'running', `+inTime+`, b.sent from batches b where b.id = $1 for update of b`, id).
		Scan(&b.id, &b.running, &b.inTime, &b.sent)
	return b, err
}

// settledSQL returns nothing. A batch that is only partly settled is stored with
// the last user that the job has reached.
const settledSQL = `
update dead_letter_jobs set after_batch = case when @more then after_batch else @batch end,
    part_batch = case when @more then @batch end, part_user = case when @more then greatest(@after::bigint, coalesce(@last::bigint, 0)) end,
    done = done + @acted, late = late + @late, sent = sent + @sent
where id = @job`

// settle applies the job to the dead letters of one batch, or to as many of them
// as the rate allows.
func settle(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob, b deadBatch, p pace) error {
	if !b.inTime {
		p.rate, p.now = 0, math.MaxInt32 // none is released
	}
	f := j.Filter
	f.BatchID = b.id
	wheres, args := conditions(f)
	letters := together(wheres, func(where string) string { return `select e.user_id` + deadFrom + where })
	args = append(args, p.after, p.now+1)
	var users []int64
	if err := tx.QueryRow(ctx, `select array_agg(user_id order by user_id) from (select user_id from (`+letters+fmt.Sprintf(
		`) as l where user_id > $%d order by user_id limit $%d) as next`, len(args)-1, len(args)), args...).Scan(&users); err != nil {
		return err
	}
	more := len(users) > p.now
	if more {
		users = users[:p.now]
	}
	left, done, err := split(users, b.sent)
	if err != nil {
		return err
	}
	if err := lockGroups(ctx, tx, b.id, users); err != nil {
		return err
	}
	if err := acknowledge(ctx, tx, b.id, done); err != nil {
		return err
	}
	acted, late := len(left), 0
	switch {
	case j.Action == delivery.Discard:
		err = discard(ctx, tx, b.id, left)
	case b.inTime:
		err = revive(ctx, tx, b.id, left)
	default:
		acted, late = 0, len(left)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, settledSQL, pgx.StrictNamedArgs{"job": j.ID, "batch": b.id, "acted": acted, "late": late,
		"sent": len(done), "more": more, "after": p.after, "last": last(users)})
	if err != nil || p.rate == 0 {
		return err
	}
	return p.spend(ctx, tx, j.ID, acted)
}

func last(users []int64) *int64 {
	if len(users) == 0 {
		return nil
	}
	return &users[len(users)-1]
}

// spend records that n dead letters were released, and defers the job if the pace
// is used up.
func (p pace) spend(ctx context.Context, tx pgx.Tx, job int64, n int) error {
	each := time.Second / time.Duration(p.rate)
	left := p.since - time.Duration(n)*each
	var wait time.Duration
	if left < each {
		wait = max(each-left, shortestPause)
	}
	_, err := tx.Exec(ctx, `update dead_letter_jobs set paced_at = clock_timestamp() - $2::interval,
		lease_until = case when $3::interval > interval '0' then clock_timestamp() + $3 end where id = $1`, job, left, wait)
	return err
}

// lockGroups locks the counters that will change, in the order in which
// checkpoints change counters.
func lockGroups(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	_, err := tx.Exec(ctx, `select from dead_letter_groups where (channel, fingerprint) in (
			select channel, fingerprint from exceptions where batch_id = $1 and user_id = any($2) and outcome = 'dead')
		order by channel, fingerprint for update`, batch, users)
	return err
}

// acknowledge marks the dead letters of recipients with a sent mark as recovered.
func acknowledge(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	if len(users) == 0 {
		return nil
	}
	if err := ungroup(ctx, tx, batch, users); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update exceptions set outcome = $3 where batch_id = $1 and user_id = any($2)`, batch, users, delivery.Recovered); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `update batches set dead_count = dead_count - $2 where id = $1`, batch, len(users)); err != nil {
		return err
	}
	return reopen(ctx, tx, batch)
}

// discard discards dead letters; their outcome stays dead.
func discard(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	if len(users) == 0 {
		return nil
	}
	if err := ungroup(ctx, tx, batch, users); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update exceptions set outcome = $3, reason = $4, last_at = clock_timestamp()
		where batch_id = $1 and user_id = any($2)`, batch, users, delivery.Discarded, delivery.ReasonOperator)
	return err
}

// revive makes dead letters ready for a retry and keeps their earlier attempts.
// Their batch and its owner become unfinished again.
func revive(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	if len(users) == 0 {
		return nil
	}
	if err := ungroup(ctx, tx, batch, users); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update exceptions set outcome = 'failed', attempts = 0, next_retry_at = clock_timestamp() where batch_id = $1 and user_id = any($2)`,
		batch, users); err != nil {
		return err
	}
	// A batch that was ready keeps its next run: other recipients in it may be
	// due before.
	if _, err := tx.Exec(ctx, `
		update batches b set state = 'ready', dead_count = dead_count - $2, failed_count = failed_count + $2,
			next_run_at = least(case when b.state = 'ready' then b.next_run_at end, b.worthless_after,
				(select min(next_retry_at) from exceptions where batch_id = $1 and outcome = 'failed')) where id = $1`,
		batch, len(users)); err != nil {
		return err
	}
	return reopen(ctx, tx, batch)
}

// reopen makes the batch's slot, announcement, campaign or run of notices
// unfinished, so that its results are written again when the batch is done.
func reopen(ctx context.Context, tx pgx.Tx, batch int64) error {
	_, err := tx.Exec(ctx, `
		with slot as (
			update slots set state = 'sending', finished_at = null
			where state = 'finished' and id = (select owner_id from batches where id = $1 and kind = 'reminder')
		), campaign as (
			update campaigns set state = case when state = 'finished' then 'running' else state end,
				ended_at = case when state = 'finished' then null else ended_at end, settled_at = null
			where settled_at is not null and id = (select owner_id from batches where id = $1 and kind = 'campaign')
		), notices as (
			update notice_runs set settled_at = null
			where settled_at is not null and id = (select owner_id from batches where id = $1 and kind = 'notice')
		)
		update announcements set state = 'sending', finished_at = null
		where state = 'finished' and id = (select owner_id from batches where id = $1 and kind in `+pg.Announced+`)`, batch)
	return err
}

// ungroup subtracts dead letters from the counters; it runs before the letters
// change.
func ungroup(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	_, err := tx.Exec(ctx, `
		with gone as (select channel, fingerprint, count(*) as n from exceptions
			where batch_id = $1 and user_id = any($2) and outcome = 'dead' group by 1, 2)
		update dead_letter_groups g set dead = greatest(0, g.dead - gone.n) from gone
		where g.channel = gone.channel and g.fingerprint = gone.fingerprint`, batch, users)
	return err
}
