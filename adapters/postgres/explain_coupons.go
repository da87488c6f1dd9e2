package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/coupon"
	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// couponStep maps the operation log to the timeline's words.
var couponStep = map[coupon.Step]reminder.StepKind{
	coupon.StepLock: reminder.StepCouponLocked, coupon.StepConfirm: reminder.StepCouponUsed, coupon.StepRelease: reminder.StepCouponReleased,
	coupon.StepTimeout: reminder.StepCouponTimedOut, coupon.StepRefund: reminder.StepCouponRefunded, coupon.StepExpire: reminder.StepCouponExpired,
	coupon.StepRevoke: reminder.StepCouponRevoked,
}

// couponStepsSQL finds when user $1 got coupons of template $2, and what
// changed them since. What was given back after its time has expired as well;
// a release that overtook its lock changed nothing.
const couponStepsSQL = `
with mine as (
	select id, issued_at, origin from coupons where user_id = $1 and template_id = $2 order by id limit 1000
), done as (
	select o.* from mine join coupon_operations o on o.coupon_id = mine.id where o.outcome = 'done' and o.from_state <> o.to_state
)
select id, issued_at, '', origin, '', '', 0 as op, 0 as part from mine
union all
select coupon_id, at, step, '', order_id, actor, id, 0 from done
union all
select coupon_id, at, 'expire', '', '', '', id, 1 from done where to_state = 'expired' and step <> 'expire'
order by 1, op, part`

// CouponSteps returns when the user got coupons of the template, how, and
// what became of each.
func (r *Reservations) CouponSteps(ctx context.Context, by user.ID, templateID int64) ([]reminder.Step, error) {
	rows, err := r.pool.Query(ctx, couponStepsSQL, by, templateID)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (reminder.Step, error) {
		s := reminder.Step{Kind: reminder.StepClaimed}
		var step coupon.Step
		var op, part int64 // the order only
		err := row.Scan(&s.CouponID, &s.At, &step, &s.Reason, &s.OrderID, &s.By, &op, &part)
		if step != "" {
			s.Kind = couponStep[step]
		}
		return s, err
	})
	return list, translate(err)
}
