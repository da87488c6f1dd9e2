package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// DeadLetters keeps deliveries that used up their attempts and the jobs that
// replay or discard them.
type DeadLetters struct{ *DB }

// NewDeadLetters returns the dead letters of db.
func NewDeadLetters(db *DB) DeadLetters { return DeadLetters{db} }

// deadFrom selects dead rows e of batches b; conditions follow.
const deadFrom = ` from exceptions e join batches b on b.id = e.batch_id where e.outcome = 'dead'`

// conditions returns the filter as SQL that follows deadFrom.
func conditions(f delivery.DeadLetterFilter) (string, []any) {
	var sql strings.Builder
	var args []any
	add := func(cond string, arg any) {
		args = append(args, arg)
		fmt.Fprintf(&sql, " and "+cond, len(args))
	}
	if f.Channel != nil {
		add("e.channel = $%d", *f.Channel)
	}
	if f.Fingerprint != nil {
		add("e.fingerprint = $%d", *f.Fingerprint)
	}
	if f.TemplateID != 0 {
		add("b.template_id = $%d", f.TemplateID)
	}
	if f.BatchID != 0 {
		add("b.id = $%d", f.BatchID)
	}
	if f.UserID != 0 {
		add("e.user_id = $%d", f.UserID)
	}
	if len(f.Shops) > 0 {
		add("b.template_id in (select id from templates where shop_number = any($%d))", f.Shops)
	}
	return sql.String(), args
}

// DeadLetterGroups returns counts by channel and fingerprint: from counters,
// or from the rows when the filter narrows them further.
func (s DeadLetters) DeadLetterGroups(ctx context.Context, f delivery.DeadLetterFilter) ([]delivery.DeadLetterGroup, error) {
	sql, args := `select channel, fingerprint, dead, first_at, last_at, sample from dead_letter_groups where dead > 0`, []any(nil)
	if f.TemplateID != 0 || f.BatchID != 0 || f.UserID != 0 || len(f.Shops) > 0 {
		var where string
		where, args = conditions(f)
		sql = `select e.channel, e.fingerprint, count(*), min(e.first_at), max(e.last_at), max(e.detail)` + deadFrom + where + ` group by 1, 2`
	} else {
		if f.Channel != nil {
			args = append(args, *f.Channel)
			sql += fmt.Sprintf(" and channel = $%d", len(args))
		}
		if f.Fingerprint != nil {
			args = append(args, *f.Fingerprint)
			sql += fmt.Sprintf(" and fingerprint = $%d", len(args))
		}
	}
	rows, err := s.pool.Query(ctx, sql+` order by 3 desc, 1, 2 limit 500`, args...)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery.DeadLetterGroup])
	return list, translate(err)
}

// DeadLetters lists single dead letters by batch and user.
func (s DeadLetters) DeadLetters(ctx context.Context, f delivery.DeadLetterFilter, afterBatch int64, afterUser user.ID, limit int) ([]delivery.DeadLetter, error) {
	where, args := conditions(f)
	args = append(args, afterBatch, afterUser, limit)
	n := len(args)
	rows, err := s.pool.Query(ctx, `select e.batch_id, e.user_id, e.channel, b.template_id, coalesce((select name from templates t where t.id = b.template_id), ''),
		e.reason, e.detail, e.fingerprint, e.attempts, e.first_at, e.last_at, b.worthless_after`+deadFrom+where+
		fmt.Sprintf(` and (e.batch_id, e.user_id) > ($%d, $%d) order by e.batch_id, e.user_id limit $%d`, n-2, n-1, n), args...)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[delivery.DeadLetter])
	return list, translate(err)
}

// Triage says what a replay would do, batch by batch, by looking at who has a
// sent mark all the same.
func (s DeadLetters) Triage(ctx context.Context, f delivery.DeadLetterFilter) (delivery.Triage, error) {
	where, args := conditions(f)
	rows, err := s.pool.Query(ctx, `select b.sent, b.worthless_after > clock_timestamp(), d.users from batches b join (
		select e.batch_id, array_agg(e.user_id) as users`+deadFrom+where+` group by 1) d on d.batch_id = b.id`, args...)
	if err != nil {
		return delivery.Triage{}, translate(err)
	}
	var t delivery.Triage
	var sent []byte
	var inTime bool
	var users []int64
	_, err = pgx.ForEachRow(rows, []any{&sent, &inTime, &users}, func() error {
		left, done, err := split(users, sent)
		if err != nil {
			return err
		}
		t.Total += int64(len(users))
		t.AlreadySent += int64(len(done))
		if inTime {
			t.InTime += int64(len(left))
		} else {
			t.TooLate += int64(len(left))
		}
		return nil
	})
	return t, translate(err)
}

