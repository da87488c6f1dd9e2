package coupons

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/event"
)

// waitingChangesSQL selects the changes of coupons in the events of waiting.
const waitingChangesSQL = `select c.value as change from waiting w, jsonb_array_elements(w.payload -> 'changes') c where w.topic = '` + event.CouponsChanged + `'
    union all select w.payload from waiting w where w.topic = '` + event.CouponChanged + `'`

// countedTalliesSQL computes the sums that the tallies of template $1 must have now: the sums
// of the rows minus the sums that waiting events will add. Log lines are removed before
// coupons are, so the count of logged steps may only be too low.
var countedTalliesSQL = `
waiting as materialized (` + pg.WaitingEvents("coupon-tallies", event.CouponsChanged, event.CouponChanged, event.CouponsExpired) + `
), changes as (
    ` + waitingChangesSQL + `
), steps as (
    select coalesce(sum((e."to" = 'locked')::int - (e."from" = 'locked')::int), 0) as locked,
        coalesce(sum((e."to" = 'used')::int - (e."from" = 'used')::int), 0) as used,
        coalesce(sum((e."to" = 'expired')::int - (e."from" = 'expired')::int), 0) as expired,
        coalesce(sum((e."to" = 'revoked')::int - (e."from" = 'revoked')::int), 0) as revoked,
        coalesce(sum((e."to" = 'suspended')::int - (e."from" = 'suspended')::int), 0) as suspended,
        coalesce(sum(((e."to" = 'used')::int - (e."from" = 'used')::int) * e.discount), 0) as discounted,
        count(*) filter (where e.step in ('release', 'timeout')) as released, count(*) filter (where e.step = 'refund') - count(*) filter (where e.step = 'restore') as refunded
    from changes w, jsonb_to_record(w.change) as e (template_id text, step text, "from" text, "to" text, discount bigint)
    where e.template_id = $1::bigint::text
), swept as (
    select coalesce(sum(e.coupons), 0) as expired from waiting w, jsonb_to_recordset(w.payload -> 'expired') as e (template_id text, coupons bigint)
    where w.topic = '` + event.CouponsExpired + `' and e.template_id = $1::bigint::text
), stored as (
    select count(*) filter (where state = 'locked') as locked, count(*) filter (where state = 'used') as used,
        count(*) filter (where state = 'expired') as expired, count(*) filter (where state = 'revoked') as revoked,
        coalesce(sum(discount) filter (where state = 'used'), 0) as discounted
    from coupons where template_id = $1 and state in ('locked', 'used', 'expired', 'revoked')
), checked as (
    select count(*) as suspended from coupons where template_id = $1 and state = 'suspended'
), logged as (
    select count(*) filter (where o.step in ('release', 'timeout')) as released, count(*) filter (where o.step = 'refund') - count(*) filter (where o.step = 'restore') as refunded
    from coupons c join coupon_operations o on o.coupon_id = c.id
    where c.template_id = $1 and c.version > 0 and o.outcome in ('done', 'undone') and o.step in ('release', 'timeout', 'refund', 'restore') and o.from_state <> o.to_state
), kept as (
    select coalesce(max(locked), 0) as locked, coalesce(max(used), 0) as used, coalesce(max(expired), 0) as expired, coalesce(max(revoked), 0) as revoked,
        coalesce(max(discounted), 0) as discounted, coalesce(max(released), 0) as released, coalesce(max(refunded), 0) as refunded,
        coalesce(max(suspended), 0) as suspended
    from coupon_tallies where template_id = $1
), counted as (
    select s.locked - t.locked as locked, s.used + coalesce(g.used, 0) - t.used as used, s.expired + coalesce(g.expired, 0) - t.expired - w.expired as expired,
        s.revoked + coalesce(g.revoked, 0) - t.revoked as revoked, s.discounted + coalesce(g.discounted, 0) - t.discounted as discounted,
        greatest(k.released, l.released - t.released) as released, greatest(k.refunded, l.refunded - t.refunded) as refunded,
        h.suspended - t.suspended as suspended
    from stored s, checked h, steps t, swept w, logged l, kept k left join removed_coupons g on g.template_id = $1
), off as (
    select abs(c.locked - k.locked) + abs(c.used - k.used) + abs(c.expired - k.expired) + abs(c.revoked - k.revoked) + abs(c.discounted - k.discounted)
        + abs(c.released - k.released) + abs(c.refunded - k.refunded) + abs(c.suspended - k.suspended) as n from counted c, kept k
)`

