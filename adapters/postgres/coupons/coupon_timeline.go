package coupons

import (
	"context"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// couponStep maps the operation log to the timeline's words.
var couponStep = map[coupon.Step]reminder.StepKind{
	coupon.StepLock: reminder.StepCouponLocked, coupon.StepConfirm: reminder.StepCouponUsed, coupon.StepRelease: reminder.StepCouponReleased,
	coupon.StepTimeout: reminder.StepCouponTimedOut, coupon.StepRefund: reminder.StepCouponRefunded, coupon.StepExpire: reminder.StepCouponExpired,
	coupon.StepRevoke: reminder.StepCouponRevoked, coupon.StepRestore: reminder.StepCouponUsed,
	coupon.StepSuspend: reminder.StepCouponSuspended, coupon.StepReinstate: reminder.StepCouponRestored, appealed: reminder.StepCouponAppealed,
}

// householdOfUser is the household for which coupons of user $1 count in template t.
const householdOfUser = `(select case when c.user_id is not null then c.household else household_number(u.household) end
        from (values (1)) i (n) left join claim_counts c on c.template_id = t.id and c.user_id = $1 left join users u on u.id = $1)`

// couponStepsSQL returns when user $1 got coupons of template $2, the later changes of these
// coupons, the notices before expiry that are still to come or were not sent in time, and the steps
// of the user's wait. A
// coupon that was given back after its expiry has expired as well. A release that arrived
// before its lock changed nothing. In a drop with a household limit it tells of the coupons of the household's other users.
var couponStepsSQL = `
with mine as (
	select id, issued_at, origin from coupons where user_id = $1 and template_id = $2 order by id limit 1000
), done as (
	select o.* from mine join coupon_operations o on o.coupon_id = mine.id where o.outcome in ('done', 'undone') and o.from_state <> o.to_state
)
select id, issued_at, '', origin, '', '', 0 as op, 0 as part from mine
union all
select coupon_id, at, step, '', order_id, actor, id, 0 from done
union all
select coupon_id, appealed_at, 'appeal', '', '', '', (select max(id) from done d where d.coupon_id = r.coupon_id and d.at <= r.appealed_at), 1
from review_coupons r where coupon_id in (select id from mine) and appealed_at is not null
union all
select coupon_id, at, 'expire', '', '', '', id, 1 from done where to_state = 'expired' and step <> 'expire'
union all
select 0, due_at, case status when 0 then 'notice' else 'missed' end, reason, '', '', 0, 2 from notices n
where user_id = $1 and template_id = $2 and run_id is null and (status <> 0 or ` + liveSQL + `)
union all
select 0, joined_at, 'waiting', case when state = 'waiting' then ` + aheadSQL + `::text else '' end, '', '', 0, 3 from waiters w where user_id = $1 and template_id = $2
union all
select 0, h.at, 'household', h.n || '/' || t.household_limit, '', '', 0, 5 from templates t
    cross join lateral (select max(k.issued_at) as at, count(*) as n from (select ` + householdOfUser + ` as number) own
        join claim_counts c on c.template_id = t.id and c.household = own.number join coupons k on k.user_id = c.user_id and k.template_id = t.id
        where c.user_id <> $1) h
    where t.id = $2 and t.household_limit > 0 and h.n > 0
union all
select 0, offered_at, 'offered', '', '', '', 0, 4 from waiters where user_id = $1 and template_id = $2 and offered_at is not null
union all
select 0, lapsed_at, 'lapsed', '', '', '', 0, 4 from waiters where user_id = $1 and template_id = $2 and lapsed_at is not null
union all
select 0, changed_at, state, reason, '', '', 0, 4 from waiters where user_id = $1 and template_id = $2 and state in ('left', 'skipped')
order by 1, op, part`

// The names that [couponStepsSQL] gives to notices that have no batch.
const (
	plannedNotice coupon.Step = "notice"
	missedNotice  coupon.Step = "missed"
	// household is the last coupon of other users of the household.
	household coupon.Step = "household"
	// appealed is the name of an owner's appeal, which changes no coupon.
	appealed coupon.Step = "appeal"
)

// aheadSQL counts the users before user w of a waitlist, up to [waitlist.MaxAhead].
var aheadSQL = fmt.Sprintf(`(select count(*) from (select from waiters b where b.template_id = w.template_id and b.state = 'waiting'
    and (b.rank, b.joined_at, b.user_id) < (w.rank, w.joined_at, w.user_id) limit %d) a)`, waitlist.MaxAhead)

// waitStep maps what [couponStepsSQL] tells of the waitlist to the timeline's words.
var waitStep = map[coupon.Step]reminder.StepKind{coupon.Step(waitlist.Waiting): reminder.StepWaiting, coupon.Step(waitlist.Left): reminder.StepLeftWaitlist,
	coupon.Step(waitlist.Skipped): reminder.StepSkipped, coupon.Step(waitlist.Offered): reminder.StepOffered, coupon.Step(waitlist.Lapsed): reminder.StepLapsed}

// Timeline returns when and how the user got coupons of the template, and the later steps of
// each coupon.
func (s CouponSteps) Timeline(ctx context.Context, by user.ID, templateID int64) ([]reminder.Step, error) {
	list, err := pgx.CollectRows(pg.Rows(ctx, s.Pool, couponStepsSQL, by, templateID), func(row pgx.CollectableRow) (reminder.Step, error) {
		line := reminder.Step{Kind: reminder.StepClaimed}
		var step coupon.Step
		var op, part int64 // the order only
		err := row.Scan(&line.CouponID, &line.At, &step, &line.Reason, &line.OrderID, &line.By, &op, &part)
		switch step {
		case "":
		case plannedNotice:
			at := line.At
			line.Kind, line.Message, line.Planned = reminder.StepExpected, delivery.KindNotice, &at
		case missedNotice:
			line.Kind, line.Message, line.Outcome = reminder.StepOutcome, delivery.KindNotice, delivery.Expired
		case household:
			line.Kind = reminder.StepHousehold
		default:
			line.Kind = couponStep[step]
			if kind, waits := waitStep[step]; waits {
				line.Kind = kind
			}
			if n, err := strconv.ParseInt(line.Reason, 10, 64); err == nil && line.Kind == reminder.StepWaiting {
				line.Reason = string(waitlist.AheadOf(n))
			}
		}
		return line, err
	})
	return list, pg.Translate(err)
}
