package pg

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// LockWaitlist locks the counters of template $1's waitlist. Users join under the same lock. It is
// a statement of its own: what users have joined meanwhile is seen by the next statement.
const LockWaitlist = `select from waitlists where template_id = $1 for update`

// PutAside counts $2 coupons that are kept for users who wait for template $1.
const PutAside = `update waitlists set put = put + $2, put_at = case when put - released - filled = 0 then clock_timestamp() else put_at end where template_id = $1`

// KeepForWaiters puts n coupons that have come into the template's stock aside if users wait for
// the template; otherwise they are for taps. The caller holds the lock of the template's row, and
// calls it only for a template that has a waitlist.
func KeepForWaiters(ctx context.Context, tx pgx.Tx, templateID, n int64) error {
	if _, err := tx.Exec(ctx, LockWaitlist, templateID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `with kept as (
			`+PutAside+` and waiting > 0 returning template_id
		)
		update templates t set held = t.held + $2 from kept where t.id = kept.template_id`, templateID, n)
	return err
}