// Off returns the total difference between the template's tallies and the rows, in coupons,
// steps and minor units added together; 0 if every event was counted once. Off reads all
// coupons of the template, so it is for audits.
func (s CouponTallies) Off(ctx context.Context, templateID int64) (n int64, err error) {
	err = s.Pool.QueryRow(ctx, `with `+countedTalliesSQL+` select coalesce((select n from off), 0)`, templateID).Scan(&n)
	return n, pg.Translate(err)
}

// Recount replaces tallies that differ from the rows and returns the difference. The result is
// exact even while events are handled: waiting events are left to their handler, which waits
// while the row is locked. The row is locked only if the tallies differ.
func (s CouponTallies) Recount(ctx context.Context, templateID int64) (off int64, err error) {
	if off, err = s.Off(ctx, templateID); err != nil || off == 0 {
		return 0, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "tallies"))
	}
	err = s.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `insert into coupon_tallies (template_id) values ($1) on conflict do nothing`, templateID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select from coupon_tallies where template_id = $1 for update`, templateID); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `with `+countedTalliesSQL+`, changed as (
			update coupon_tallies y set locked = c.locked, used = c.used, expired = c.expired, revoked = c.revoked, discounted = c.discounted,
				released = c.released, refunded = c.refunded, suspended = c.suspended from counted c, off where y.template_id = $1 and off.n <> 0
			) select coalesce((select n from off), 0)`, templateID).Scan(&off)
	})
	return off, errors.Join(err, pg.Recounted(ctx, s.DB, templateID, "tallies"))
}

// countedAloneSQL returns the drops that are counted without being asked for: drops whose coupons
// changed within a month, or expire later than a month ago. The statements that use it look each
// of these drops up, so that none reads all drops, however many there are.
const countedAloneSQL = `
select template_id as id from tally_changes where at > now() - interval '30 days'
union
select object_id from removals where step = 'coupons' and at > now() - interval '30 days'`

// ToRecount returns up to limit templates whose tallies are to be compared with the rows:
// templates whose tallies have changed since the last comparison, or were never compared.
// Templates with coupons that can still change are compared once a day.
func (s CouponTallies) ToRecount(ctx context.Context, limit int) ([]int64, error) {
	return s.ids(ctx, `select t.id from (`+countedAloneSQL+`) l
		cross join lateral (select * from templates where id = l.id limit 1) t
		left join lateral (select changed_at from coupon_tallies where template_id = l.id limit 1) y on true
		left join lateral (select at from figure_recounts where template_id = l.id and figure = 'tallies' limit 1) r on true
		where t.issued + t.returned > 0 and (r.at is null or y.changed_at > r.at or r.at < now() - interval '1 day'
			and coalesce(t.valid_until, t.closes_at + t.valid_hours * interval '1 hour') > r.at)
		order by r.at nulls first, t.id limit $1`, limit)
}

// Impossible returns up to limit templates whose tallies changed within two days and must be
// wrong: a sum is below 0, or the states have more coupons than were issued.
func (s CouponTallies) Impossible(ctx context.Context, limit int) ([]int64, error) {
	return s.ids(ctx, `select l.template_id from tally_changes l
		cross join lateral (select * from coupon_tallies where template_id = l.template_id limit 1) y
		cross join lateral (select issued, returned from templates where id = l.template_id limit 1) t
		where l.at > now() - interval '2 days' and (least(y.locked, y.used, y.expired, y.revoked, y.discounted, y.released, y.refunded, y.suspended) < 0
			or y.locked + y.used + y.expired + y.revoked + y.suspended > t.issued + t.returned) limit $1`, limit)
}

func (s CouponTallies) ids(ctx context.Context, sql string, limit int) ([]int64, error) {
	return pg.Collect(ctx, s.Pool, pgx.RowTo[int64], sql, limit)
}
