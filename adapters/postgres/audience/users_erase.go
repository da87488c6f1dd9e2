package audience

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// noneErased returns [user.ErrErased] if one of the users was erased. No user is erased until
// the transaction ends.
func noneErased(ctx context.Context, tx pgx.Tx, ids []user.ID) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
		return err
	}
	var one user.ID
	// A separate statement sees the erasures that were stored while the transaction waited for
	// the lock.
	err := tx.QueryRow(ctx, `select user_id from erased_users where user_id = any($1) limit 1`, ids).Scan(&one)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	return user.ErrErased
}

// Erased returns the ids that were erased; see [user.ErasureStore].
func (s Users) Erased(ctx context.Context, ids []user.ID) (map[user.ID]bool, error) {
	return erased(ctx, s.DB, ids)
}

// Erased returns the ids that were erased; see [segment.ListStore].
func (s Segments) Erased(ctx context.Context, ids []user.ID) (map[user.ID]bool, error) {
	return erased(ctx, s.DB, ids)
}

func erased(ctx context.Context, db *pg.DB, ids []user.ID) (map[user.ID]bool, error) {
	rows := pg.Rows(ctx, db.Pool, `select user_id from erased_users where user_id = any($1)`, ids)
	found := map[user.ID]bool{}
	var id user.ID
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error {
		found[id] = true
		return nil
	})
	return found, pg.Translate(err)
}

// ErasedSince returns the users who were erased since the instant, and the database's time.
func (s Users) ErasedSince(ctx context.Context, since time.Time) (ids []user.ID, now time.Time, err error) {
	err = s.Pool.QueryRow(ctx, `select coalesce(array_agg(user_id) filter (where user_id is not null), '{}'), statement_timestamp()
		from (select user_id from erased_users where erased_at >= $1) e`, since).Scan(&ids, &now)
	return ids, now, pg.Translate(err)
}

// Erasure returns when and by whom the user was erased, or nil.
func (s Users) Erasure(ctx context.Context, id user.ID) (*user.Erasure, error) {
	var e user.Erasure
	err := s.Pool.QueryRow(ctx, `select erased_at, erased_by from erased_users where user_id = $1`, id).Scan(&e.At, &e.By)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &e, pg.Translate(err)
}

// LiftErasure lets the user be known again; see [user.ErasureStore].
func (s Users) LiftErasure(ctx context.Context, id user.ID, e staff.Entry) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.Change(ctx, tx, user.ErrNotErased, `delete from erased_users where user_id = $1`, id); err != nil {
			return err
		}
		return pg.InsertAudit(ctx, tx, e)
	})
}

// Erase deletes a user; see [user.ErasureStore]. The erasure is recorded first, so that no row
// about the user is added after its table was searched. The user's own row is deleted last: its
// contacts are needed to find all other rows, also when an interrupted erasure is repeated.
func (s Users) Erase(ctx context.Context, id user.ID, e staff.Entry) error {
	before, err := s.noteErasure(ctx, id, e)
	for tries := 1; pg.LockTimedOut(err) && tries < erasureTries; tries++ {
		before, err = s.noteErasure(ctx, id, e)
	}
	if err != nil {
		return err
	}
	u, unknown := s.User(ctx, id)
	if unknown != nil && !errors.Is(unknown, user.ErrNotFound) {
		return unknown
	}
	if err := s.eraseTraces(ctx, id, u.Traces()); err != nil {
		return err
	}
	if before && unknown != nil {
		return unknown
	}
	return s.Tx(ctx, func(tx pgx.Tx) error {
		if err := leaveLists(ctx, tx, id); err != nil {
			return err
		}
		if err := leaveDoors(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `delete from users where id = $1`, id); err != nil {
			return err
		}
		if err := pg.InsertAudit(ctx, tx, e); err != nil {
			return err
		}
		return pg.Announce(ctx, tx, event.UsersChanged, event.Users{FromUser: int64(id), ToUser: int64(id)})
	})
}

// An erasure is recorded while no user is being written. Every later writer waits behind the
// waiting erasure, so the erasure waits briefly and tries again: the current writer may be held
// up by a lock on a user's row.
const (
	erasureWait  = 50 * time.Millisecond
	erasureTries = 100
)

// noteErasure reports whether the erasure was noted before.
func (s Users) noteErasure(ctx context.Context, id user.ID, e staff.Entry) (before bool, err error) {
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if err := pg.LimitLocks(pg.WaitingFor(ctx, erasureWait), tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+pg.Erasing+`)`); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `insert into erased_users (user_id, erased_by) values ($1, $2) on conflict do nothing`, id, pg.AuditActor(e.Actor))
		before = err == nil && tag.RowsAffected() == 0
		return err
	})
	return before, err
}

