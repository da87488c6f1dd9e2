package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/delivery"
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

// inTime says of a batch b that what it tells still holds and is worth
// telling: its deadline lies ahead, and the opening has neither moved nor been
// called off since. Its template's row must be locked for the answer to last.
const (
	inTime    = `(` + unstopped + ` and ` + holding + `)`
	unstopped = `b.worthless_after > clock_timestamp() and b.stop_reason is null`
	// holding is the same for all batches of an owner.
	holding = `not exists (
	select from campaigns c where b.kind = 'campaign' and c.id = b.owner_id and c.state in ('cancelled', 'failed')) and not exists (
	select from templates t where t.id = b.template_id and (
		b.kind in ('reminder', 'correction') and t.state in ('closed', 'cancelled')
		or b.kind = 'reminder' and not exists (select from slots s where s.id = b.owner_id and s.opens_at = t.opens_at)
		or b.kind = 'correction' and not exists (select from announcements a where a.id = b.owner_id and a.opens_at = t.opens_at)))`
)

// suspects are the sent marks of a batch b in which somebody dead could have
// one. Where everybody has an outcome and the outcomes add up, nobody has two.
const suspects = `case when b.state = 'done' and b.rest_outcome is null
	and b.sent_count + b.skipped_count + b.expired_count + b.dead_count + b.failed_count = b.due_count then null else b.sent end`

// Triage says what a replay would do by looking at who has a sent mark all the
// same, batch by batch where somebody could; all others are counted at once.
func (s DeadLetters) Triage(ctx context.Context, f delivery.DeadLetterFilter) (delivery.Triage, error) {
	where, args := conditions(f)
	// Whom first, and then the batches' own rows, which are wide.
	rows, err := s.pool.Query(ctx, `with letters as materialized (
			select b.id, count(*) as n, array_agg(e.user_id) as users`+deadFrom+where+` group by b.id
		), dead as materialized (
			select b.kind, b.owner_id, b.template_id, `+suspects+` as sent, `+unstopped+` as unstopped, l.n, l.users from letters l join batches b using (id)
		), owners as materialized (
			select kind, owner_id, `+holding+` as holding from (select distinct kind, owner_id, template_id from dead) b
		), all_dead as (
			select d.sent, d.unstopped and o.holding as timely, d.n, d.users from dead d join owners o on o.kind = d.kind and o.owner_id = d.owner_id
		)
		select null, timely, sum(n)::bigint, null from all_dead where sent is null group by timely
		union all select sent, timely, n, users from all_dead where sent is not null`, args...)
	if err != nil {
		return delivery.Triage{}, translate(err)
	}
	var t delivery.Triage
	var sent []byte
	var timely bool
	var n int64
	var users []int64
	_, err = pgx.ForEachRow(rows, []any{&sent, &timely, &n, &users}, func() error {
		_, done, err := split(users, sent)
		if err != nil {
			return err
		}
		left := n - int64(len(done))
		t.Total += n
		t.AlreadySent += int64(len(done))
		if timely {
			t.InTime += left
		} else {
			t.TooLate += left
		}
		return nil
	})
	return t, translate(err)
}

// split separates those without a sent mark from those with one.
func split(users []int64, sent []byte) (left, done []int64, err error) {
	if len(sent) == 0 {
		return users, nil, nil
	}
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
