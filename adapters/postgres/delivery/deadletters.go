package delivery

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// DeadLetters stores deliveries that used up their attempts, and the jobs that
// replay or discard them.
type DeadLetters struct{ *pg.DB }

// NewDeadLetters returns the dead letters of db.
func NewDeadLetters(db *pg.DB) DeadLetters { return DeadLetters{db} }

// deadFrom selects dead rows e of batches b; conditions follow.
const deadFrom = ` from exceptions e join batches b on b.id = e.batch_id where e.outcome = 'dead'`

// Conditions for the batches b of shops. A campaign belongs to its own shop,
// whatever its template is; without a shop of its own it belongs to its
// template's shop. All other batches belong to their template's shop. Each
// condition has a statement of its own that uses an index; an "or" of both could
// use no index.
const (
	templatesOfShops = "b.kind <> 'campaign' and b.template_id in (select id from templates where shop_number = any(?))"
	campaignsOfShops = "b.kind = 'campaign' and b.owner_id in (select c.id from campaigns c left join templates t on t.id = " + pg.CampaignTemplate +
		" where coalesce(c.shop_number, t.shop_number) = any(?))"
)

// ofShops returns the conditions for statements that together find the batches of
// the shops, each batch once. Without shops it returns one condition that is
// always true.
func ofShops(shops []int64) []string {
	if len(shops) == 0 {
		return []string{""}
	}
	return []string{templatesOfShops, campaignsOfShops}
}

