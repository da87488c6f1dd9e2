package coupons

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/worker/workertest"
)

// TestExpiryIsPaced: a turn ends when its time is used up and reports how many coupons are left.
// The next turn continues after the last coupon of this turn.
func TestExpiryIsPaced(t *testing.T) {
	w := pgtest.New(t)
	registry := prometheus.NewRegistry()
	c := newCoupons(Deps{Steps: w.CouponSteps, Registry: registry})
	overdue := func(n int, left float64) {
		t.Helper()
		var unused int
		if err := w.SQL.QueryRow(t.Context(), `select count(*) from coupons where state = 'unused'`).Scan(&unused); err != nil || unused != n {
			t.Errorf("%d unused, want %d, %v", unused, n, err)
		}
		workertest.Expect(t, registry, left, "dropbell_coupons_overdue")
	}
	if _, err := w.SQL.Exec(t.Context(), `insert into coupons (template_id, user_id, claim_id, origin, issued_at, expires_at)
		select 1, n, n, 'claim', now(), now() - interval '1 hour' from generate_series(1, 2 * $1 + 500) n`, couponChunk); err != nil {
		t.Fatal(err)
	}
	turn := func(lasting time.Duration) {
		t.Helper()
		if err := c.expire(t.Context(), lasting); err != nil {
			t.Fatal(err)
		}
	}
	turn(0)
	overdue(couponChunk+500, couponChunk+500)
	if late, _ := workertest.Value(t, registry, "dropbell_coupons_overdue_seconds"); late < 3600 {
		t.Errorf("late by %v s", late)
	}
	// One that the sweep has passed waits for the next sweep from the beginning.
	if _, err := w.SQL.Exec(t.Context(), `update coupons set state = 'unused' where id = (select min(id) from coupons)`); err != nil {
		t.Fatal(err)
	}
	turn(time.Hour)
	overdue(1, 0)
	turn(time.Hour)
	overdue(1, 0)
	c.started = c.started.Add(-expiryFromStart)
	turn(time.Hour)
	overdue(0, 0)
	workertest.Expect(t, registry, 2*couponChunk+501, "dropbell_coupons_expired_total")
	workertest.Expect(t, registry, 0, "dropbell_coupons_overdue_seconds")
}
