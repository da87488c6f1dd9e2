package coupons

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"dropbell/domain/coupon"
	"dropbell/domain/event"
)

// The groups of a [groupedUpdates] have at most the size of the product's groups, and as many
// run at the same time.
const (
	updatedGroup = 250
	updaters     = 2
)

// lockSQL and confirmSQL are the bare updates of a group's coupons $1 for the orders $2, without
// owner, rule, history, log or event.
const (
	lockSQL = `update coupons c set state = 'locked', order_id = o.order_id, discount = 1000, locked_at = now(), locked_until = now() + interval '1 hour'
		from unnest($1::bigint[], $2::text[]) as o (id, order_id) where c.id = o.id and c.state = 'unused' and c.expires_at > now()`
	confirmSQL = `update coupons c set state = 'used', used_at = now()
		from unnest($1::bigint[], $2::text[]) as o (id, order_id) where c.id = o.id and c.state = 'locked' and c.order_id = o.order_id`
)

// lockLoggedSQL and confirmLoggedSQL are [lockSQL] and [confirmSQL] with the writes that no store
// can do without: a line of the log for each step, with whose help a repetition is answered as
// the first request was, and an event of the lines. The event has no changes, so that the
// worker relays and handles it without counting.
var (
	lockLoggedSQL    = logged(lockSQL, "lock", "unused", "locked")
	confirmLoggedSQL = logged(confirmSQL, "confirm", "locked", "used")
)

func logged(update, step, from, to string) string {
	return `with c as (` + update + ` returning c.id, c.order_id, c.discount), l as (
		insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, order_amount, discount, actor)
		select id, order_id, '` + step + `', 'done', '` + from + `', '` + to + `', 1000000, discount, 'bench' from c returning id
	), e as (
		insert into outbox (topic, payload) select '` + event.CouponsChanged + `', jsonb_build_object('changes', '[]'::jsonb, 'operations', array_agg(id)) from l
	) select from c`
}

// groupedUpdates does the least work of a store that answers a step of payment once it is
// stored: steps that wait together share one bare update. It knows locks and confirmations.
type groupedUpdates struct {
	pool            *pgxpool.Pool
	locks, confirms chan *updatedRow
	stop            context.CancelFunc
}

type updatedRow struct {
	id     int64
	order  string
	stored chan error
}

// newGroupedUpdates starts the groups with these statements; close it.
func newGroupedUpdates(ctx context.Context, pool *pgxpool.Pool, lock, confirm string) *groupedUpdates {
	ctx, stop := context.WithCancel(ctx)
	g := &groupedUpdates{pool: pool, locks: make(chan *updatedRow, 1<<14), confirms: make(chan *updatedRow, 1<<14), stop: stop}
	for range updaters {
		go g.write(ctx, g.locks, lock)
		go g.write(ctx, g.confirms, confirm)
	}
	return g
}

func (g *groupedUpdates) close() { g.stop() }

// pay locks the coupon and confirms it.
func (g *groupedUpdates) pay(_ context.Context, id int64, order string) error {
	row := &updatedRow{id, order, make(chan error, 1)}
	g.locks <- row
	if err := <-row.stored; err != nil {
		return err
	}
	g.confirms <- row
	return <-row.stored
}

func (g *groupedUpdates) write(ctx context.Context, waiting chan *updatedRow, sql string) {
	var group []*updatedRow
	for {
		group = group[:0]
		select {
		case row := <-waiting:
			group = append(group, row)
		case <-ctx.Done():
			return
		}
	fill:
		for len(group) < updatedGroup {
			select {
			case row := <-waiting:
				group = append(group, row)
			default:
				break fill
			}
		}
		err := g.update(ctx, sql, group)
		for _, row := range group {
			row.stored <- err
		}
	}
}

func (g *groupedUpdates) update(ctx context.Context, sql string, group []*updatedRow) error {
	ids, orders := make([]int64, len(group)), make([]string, len(group))
	for i, row := range group {
		ids[i], orders[i] = row.id, row.order
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	tag, err := g.pool.Exec(ctx, sql, ids, orders)
	if err == nil && tag.RowsAffected() != int64(len(group)) {
		err = fmt.Errorf("%d of %d coupons were updated", tag.RowsAffected(), len(group))
	}
	return err
}

// lonely pays with two statements of its own.
func lonely(pool *pgxpool.Pool) payer {
	return func(ctx context.Context, id int64, order string) error {
		for _, sql := range []string{lockSQL, confirmSQL} {
			tag, err := pool.Exec(ctx, sql, []int64{id}, []string{order})
			if err == nil && tag.RowsAffected() != 1 {
				err = fmt.Errorf("coupon %d is not there", id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// answering answers every step and stores nothing.
type answering struct{}

func (answering) Case(context.Context, int64, string) (coupon.Case, error) {
	return coupon.Case{}, coupon.ErrNotFound
}

func (answering) Take(_ context.Context, r coupon.Request) (coupon.Taken, error) {
	now := time.Now()
	until := now.Add(coupon.DefaultLock)
	return coupon.Taken{Case: coupon.Case{Now: now, Rule: coupon.Rule{Kind: "amount_off", AmountOff: 1000, Currency: "CNY", Target: "shop"},
		Coupon: coupon.Coupon{ID: r.CouponID, TemplateID: 1, UserID: 7, State: coupon.Locked, OrderID: r.OrderID, Discount: 1000, IssuedAt: now,
			ExpiresAt: until, LockedAt: &now, LockedUntil: &until}}, Stored: coupon.Done}, nil
}
