package console_test

import (
	"dropbell/domain/delivery"
	"dropbell/domain/user"
)

// increment counts one group of the drop's users with a reservation, user by user. Each coupon that
// was used paid an order.
func (f *figures) increment(group, what string) (n int64) {
	f.Helper()
	rows, err := f.SQL.Query(f.Context(), `select r.user_id, count(c.id), coalesce(sum(o.order_amount - c.discount), 0)::bigint from reservations r
		left join coupons c on c.template_id = r.template_id and c.user_id = r.user_id and c.state = 'used'
		left join coupon_operations o on o.coupon_id = c.id and o.order_id = c.order_id and o.step = 'lock' where r.template_id = $1 group by 1`, f.drop.ID)
	f.Must(err)
	defer rows.Close()
	for rows.Next() {
		var id user.ID
		var orders, revenue int64
		f.Must(rows.Scan(&id, &orders, &revenue))
		if delivery.HeldOutOfDrop(f.drop.ID, heldOut, id) == (group == "held") {
			n += map[string]int64{"users": 1, "orders": orders, "revenue": revenue}[what]
		}
	}
	f.Must(rows.Err())
	return n
}

// heldOut is the percentage that the drop holds out, after its reminders were sent.
const heldOut = 40

// brought returns what the campaign's results have for the held-out users, or for all others.
func (f *figures) brought(group, what string) int64 {
	f.Helper()
	column := map[string]string{"users": "assigned", "orders": "orders", "revenue": "ordered - discount"}[what]
	return f.Number(`select coalesce(sum(`+column+`), 0) from campaign_results where campaign_id = $1 and (variant = -1) = $2`, f.campaign.ID, group == "held")
}