// together joins the statements that sql returns for the conditions into one
// statement.
func together(conditions []string, sql func(where string) string) string {
	parts := make([]string, len(conditions))
	for i, where := range conditions {
		parts[i] = sql(where)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "(" + strings.Join(parts, ") union all (") + ")"
}

// conditions returns the filter as SQL that follows deadFrom. If there are
// several conditions, their statements together find all dead letters; args are
// the arguments of each statement.
func conditions(f delivery.DeadLetterFilter) (wheres []string, args []any) {
	for _, shops := range ofShops(f.Shops) {
		c := &pg.Conditions{List: []string{""}}
		if f.Channel != nil {
			c.Add("e.channel = ?", *f.Channel)
		}
		if f.Fingerprint != nil {
			c.Add("e.fingerprint = ?", *f.Fingerprint)
		}
		if f.TemplateID != 0 {
			c.Add("b.template_id = ?", f.TemplateID)
		}
		if f.CampaignID != 0 {
			c.Add("b.kind = 'campaign' and b.owner_id = ?", f.CampaignID)
		}
		if f.BatchID != 0 {
			c.Add("b.id = ?", f.BatchID)
		}
		if f.UserID != 0 {
			c.Add("e.user_id = ?", f.UserID)
		}
		if shops != "" {
			c.Add(shops, f.Shops)
		}
		wheres, args = append(wheres, strings.Join(c.List, " and ")), c.Args
	}
	return wheres, args
}

// DeadLetterGroups returns counts by channel and fingerprint. They are read from
// counters, or from the rows when the filter has further conditions.
func (s DeadLetters) DeadLetterGroups(ctx context.Context, f delivery.DeadLetterFilter) ([]delivery.DeadLetterGroup, error) {
	s.DB = s.Reports(ctx)
	sql, args := `select channel, fingerprint, dead, first_at, last_at, sample from dead_letter_groups where dead > 0`, []any(nil)
	if f.TemplateID != 0 || f.CampaignID != 0 || f.BatchID != 0 || f.UserID != 0 || len(f.Shops) > 0 {
		var wheres []string
		wheres, args = conditions(f)
		sql = `select channel, fingerprint, sum(n)::bigint, min(first_at), max(last_at), max(sample) from (` + together(wheres, func(where string) string {
			return `select e.channel, e.fingerprint, count(*) as n, min(e.first_at) as first_at, max(e.last_at) as last_at, max(e.detail) as sample` +
				deadFrom + where + ` group by 1, 2`
		}) + `) as g group by 1, 2`
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
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[delivery.DeadLetterGroup], sql+` order by 3 desc, 1, 2 limit 500`, args...)
}

// DeadLetters lists single dead letters by batch and user.
func (s DeadLetters) DeadLetters(ctx context.Context, f delivery.DeadLetterFilter, afterBatch int64, afterUser user.ID, limit int) ([]delivery.DeadLetter, error) {
	s.DB = s.Reports(ctx)
	wheres, args := conditions(f)
	args = append(args, afterBatch, afterUser, limit)
	n := len(args)
	page := fmt.Sprintf(` order by batch_id, user_id limit $%d`, n)
	sql := together(wheres, func(where string) string {
		return `select e.batch_id, b.kind, b.owner_id, coalesce((select name from campaigns c where b.kind = 'campaign' and c.id = b.owner_id), ''),
			e.user_id, e.channel, b.template_id, coalesce((select name from templates t where t.id = b.template_id), ''),
			e.reason, e.detail, e.fingerprint, e.attempts, e.first_at, e.last_at, b.worthless_after,
			coalesce((select name from providers p where p.id = e.provider_id), '')` + deadFrom + where +
			fmt.Sprintf(` and (e.batch_id, e.user_id) > ($%d, $%d)`, n-2, n-1) + page
	})
	if len(wheres) > 1 {
		sql += page
	}
	return pg.Collect(ctx, s.Pool, pgx.RowToStructByPos[delivery.DeadLetter], sql, args...)
}

// inTime is a condition on batch b: its deadline is in the future, and the
// opening has neither moved nor been cancelled since. The result stays valid only
// while the template's row is locked.
const (
	inTime    = `(` + unstopped + ` and ` + holding + `)`
	unstopped = `b.worthless_after > clock_timestamp() and b.stop_reason is null`
	// holding is the same for all batches of an owner.
	holding = `not exists (
	select from campaigns c where b.kind = 'campaign' and c.id = b.owner_id and c.state in ('cancelled', 'failed')) and not exists (
	select from templates t where t.id = b.template_id and (
		b.kind in ('reminder', 'correction') and t.state in ('closed', 'cancelled')
		or b.kind = 'reminder' and not exists (select from slots s where s.id = b.owner_id and ` + pg.OfOpening + `)
		or b.kind = 'correction' and not exists (select from announcements a where a.id = b.owner_id and (a.opens_at = t.opens_at or t.doors > 0 and doors_at(t.id, a.opens_at) <> 0))))`
)

// suspects are the sent marks of a batch b among which dead recipients may be. If
// each recipient has an outcome and the outcomes add up to the number of
// recipients, no recipient has two outcomes.
const suspects = `case when b.state = 'done' and b.rest_outcome is null
	and b.sent_count + b.skipped_count + b.expired_count + b.dead_count + b.failed_count = b.due_count then null else b.sent end`

// Triage computes the result that a replay would have. It checks the sent marks
// of the dead recipients batch by batch where marks are possible, or where a rate
// decides which recipients are still in time. All other dead letters are counted
// by one statement.
func (s DeadLetters) Triage(ctx context.Context, f delivery.DeadLetterFilter, rate int) (delivery.Triage, error) {
	s.DB = s.Reports(ctx)
	wheres, args := conditions(f)
	letters := together(wheres, func(where string) string {
		return `select b.id, count(*) as n, array_agg(e.user_id) as users` + deadFrom + where + ` group by b.id`
	})
	// The recipients first, and then the batches' own rows, which are wide.
	rows := pg.Rows(ctx, s.Pool, `with letters as materialized (
			`+letters+`
		), dead as materialized (
			select b.id, b.kind, b.owner_id, b.template_id, `+suspects+` as sent, `+unstopped+` as unstopped, l.n, l.users,
				extract(epoch from b.worthless_after - clock_timestamp())::float8 as seconds from letters l join batches b using (id)
		), owners as materialized (
			select kind, owner_id, `+holding+` as holding from (select distinct kind, owner_id, template_id from dead) b
		), all_dead as (
			select d.id, d.sent, d.unstopped and o.holding as timely, d.n, d.users, d.seconds from dead d join owners o on o.kind = d.kind and o.owner_id = d.owner_id
		)
		`+triageParts(rate), args...)
	var t delivery.Triage
	var sent []byte
	var timely bool
	var n int64
	var users []int64
	var seconds float64
	_, err := pgx.ForEachRow(rows, []any{&sent, &timely, &n, &users, &seconds}, func() error {
		_, done, err := split(users, sent)
		if err != nil {
			return err
		}
		left := n - int64(len(done))
		t.Total += n
		t.AlreadySent += int64(len(done))
		fits := int64(0)
		switch {
		case timely && rate == 0:
			fits = left
		case timely: // earlier dead letters are released first
			fits = min(left, max(0, int64(math.Ceil(seconds*float64(rate)))-t.InTime))
			t.ByRate += left - fits
		}
		t.InTime += fits
		t.TooLate += left - fits
		return nil
	})
	return t, pg.Translate(err)
}

func triageParts(rate int) string {
	if rate > 0 { // in the order of their release
		return `select sent, timely, n, users, seconds from all_dead order by id`
	}
	return `select null, timely, sum(n)::bigint, null, 0 from all_dead where sent is null group by timely
		union all select sent, timely, n, users, 0 from all_dead where sent is not null`
}

// split separates users without a sent mark from users with a sent mark.
func split(users []int64, sent []byte) (left, done []int64, err error) {
	if len(sent) == 0 {
		return users, nil, nil
	}
	set, err := pg.DecodeSet(sent)
	for _, u := range users {
		if set.Contains(uint64(u)) {
			done = append(done, u)
		} else {
			left = append(left, u)
		}
	}
	return left, done, err
}

// RecountDeadLetters corrects the counters to match the rows. Counting takes
// long, and every checkpoint with an exception needs the counters, so the
// counters are not locked meanwhile. The difference at the time of the count is
// added to each counter; later changes affect rows and counters alike.
func (s DeadLetters) RecountDeadLetters(ctx context.Context) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		// Two concurrent counts would both add the same difference.
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('dropbell:letters', 0))`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, recountSQL); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `delete from dead_letter_groups where dead <= 0`)
		return err
	})
}

// recountSQL counts the rows and corrects the counters, in the order in which
// checkpoints change counters. A missing counter is created with the difference.
// first_at of a group is the time of its first death, not of its first attempt.
const recountSQL = `
with counted as (
	select channel, fingerprint, count(*) as n, min(last_at) as first_at, max(last_at) as last_at, max(detail) as sample
	from exceptions where outcome = 'dead' group by 1, 2
)
insert into dead_letter_groups as g (channel, fingerprint, dead, first_at, last_at, sample)
select channel, fingerprint, coalesce(c.n, 0) - coalesce(k.dead, 0), coalesce(c.first_at, k.first_at), coalesce(c.last_at, k.last_at),
	coalesce(k.sample, c.sample)
from counted c full join dead_letter_groups k using (channel, fingerprint)
where (c.n, c.first_at, c.last_at) is distinct from (k.dead, k.first_at, k.last_at)
order by 1, 2
on conflict (channel, fingerprint) do update set dead = greatest(0, g.dead + excluded.dead),
	first_at = excluded.first_at, last_at = excluded.last_at`
