package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgreSQL plans a prepared statement again for each call while plans for the parameters seem
// cheaper than one plan for all of them. For a statement of a few rows planning then costs more
// than executing. The statements of frequent calls must come to have one plan.
func TestFrequentStatementsArePlannedOnce(t *testing.T) {
	const calls = 30
	r := newFixture(t, nil)
	till := as(r.keys["payment"])
	coming, later, open := r.drop(2*time.Hour), r.drop(3*time.Hour), r.open(1000)
	r.exec(`insert into users (id, locale, timezone) select n, 'en', 'UTC' from generate_series(1, 2000) n on conflict do nothing`)
	r.want(r.call(as(token(7)), "POST", "/reservations", reserve(coming, "app", 5, "app", 10, "app", 15)), 201, "")
	for slot := 3; slot > 0; slot-- {
		r.deliver(coming, slot, 7)
	}
	// Then the planner takes an array of ten ids, its guess, for dearer than the user's array.
	r.exec(`insert into slots (template_id, slot, opens_at, due_at, state, fired_at)
		select $1, 1, opens_at + n * interval '1 day', due_at + n * interval '1 day', 'finished', now()
		from slots, generate_series(1, 400) n where template_id = $1 and slot = 1`, later)
	r.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, due, sent, due_count, sent_count, finished_at)
		select 'reminder', s.id, s.template_id, c, n * 1000, n * 1000 + 999, 'done', s.due_at, s.opens_at, '', '', 0, 0, now()
		from slots s, generate_series(0, 4) c, generate_series(1, 20) n`)
	r.exec(`analyze`)
	for i := range calls {
		me := as(token(7))
		r.want(r.call(me, "GET", "/inbox", nil), 200, "")
		r.want(r.call(me, "POST", "/inbox/read", nil), 200, "")
		r.want(r.call(me, "GET", "/reservations", nil), 200, "")
		r.want(r.call(me, "GET", "/coupons", nil), 200, "")
		r.want(r.call(me, "GET", "/preferences", nil), 200, "")
		r.want(r.call(me, "GET", "/reservations/"+coming, nil), 200, "")
		r.want(r.call(me, "GET", "/reservations/"+coming+"/explain", nil), 200, "")
		r.want(r.call(me, "GET", "/templates/"+open, nil), 200, "")
		other := as(token(100 + i))
		r.want(r.call(other, "POST", "/reservations", reserve(later, "app", 5)), 201, "")
		claimed := r.want(r.call(other, "POST", "/claims", claimOf(open)), 201, "")
		r.want(r.call(other, "GET", "/claims/"+claimed.json["claim_id"].(string), nil), 200, "")
		coupon := "/coupons/" + claimed.json["coupon_id"].(string)
		r.want(r.call(other, "GET", coupon, nil), 200, "")
		r.want(r.call(till, "POST", coupon+"/lock", map[string]any{"order_id": fmt.Sprint("A-", i), "order_amount": 6000}), 200, "")
		r.want(r.call(till, "POST", coupon+"/confirm", map[string]any{"order_id": fmt.Sprint("A-", i)}), 200, "")
		r.want(r.call(till, "POST", coupon+"/refund", map[string]any{"order_id": fmt.Sprint("A-", i)}), 200, "")
		r.want(r.call(other, "DELETE", "/reservations/"+later, nil), 200, "")
	}
	for _, s := range r.plannedOften(calls) {
		t.Error(s)
	}
}

// plannedOften returns the statements that were planned for nearly each of at least calls/2 calls.
func (r *fixture) plannedOften(calls int) (list []string) {
	r.Helper()
	for _, c := range r.sql.AcquireAllIdle(r.Context()) {
		list = append(list, r.plannedBy(c, calls)...)
	}
	return list
}

func (r *fixture) plannedBy(c *pgxpool.Conn, calls int) (list []string) {
	defer c.Release()
	rows, err := c.Query(r.Context(), `select statement, generic_plans, custom_plans from pg_prepared_statements where custom_plans > $1`, calls/2)
	r.must(err)
	defer rows.Close()
	for rows.Next() {
		var sql string
		var generic, custom int64
		r.must(rows.Scan(&sql, &generic, &custom))
		list = append(list, fmt.Sprintf("planned %d times, %d times not: %s", custom, generic, strings.Join(strings.Fields(sql), " ")))
	}
	return list
}
