package move

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/cell"
)

// quietFor is how long before an opening, or a reminder, a shop is no longer moved.
const quietFor = `interval '1 hour'`

// busySQL returns why the shop $1 cannot be moved now, if there is a reason.
const busySQL = `
select why from (
    select format('drop %s is open, or opens within an hour', id) as why from templates t
        where shop_number = $1 and state in ('published', 'paused') and closes_at > clock_timestamp()
            and opens_at - coalesce((select max(d.lead_minutes) from doors d where d.template_id = t.id), 0) * interval '1 minute' <= clock_timestamp() + ` + quietFor + `
    union all select format('door %s of drop %s is for a segment, whose number is one of the installation', d.place, t.id) from templates t join doors d on d.template_id = t.id
        where t.shop_number = $1 and d.segment_id is not null and (t.state = 'draft' or t.state in ('published', 'paused') and t.closes_at > clock_timestamp())
    union all select format('reminders of drop %s are sent, or are due within an hour', t.id) from templates t join slots s on s.template_id = t.id
        where t.shop_number = $1 and (s.state in ('firing', 'sending') or s.state = 'waiting' and s.due_at <= clock_timestamp() + ` + quietFor + `)
    union all select format('announcement %s of drop %s is not finished', a.id, t.id) from templates t join announcements a on a.template_id = t.id
        where t.shop_number = $1 and a.state <> 'finished'
    union all select format('campaign %s is %s and not finished', id, state) from campaigns
        where shop_number = $1 and (state in ('scheduled', 'running', 'paused') or state in ('cancelled', 'failed', 'finished') and started_at is not null and settled_at is null)
    union all select format('draft %s is for a segment, whose number is one of the installation: change its audience first', id) from campaigns
        where shop_number = $1 and state = 'draft' and audience ->> 'kind' = 'segment_id'
    union all select format('door %s of draft %s is for a segment, whose number is one of the installation: change its doors first', d.place, t.id) from templates t join doors d on d.template_id = t.id
        where t.shop_number = $1 and t.state = 'draft' and d.segment_id is not null
    union all select format('approval of campaign %s is asked for', campaign_id) from campaign_requests where shop_number = $1 and state = 'asked'
    union all select format('notices of drop %s are being sent', t.id) from templates t join notice_runs r on r.template_id = t.id
        where t.shop_number = $1 and r.settled_at is null
    union all select format('batch %s is not finished', b.id) from batches b where b.state <> 'done' and (
        b.kind <> 'campaign' and exists (select from templates t where t.id = b.template_id and t.shop_number = $1)
        or b.kind = 'campaign' and exists (select from campaigns c where c.id = b.owner_id and c.shop_number = $1))
    union all select format('job %s is not finished', id) from jobs where shop_number = $1 and state in ('waiting', 'running')
    union all select format('the draw of drop %s is not done', t.id) from templates t join draws d on d.template_id = t.id
        where t.shop_number = $1 and d.state not in ('done', 'cancelled')
    union all select format('rehearsal %s of drop %s is not over', id, template_id) from rehearsals where shop_number = $1 and state in ('asked', 'running')
    union all select format('group %s of the review of drop %s is being decided', v.id, v.template_id) from reviews v
        where v.shop_number = $1 and v.state in ('proposed', 'suspending', 'returning', 'restoring')
    union all select format('codes of drop %s are being generated', t.id) from templates t join code_batches b on b.template_id = t.id
        where t.shop_number = $1 and b.state = 'generating'
    union all select format('campaign %s, which is not of this shop, gives coupons of drop %s', c.id, t.id) from campaigns c join templates t on t.id = c.grant_template_id
        where t.shop_number = $1 and c.shop_number is distinct from $1
    union all select format('the shop has provider %s of its own, whose number is one of the installation: enter it in the other one and delete it here', id) from providers
        where shop_number = $1 and deleted_at is null
) w limit 1`