// split separates those without a sent mark from those with one.
func split(users []int64, sent []byte) (left, done []int64, err error) {
	set, err := decodeSet(sent)
	for _, u := range users {
		if set.Contains(uint64(u)) {
			done = append(done, u)
		} else {
			left = append(left, u)
		}
	}
	return left, done, err
}

const jobColumns = `id, action, filter, rate, state, total, done, late, sent, created_by, created_at, finished_at`

func scanJob(row pgx.CollectableRow) (j delivery.DeadLetterJob, err error) {
	var filter []byte
	if err = row.Scan(&j.ID, &j.Action, &filter, &j.Rate, &j.State, &j.Total, &j.Done, &j.Late, &j.Sent, &j.CreatedBy, &j.CreatedAt, &j.FinishedAt); err != nil {
		return j, err
	}
	return j, json.Unmarshal(filter, &j.Filter)
}

// StartDeadLetterJob stores a job for the workers to find.
func (s DeadLetters) StartDeadLetterJob(ctx context.Context, j delivery.DeadLetterJob, e staff.Entry) (delivery.DeadLetterJob, error) {
	filter, err := json.Marshal(j.Filter)
	if err != nil {
		return j, err
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `insert into dead_letter_jobs (action, filter, rate, total, created_by) values ($1, $2, $3, $4, $5)
			returning `+jobColumns, j.Action, filter, j.Rate, j.Total, j.CreatedBy)
		if err != nil {
			return err
		}
		if j, err = pgx.CollectExactlyOneRow(rows, scanJob); err != nil {
			return err
		}
		e.ObjectID = itoa(j.ID)
		return insertAudit(ctx, tx, e)
	})
	return j, err
}

// DeadLetterJobs lists recent jobs, newest first.
func (s DeadLetters) DeadLetterJobs(ctx context.Context, limit int) ([]delivery.DeadLetterJob, error) {
	rows, err := s.pool.Query(ctx, `select `+jobColumns+` from dead_letter_jobs order by id desc limit $1`, limit)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, scanJob)
	return list, translate(err)
}

// CancelDeadLetterJob stops a running job.
func (s DeadLetters) CancelDeadLetterJob(ctx context.Context, id int64, e staff.Entry) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update dead_letter_jobs set state = 'cancelled', finished_at = now() where id = $1 and state = 'running'`, id)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return delivery.ErrNoDeadLetterJob
		}
		return insertAudit(ctx, tx, e)
	})
}

// StepDeadLetterJob takes the next batch of the oldest job that no other
// worker has in hand, and settles it in one transaction with the job's
// progress: a worker that dies leaves neither half a batch nor a wrong count.
func (s DeadLetters) StepDeadLetterJob(ctx context.Context) (more bool, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select `+jobColumns+` from dead_letter_jobs where state = 'running'
			and coalesce(lease_until, '-infinity') <= clock_timestamp() order by id limit 1 for update skip locked`)
		if err != nil {
			return err
		}
		j, err := pgx.CollectExactlyOneRow(rows, scanJob)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		more = true
		return s.step(ctx, tx, j)
	})
	return more, err
}

// busyPause is how long a job waits for a batch that a worker is delivering.
const busyPause = 2 * time.Second

func (s DeadLetters) step(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob) error {
	where, args := conditions(j.Filter)
	args = append(args, j.ID)
	var batch int64
	err := tx.QueryRow(ctx, `select e.batch_id`+deadFrom+where+fmt.Sprintf(
		` and e.batch_id > (select after_batch from dead_letter_jobs where id = $%d) order by e.batch_id limit 1`, len(args)), args...).Scan(&batch)
	if errors.Is(err, pgx.ErrNoRows) {
		_, err = tx.Exec(ctx, `update dead_letter_jobs set state = 'finished', finished_at = now() where id = $1`, j.ID)
		return err
	}
	if err != nil {
		return err
	}
	var state string
	var inTime bool
	var sent []byte
	if err := tx.QueryRow(ctx, `select state, worthless_after > clock_timestamp(), sent from batches where id = $1 for update`, batch).
		Scan(&state, &inTime, &sent); err != nil {
		return err
	}
	if state == "running" { // its worker holds outcomes in memory: come back later
		_, err := tx.Exec(ctx, `update dead_letter_jobs set lease_until = clock_timestamp() + $2 where id = $1`, j.ID, busyPause)
		return err
	}
	return s.settle(ctx, tx, j, deadBatch{batch, inTime, sent})
}

