package coupons_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/coupon"
)

// TestPaymentsPlannedOnEmptyTables: the statements of payment were planned while the tables were
// empty, as after an installation. When the tables have grown, and before they are analyzed, a
// step reads its own coupon by the primary key and its own lines of the log.
func TestPaymentsPlannedOnEmptyTables(t *testing.T) {
	const coupons, most = 30_000, 160
	p := newPaymentFixture(t)
	for _, table := range []string{"coupons", "coupon_operations", "templates"} {
		p.Exec(`alter table ` + table + ` set (autovacuum_enabled = off)`)
		p.Exec(`vacuum analyze ` + table)
	}
	db, err := postgres.Open(t.Context(), p.SQL.Config().ConnString(), postgres.Options{Log: slog.New(slog.DiscardHandler), MaxConns: 1})
	p.Must(err)
	t.Cleanup(db.Close)
	payments := couponsdb.NewPayments(db, postgres.Grouping{})
	t.Cleanup(payments.Close)
	steps := &coupon.Service{Store: payments, LockFor: time.Hour}
	pay := func(id int64) {
		if _, err := steps.Lock(t.Context(), "", id, coupon.Order{ID: "order", Amount: 2500}); err != nil {
			t.Fatal(err)
		}
		if _, err := steps.Confirm(t.Context(), "", id, "order"); err != nil {
			t.Fatal(err)
		}
	}
	read := func() (blocks int64) {
		_, err := db.Pool.Exec(t.Context(), `select pg_stat_force_next_flush()`)
		p.Must(err)
		p.Must(db.Pool.QueryRow(t.Context(), `select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)
			from pg_statio_user_tables where relname in ('coupons', 'coupon_operations', 'templates')`).Scan(&blocks))
		return blocks
	}
	pay(p.issue()) // makes the plans
	p.Fill("coupons", fmt.Sprintf("generate_series(1, %d) n", coupons), pgtest.Row{"template_id": p.drop.ID, "user_id": pgtest.SQL("n")})
	p.Exec(`insert into coupon_operations (coupon_id, order_id, step, outcome, from_state, to_state, actor)
		select id, 'order-' || id, 'lock', 'done', 'unused', 'locked', '' from coupons where state = 'unused'`)
	id := p.issue()
	p.Exec(`select pg_stat_force_next_flush()`)
	before := read()
	pay(id)
	if n := read() - before; n > most {
		t.Errorf("a lock and its confirmation read %d blocks, want at most %d", n, most)
	}
}
