package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"dropbell/domain/user"
)

// LockWaitlist locks the counters of template $1's waitlist. Users join under the same lock. It is
// a statement of its own: what users have joined meanwhile is seen by the next statement.
const LockWaitlist = `select from waitlists where template_id = $1 for update`

// PutAside counts $2 coupons that are kept for users who wait for template $1. put_at is when stock that is offered
// to no user came, or last moved.
const PutAside = `update waitlists set put = put + $2, put_at = case when put - released - filled <= offered then clock_timestamp() else put_at end where template_id = $1`

// KeepForWaiters puts n coupons that have come into the template's stock aside if users wait for
// the template; otherwise they are for taps. The caller holds the lock of the template's row, and
// calls it only for a template that has a waitlist. Stock of a draw that is not over stays for its winners:
// what they leave is kept when the draw ends.
func KeepForWaiters(ctx context.Context, tx pgx.Tx, templateID, n int64) error {
	if _, err := tx.Exec(ctx, LockWaitlist, templateID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `with kept as (
			`+PutAside+` and waiting > 0
				and not exists (select from draws d where d.template_id = $1 and d.state not in ('done', 'cancelled')) returning template_id
		)
		update templates t set held = t.held + $2 from kept where t.id = kept.template_id`, templateID, n)
	return err
}

// EnterWaiters puts users at their ranks of the template's waitlist, over the app's inbox, and counts them. Users
// who are on it already keep their places. The caller holds no lock of the waitlist; the counters exist.
func EnterWaiters(ctx context.Context, tx pgx.Tx, templateID int64, users, ranks []int64) error {
	if _, err := tx.Exec(ctx, LockWaitlist, templateID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `with entered as (
			insert into waiters (template_id, user_id, rank, joined_at)
			select $1, user_id, rank, clock_timestamp() from unnest($2::bigint[], $3::bigint[]) as a (user_id, rank) order by user_id
			on conflict do nothing returning 1
		)
		update waitlists set joined = joined + n, waiting = waiting + n from (select count(*) as n from entered) e where template_id = $1`, templateID, users, ranks)
	return err
}

// StrikeWaiter takes the user off the template's waitlist, with the reason struck, if the user waits there.
func StrikeWaiter(ctx context.Context, tx pgx.Tx, templateID int64, who user.ID) error {
	if _, err := tx.Exec(ctx, LockWaitlist, templateID); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `with former as (
			select state from waiters where template_id = $1 and user_id = $2 and state in ('waiting', 'offered')
		), struck as (
			update waiters w set state = 'skipped', reason = 'struck', changed_at = clock_timestamp() from former f where w.template_id = $1 and w.user_id = $2
		)
		update waitlists l set waiting = l.waiting - 1, offered = l.offered - (f.state = 'offered')::int, skipped = l.skipped + 1 from former f where l.template_id = $1`,
		templateID, who)
	return err
}
