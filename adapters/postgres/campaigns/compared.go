package campaigns

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/postgres/internal/pg"
	"dropbell/domain/delivery"
)

// uncomparedSQL returns a campaign with held-out users whose results became final before the sums for
// intervals were counted. complete is false if steps of its orders were removed after their retention.
const uncomparedSQL = `
select c.id, not c.archived and c.started_at > coalesce((select until from removed_steps), '-infinity') as complete from campaigns c
where not c.compared and c.count_due_at = 'infinity' and c.content ? 'hold_out' and exists (select from campaign_results r where r.campaign_id = c.id and r.used > 0)
order by c.id limit 1`

// CompareNext adds the sums for intervals to the final results of one campaign that were counted by
// a program that did not know them. It changes the results only if each group has as many users
// who used coupons as then; a coupon that was refunded since is not counted as used any more, and
// rows may be gone. It returns false if there is no such campaign.
func (s Campaigns) CompareNext(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, countFor)
	defer cancel()
	var id int64
	var complete bool
	err := s.Pool.QueryRow(ctx, uncomparedSQL).Scan(&id, &complete)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, pg.Translate(err)
	}
	var n *counting
	if complete {
		if n, err = s.countOnce(ctx, id); err != nil {
			return false, err
		}
	}
	return true, s.storeCompared(ctx, id, n)
}

// sameResultSQL returns whether the stored results of the group count as many users as the new count.
const sameResultSQL = `select assigned = @assigned and used = @used from campaign_results where campaign_id = @campaign and variant = @variant`

// storeCompared stores the orders of n, unless n is nil or the results differ.
func (s Campaigns) storeCompared(ctx context.Context, id int64, n *counting) error {
	return s.Tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `update campaigns set compared = true where id = $1 and not compared`, id)
		if err != nil || tag.RowsAffected() == 0 || n == nil {
			return err
		}
		for _, variant := range n.Content.Groups() {
			t := n.tallies[variant-delivery.Remaining]
			var same bool
			err := tx.QueryRow(ctx, sameResultSQL, pgx.NamedArgs{"campaign": id, "variant": variant, "assigned": t.Assigned, "used": t.Used}).Scan(&same)
			if errors.Is(err, pgx.ErrNoRows) || err == nil && !same {
				return nil
			}
			if err != nil {
				return err
			}
		}
		for _, variant := range n.Content.Groups() {
			t := n.tallies[variant-delivery.Remaining].Spent
			if _, err := tx.Exec(ctx, `update campaign_results set orders = @orders, ordered = @ordered, discount = @discount, currency = @currency,
				order_squares = @order_squares, order_cubes = @order_cubes, revenue_squares = @revenue_squares, revenue_cubes = @revenue_cubes
				where campaign_id = @campaign and variant = @variant`, pgx.StrictNamedArgs{"campaign": id, "variant": variant,
				"orders": t.Orders, "ordered": int64(t.Ordered), "discount": int64(t.Discount), "currency": t.Currency,
				"order_squares": t.OrderPowers.Squares, "order_cubes": t.OrderPowers.Cubes,
				"revenue_squares": t.RevenuePowers.Squares, "revenue_cubes": t.RevenuePowers.Cubes}); err != nil {
				return err
			}
		}
		return nil
	})
}
