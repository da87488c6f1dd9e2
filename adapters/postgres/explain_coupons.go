package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/reminder"
	"dropbell/domain/user"
)

// CouponSteps returns when the user got coupons of the template, and how.
func (r *Reservations) CouponSteps(ctx context.Context, by user.ID, templateID int64) ([]reminder.Step, error) {
	rows, err := r.pool.Query(ctx, `select id, issued_at, origin from coupons
		where user_id = $1 and template_id = $2 order by id limit 1000`, by, templateID)
	if err != nil {
		return nil, translate(err)
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (reminder.Step, error) {
		s := reminder.Step{Kind: reminder.StepClaimed}
		err := row.Scan(&s.CouponID, &s.At, &s.Reason)
		return s, err
	})
	return list, translate(err)
}