// refuse returns [cell.ErrNotMovable] if something of the shop is under way, or if the target
// cannot take it.
func (r *move) refuse(ctx context.Context, source pgx.Tx) error {
	why, err := pgx.CollectRows(pg.Rows(ctx, source, busySQL, r.shop), pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(why) > 0 {
		return cell.ErrNotMovable.Because("%s", why[0])
	}
	return r.refuseCodes(ctx, source)
}

// refuseCodes refuses redeem codes whose serial numbers the target has given to other codes.
func (r *move) refuseCodes(ctx context.Context, source pgx.Tx) error {
	var ids, first, last []int64
	err := source.QueryRow(ctx, `select coalesce(array_agg(id), '{}'), coalesce(array_agg(first_serial), '{}'), coalesce(array_agg(first_serial + count), '{}')
		from code_batches where template_id = any($1)`, r.moved.Drops).Scan(&ids, &first, &last)
	if err != nil || len(ids) == 0 {
		return err
	}
	var taken bool
	err = r.Target.Pool.QueryRow(ctx, `select exists (select from unnest($1::bigint[], $2::bigint[], $3::bigint[]) m (id, first, last)
		join code_batches b on b.id <> m.id and int8range(b.first_serial, b.first_serial + b.count) && int8range(m.first, m.last))`, ids, first, last).Scan(&taken)
	if err == nil && taken {
		return cell.ErrNotMovable.Because("the other database has given serial numbers of the shop's redeem codes to codes of its own")
	}
	return err
}

// settled waits until all events that the source has announced so far are handled. Writes of the
// shop are refused, so none of them is added.
func (r *move) settled(ctx context.Context, source pgx.Tx) error {
	var waiting, relayed int64
	err := source.QueryRow(ctx, `select (select coalesce(max(id), 0) from outbox), (select last_value - (not is_called)::int from relayed_events_seq_seq)`).Scan(&waiting, &relayed)
	if err != nil {
		return err
	}
	return r.await(ctx, "the events of this installation are not handled", func() (done bool, err error) {
		var left bool
		err = source.QueryRow(ctx, `select exists (select from outbox where id <= $1)`, waiting).Scan(&left)
		if err != nil || left {
			return false, err
		}
		if waiting > 0 { // the last of them have been relayed meanwhile
			err = source.QueryRow(ctx, `select last_value - (not is_called)::int from relayed_events_seq_seq`).Scan(&relayed)
			waiting = 0
		}
		if err == nil {
			err = source.QueryRow(ctx, `select settled >= $1 from event_relay`, relayed).Scan(&done)
		}
		return done, err
	})
}

// passed waits until the target has passed over the coupons that were copied: those without their
// drop are planned no notices and are not announced to servers of shops.
func (r *move) passed(ctx context.Context, source pgx.Tx) error {
	var newest int64
	if err := source.QueryRow(ctx, `select coalesce(max(id), 0) from coupons where template_id = any($1)`, r.moved.Drops).Scan(&newest); err != nil {
		return err
	}
	return r.await(ctx, "the other installation has not passed over the coupons that were copied", func() (done bool, err error) {
		err = r.Target.Pool.QueryRow(ctx, `select (select planned_to from notice_cursor) >= $1 and (select planned_to from hook_cursor) >= $1`, newest).Scan(&done)
		return done, err
	})
}

// toldSQL returns the ids of the events that servers of the shop $1 were told when its drops had
// opened, or had ended. The ids are made as package work makes them.
const toldSQL = `
select coalesce(array_agg(e.id::text), '{}') from templates t, lateral (values
    (lpad(to_hex(floor(extract(epoch from t.opens_at) * 1000)::bigint), 12, '0') || '7000' || lpad(to_hex(t.id), 16, '0')),
    (lpad(to_hex(floor(extract(epoch from t.ended_at) * 1000)::bigint), 12, '0') || '7001' || lpad(to_hex(t.id), 16, '0'))) m (hex),
    lateral (select m.hex::uuid as id) e
where t.shop_number = $1 and t.state <> 'draft' and m.hex is not null and greatest(t.opens_at, t.ended_at) > clock_timestamp() - interval '3 days'
    and exists (select from handled_events h where h.handler = 'hooks' and h.event_id = e.id)`

// told tells the target which openings and ends of drops it must not tell servers of the shop again.
func (r *move) told(ctx context.Context, source pgx.Tx) error {
	var ids []string
	if err := source.QueryRow(ctx, toldSQL, r.shop).Scan(&ids); err != nil || len(ids) == 0 {
		return err
	}
	_, err := write(ctx, r.Target, "move.told", `insert into handled_events (handler, event_id) select 'hooks', id::uuid from unnest($1::text[]) id on conflict do nothing`, ids)
	return err
}

// await calls done until it returns true, or returns [cell.ErrNotMovable].
func (r *move) await(ctx context.Context, why string, done func() (bool, error)) error {
	patience := r.Patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	for end := time.Now().Add(patience); ; {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		if time.Now().After(end) {
			return cell.ErrNotMovable.Because("%s; does its worker run?", why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// userTables are copied for users with something in the shop, and stay in the source. Rows that
// the target has are kept unless they are older.
var userTables = []struct{ name, of, only string }{
	{"users", `t.id = any({users})`, ` and t.updated_at < excluded.updated_at`},
	{"inbox_reads", `t.user_id = any({users})`, ` and t.read_through < excluded.read_through`},
	{"sms_stops", `t.user_id = any({users})`, ` and false`},
	{"suppressions", `t.address in (select lower(u.email) from users u where u.id = any({users}) and u.email <> '')`, ` and false`},
}

// nextUsersSQL returns up to pageRows users after $1 that have something in the drops $2 or the
// shop $3.
const nextUsersSQL = `
select array(select u.id from users u where u.id > $1 and (exists (select from reservations r where r.user_id = u.id and r.template_id = any($2))
    or exists (select from coupons c where c.user_id = u.id and c.template_id = any($2)) or exists (select from orders o where o.user_id = u.id and o.shop_number = $3))
order by u.id limit $4)`

// copyUsers copies contacts and opt-outs. Users who were erased in the target stay erased.
func (r *move) copyUsers(ctx context.Context, source pgx.Tx) error {
	for after := int64(0); ; {
		var ids []int64
		if err := source.QueryRow(ctx, nextUsersSQL, after, r.moved.Drops, r.shop, pageRows).Scan(&ids); err != nil || len(ids) == 0 {
			return err
		}
		after = ids[len(ids)-1]
		if err := r.bringUsers(ctx, source, ids); err != nil {
			return err
		}
	}
}

func (r *move) bringUsers(ctx context.Context, source pgx.Tx, ids []int64) error {
	var alive []int64
	return inTx(ctx, r.Target, "move.users", func(target pgx.Tx) error {
		if _, err := target.Exec(ctx, `select pg_advisory_xact_lock_shared(`+pg.Erasing+`)`); err != nil {
			return err
		}
		if err := target.QueryRow(ctx, `select array(select u from unnest($1::bigint[]) u where not exists (select from erased_users e where e.user_id = u))`, ids).Scan(&alive); err != nil {
			return err
		}
		if same, err := sameUsers(ctx, source, target, alive); err != nil || same {
			return err
		}
		for _, t := range userTables {
			s, err := shapeOf(ctx, source, t.name)
			if err != nil {
				return err
			}
			of := strings.ReplaceAll(t.of, "{users}", array(alive))
			if err := copyRows(ctx, source, target, t.name, s.columns, `select `+list(s.columns)+` from `+t.name+` t where `+of); err != nil {
				return err
			}
			if t.name == "sms_stops" { // a user who opted in since in the target has no such row
				if _, err := target.Exec(ctx, `delete from incoming i where not exists (select from users u where u.id = i.user_id and u.opt_outs & 4 <> 0)`); err != nil {
					return err
				}
			}
			if _, err := upsert(ctx, target, t.name, s, t.only); err != nil {
				return err
			}
			if _, err := target.Exec(ctx, `drop table incoming`); err != nil {
				return err
			}
		}
		return nil
	})
}

// sameUsers reports whether the users are in the target as they are in the source.
func sameUsers(ctx context.Context, source, target pgx.Tx, ids []int64) (bool, error) {
	const sum = `select count(*), coalesce(sum(hashtextextended(row(id, updated_at)::text, 0)::numeric), 0)::text from users where id = any($1)`
	var here, there sums
	err := source.QueryRow(ctx, sum, ids).Scan(&here.rows, &here.hash)
	if err == nil {
		err = target.QueryRow(ctx, sum, ids).Scan(&there.rows, &there.hash)
	}
	return here == there, err
}