// ofUser are the statements about rows that are stored under the user's id $1. Exceptions and
// reports are kept without the provider's words: counts are made from them.
var ofUser = []string{
	// The counters of drops to come are told.
	`with gone as (delete from reservations where user_id = $1 returning template_id, slots)
	insert into outbox (topic, payload) select '` + event.ReservationsChanged + `', jsonb_build_object('at', now(), 'removed', jsonb_agg(
		jsonb_build_object('template_id', g.template_id::text, 'bits', g.slots::text, 'users', 1)))
	from gone g join templates t on t.id = g.template_id where t.opens_at > now() having count(*) > 0`,
	`delete from former_reservations where user_id = $1`,
	`delete from series_reservations where user_id = $1`,
	// Entries count as left. The sealed list has no user ids and stays.
	`with gone as (delete from draw_entries where user_id = $1 returning template_id, state), less as (
		update draws d set won = d.won - (g.state = 'won')::int, struck = d.struck - (g.state = 'struck')::int, lapsed = d.lapsed - (g.state = 'lapsed')::int from gone g where d.template_id = g.template_id and g.state <> 'entered')
	insert into draw_counts as c (template_id, shard, departed) select template_id, 0, 1 from gone
	on conflict (template_id, shard) do update set departed = c.departed + 1`,
	`delete from inbox_reads where user_id = $1`,
	`delete from door_tests where user_id = $1`,
	`update door_codes set user_id = null where user_id = $1`, // the code stays used
	// The signs of claims of the last 30 days. The figures of reviews stay.
	`delete from claim_signs s using (select distinct template_id from coupons where user_id = $1) c where s.template_id = c.template_id and s.user_id = $1`,
	`update claim_counts n set household = null from (select distinct template_id from coupons where user_id = $1) c
	where n.template_id = c.template_id and n.user_id = $1 and n.household is not null`,
	`update review_coupons set appeal = '' where user_id = $1 and appeal <> ''`,
	`delete from checked_rows where user_id = $1`,
	`update orders set user_id = null where user_id = $1`,
	`update coupon_orders set user_id = null where user_id = $1`,
	// With the devices that registered for them.
	`delete from wallet_passes where user_id = $1`,
	`delete from phone_verifications where user_id = $1`,
	`delete from user_changes where user_id = $1`,
	`update exceptions set detail = '' where user_id = $1 and detail <> ''`,
	`update feedback_reports set cause = '' where user_id = $1 and cause <> ''`,
	`update grant_rows set input = '' where user_id = $1 and input <> ''`,
	`update channel_tests set recipient = '', detail = '' where by_user and recipient = $1::bigint::text`,
	`delete from idempotency_keys where actor = 'user:' || $1::bigint`,
	// Rows of files that were refused, as the report shows them.
	`update job_errors set row = '', error = '', because = '[]' where row ~ ('(^|[^0-9])' || $1::bigint || '([^0-9]|$)')`,
	// Files cannot be searched: they may be compressed. Files that a job is reading are removed
	// by housekeeping when the job is over.
	`delete from uploads u where $1::bigint > 0 and not exists (select from jobs j where j.upload_id = u.id and j.finished_at is null)`,
}

// A textColumn is a column whose texts can contain a user's contacts.
type textColumn struct{ table, column, kind string }

// traces are all of them. A test compares them with the tables there are.
var traces = []textColumn{
	{"audit", "reason", "text"}, {"audit", "before", "jsonb"}, {"audit", "after", "jsonb"},
	{"job_errors", "row", "text"}, {"job_errors", "error", "text"}, {"job_errors", "because", "jsonb"},
	{"jobs", "title", "text"}, {"jobs", "detail", "text"}, {"jobs", "params", "jsonb"}, {"jobs", "cursor", "jsonb"}, {"jobs", "result", "jsonb"},
	{"uploads", "name", "text"}, {"grant_rows", "input", "text"}, {"grant_rows", "result", "text"},
	{"dead_letter_groups", "sample", "text"}, {"dead_letter_jobs", "filter", "jsonb"},
	{"dead_messages", "reason", "text"}, {"channel_tests", "recipient", "text"}, {"channel_tests", "detail", "text"},
	{"provider_calls", "error", "text"},
	{"campaign_requests", "reason", "text"}, {"campaign_requests", "decided_reason", "text"},
	{"segments", "name", "text"}, {"segments", "rule", "jsonb"}, {"campaigns", "segment_rule", "jsonb"}, {"campaign_requests", "segment_rule", "jsonb"},
	{"outbox", "payload", "jsonb"}, {"reviews", "reason", "text"},
	{"hook_attempts", "error", "text"}, {"hook_attempts", "response", "text"}, {"hook_endpoints", "description", "text"}, {"hook_endpoints", "last_error", "text"},
}