type deadBatch struct {
	id     int64
	inTime bool
	sent   []byte
}

// settle applies the job to the dead letters of one batch.
func (s DeadLetters) settle(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob, b deadBatch) error {
	f := j.Filter
	f.BatchID = b.id
	where, args := conditions(f)
	var users []int64
	if err := tx.QueryRow(ctx, `select array_agg(e.user_id)`+deadFrom+where, args...).Scan(&users); err != nil {
		return err
	}
	left, done, err := split(users, b.sent)
	if err != nil {
		return err
	}
	if err := s.retire(ctx, tx, b.id, done, delivery.Recovered); err != nil {
		return err
	}
	acted, late := len(left), 0
	switch {
	case j.Action == delivery.Discard:
		err = s.retire(ctx, tx, b.id, left, delivery.Discarded)
	case b.inTime:
		err = s.revive(ctx, tx, j, b.id, left)
	default:
		acted, late = 0, len(left)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update dead_letter_jobs set after_batch = $2, done = done + $3, late = late + $4, sent = sent + $5 where id = $1`,
		j.ID, b.id, acted, late, len(done))
	return err
}

// retire gives dead letters a final outcome other than dead.
func (s DeadLetters) retire(ctx context.Context, tx pgx.Tx, batch int64, users []int64, outcome delivery.Outcome) error {
	if len(users) == 0 {
		return nil
	}
	if err := ungroup(ctx, tx, batch, users); err != nil {
		return err
	}
	if outcome == delivery.Recovered {
		if _, err := tx.Exec(ctx, `update batches set dead_count = dead_count - $2 where id = $1`, batch, len(users)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `update exceptions set outcome = $3 where batch_id = $1 and user_id = any($2)`, batch, users, outcome)
	return err
}

// revive makes dead letters wait for a retry with all attempts before them,
// spread by the job's rate, and their batch and slot unfinished again.
func (s DeadLetters) revive(ctx context.Context, tx pgx.Tx, j delivery.DeadLetterJob, batch int64, users []int64) error {
	if len(users) == 0 {
		return nil
	}
	if err := ungroup(ctx, tx, batch, users); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update exceptions e set outcome = 'failed', attempts = 0,
			next_retry_at = clock_timestamp() + case when $3 = 0 then interval '0' else interval '1 second' * (($4 + u.n - 1) / $3::float8) end
		from unnest($2::bigint[]) with ordinality as u (id, n) where e.batch_id = $1 and e.user_id = u.id`,
		batch, users, j.Rate, j.Done); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `
		update batches set state = 'ready', finished_at = null, dead_count = dead_count - $2, failed_count = failed_count + $2,
			next_run_at = (select min(next_retry_at) from exceptions where batch_id = $1 and outcome = 'failed') where id = $1`,
		batch, len(users)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `update slots set state = 'sending', finished_at = null
		where state = 'finished' and id = (select owner_id from batches where id = $1 and kind = 'reminder')`, batch)
	return err
}

// ungroup takes dead letters out of the counters; it runs before they change.
func ungroup(ctx context.Context, tx pgx.Tx, batch int64, users []int64) error {
	_, err := tx.Exec(ctx, `
		with gone as (select channel, fingerprint, count(*) as n from exceptions
			where batch_id = $1 and user_id = any($2) and outcome = 'dead' group by 1, 2)
		update dead_letter_groups g set dead = greatest(0, g.dead - gone.n) from gone
		where g.channel = gone.channel and g.fingerprint = gone.fingerprint`, batch, users)
	return err
}

// RecountDeadLetters replaces the counters by what the rows say.
func (s DeadLetters) RecountDeadLetters(ctx context.Context) error {
	return s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `lock table dead_letter_groups in exclusive mode`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			with counted as (select channel, fingerprint, count(*) as n, min(first_at) as first_at, max(last_at) as last_at, max(detail) as sample
				from exceptions where outcome = 'dead' group by 1, 2),
			gone as (delete from dead_letter_groups g where not exists (
				select from counted c where c.channel = g.channel and c.fingerprint = g.fingerprint))
			insert into dead_letter_groups as g (channel, fingerprint, dead, first_at, last_at, sample)
			select channel, fingerprint, n, first_at, last_at, sample from counted
			on conflict (channel, fingerprint) do update set dead = excluded.dead, first_at = excluded.first_at, last_at = excluded.last_at`)
		return err
	})
}
