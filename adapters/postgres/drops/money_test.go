package drops_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	dropsdb "dropbell/adapters/postgres/drops"
)

// TestWithoutReadsByIndex: the uses of each order are found by its number, among many uses of other
// orders.
func TestWithoutReadsByIndex(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(time.Hour)
	w.Exec(`insert into orders (shop_number, order_id, currency, amount, refunded, ordered_at) select 10, 'P-' || i, 'CNY', 100, 0, now() from generate_series(1, 2000) i`)
	w.Exec(`insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at) select $1, i, i, 'claim', now(), now() from generate_series(1, 2000) i`, tpl.ID)
	w.Exec(`insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, actor)
		select id, case when user_id <= 500 then 'P-' else 'Q-' end || user_id, 'confirm', 'done', 'locked', 'used', 'key:1' from coupons`)
	w.Exec(`analyze orders, coupons, coupon_operations`)
	p, err := dropsdb.NewReports(w.DB).Without(t.Context(), 10, "CNY", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	if err != nil || !p.Reported || p.Orders != 1500 || p.Amount != 150_000 {
		t.Errorf("%+v, %v", p, err)
	}
	rows, err := w.DB.Pool.Query(t.Context(), `explain `+dropsdb.WithoutSQL, 10, "CNY", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	w.Must(err)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	w.Must(err)
	if text := strings.Join(plan, "\n"); !strings.Contains(text, "coupon_operations_order") {
		t.Errorf("the uses of an order are not found by its number:\n%s", text)
	}
}