// reasonsOfCoupons are the reasons that staff wrote for changes of the user's coupons. The table
// is too large to be read as a whole.
var reasonsOfCoupons = textColumn{"coupon_operations", "reason", "text"}

// erasedMark stands where a contact stood.
const erasedMark = "[erased]"

// sql replaces every text of $1 in the column by the mark.
func (t textColumn) sql(n int) string {
	was := t.column + "::text"
	now := was
	for i := range n {
		now = fmt.Sprintf(`replace(%s, $%d::text, '%s')`, now, i+1, erasedMark)
	}
	found := make([]string, n)
	for i := range n {
		found[i] = fmt.Sprintf(`strpos(%s, $%d::text) > 0`, was, i+1)
	}
	return fmt.Sprintf(`update %s set %s = (%s)::%s where %s`, t.table, t.column, now, t.kind, strings.Join(found, " or "))
}

// eraseTraces removes rows that are stored under the user's id, and the texts by which the user
// can be recognised. Each statement is one transaction and may be repeated.
func (s Users) eraseTraces(ctx context.Context, id user.ID, texts []string) error {
	for _, sql := range ofUser {
		if _, err := s.Pool.Exec(ctx, sql, id); err != nil {
			return pg.Translate(err)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	args := make([]any, len(texts))
	for i, text := range texts {
		args[i] = text
	}
	for _, t := range traces {
		if _, err := s.Pool.Exec(ctx, t.sql(len(texts)), args...); err != nil {
			return pg.Translate(err)
		}
	}
	// This includes codes that other users requested for the number.
	if _, err := s.Pool.Exec(ctx, `delete from phone_verifications where phone = any($1) or number = any($1)`, texts); err != nil {
		return pg.Translate(err)
	}
	for _, list := range []string{"suppressions", "soft_bounces"} {
		if _, err := s.Pool.Exec(ctx, `delete from `+list+` where address = any($1)`, texts); err != nil {
			return pg.Translate(err)
		}
	}
	// Changes of these addresses that other cells are still to be told of.
	if _, err := s.Pool.Exec(ctx, `delete from copies_due where name = 'suppressions' and key[1] = any($1)`, texts); err != nil {
		return pg.Translate(err)
	}
	own := fmt.Sprintf(`coupon_id in (select id from coupons where user_id = %d) and (`, id)
	sql := strings.Replace(reasonsOfCoupons.sql(len(texts)), " where ", " where "+own, 1) + ")"
	if _, err := s.Pool.Exec(ctx, sql, args...); err != nil {
		return pg.Translate(err)
	}
	// Answers to idempotency keys are kept for a day. Answers to the user's own requests are
	// stored under the user's id.
	_, err := s.Pool.Exec(ctx, `delete from idempotency_keys where actor >= 'key:' and actor < 'key;'
		and exists (select from unnest($1::text[]) as t where position(convert_to(t, 'UTF8') in body) > 0 or strpos(header::text, t) > 0)`, texts)
	return pg.Translate(err)
}

// leaveLists takes the user out of every list.
func leaveLists(ctx context.Context, tx pgx.Tx, id user.ID) error {
	rows := pg.Rows(ctx, tx, `select segment_id, chunk, members from segment_members where chunk = $1 order by segment_id for update`, int64(id)>>chunkBits)
	type part struct {
		segment, chunk int64
		raw            []byte
	}
	parts, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) { return p, row.Scan(&p.segment, &p.chunk, &p.raw) })
	if err != nil {
		return err
	}
	for _, p := range parts {
		set, err := readChunk(p.raw)
		if err != nil {
			return err
		}
		if !set.Contains(uint64(id)) {
			continue
		}
		set.Remove(uint64(id))
		raw, err := set.ToBytes()
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update segment_members set members = $3, count = $4 where segment_id = $1 and chunk = $2`,
			p.segment, p.chunk, raw, int64(set.GetCardinality())); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update segments set members = members - 1, counted_at = now(), updated_at = now() where id = $1 and members > 0`, p.segment); err != nil {
			return err
		}
	}
	return nil
}
