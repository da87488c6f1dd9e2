package program

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres/pgtest"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/cell"
	"dropbell/domain/claim"
	"dropbell/domain/delivery"
	"dropbell/domain/user"
	"dropbell/worker/commands"
)

// installation starts a worker on a database, which is the cell n, and a Redis of its own.
func installation(t *testing.T, n cell.Number) (*pgtest.Fixture, map[string]string) {
	t.Helper()
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	w := pgtest.On(t, env["DATABASE_URL"])
	_, err := workdb.NewCells(w.DB).Number(t.Context(), n, 0)
	w.Must(err)
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	return w, env
}

// TestShopMovesBetweenInstallations: a shop with a drop to come and with coupons moves while the workers
// of both installations run. The reminders go out once, from the other installation; notices are
// planned once, and no coupon is announced again.
func TestShopMovesBetweenInstallations(t *testing.T) {
	w, env := installation(t, 0)
	o, other := installation(t, 1)
	env["MOVE_DATABASE_URL"] = other["DATABASE_URL"]
	drop, past := w.Published(3*time.Hour), w.Published(3*time.Hour)
	w.Exec(`insert into hook_endpoints (shop_number, url, types, secret, enabled, created_by) values (10, 'https://127.0.0.1:1/', '{coupon.issued}', '\x00', true, '')`)
	w.Exec(`update templates set notify_days = 2, valid_hours = 240, stock = 100, opens_at = date_trunc('second', now()) - interval '2 hours' where id = $1`, past.ID)
	w.Exec(`update slots set state = 'passed' where template_id = $1`, past.ID)
	w.Seed(drop, 20, pgtest.Reminders(delivery.App, 5)...)
	claims := w.Claims()
	for i := range user.ID(10) {
		_, err := claims.Claim(t.Context(), claim.Request{ID: claim.NewID(uint64(i)<<32, past.ID), TemplateID: past.ID, UserID: i + 1, Origin: claim.ByGrant, Key: fmt.Sprint("g", i)})
		w.Must(err)
	}
	w.Exec(`update templates set state = 'closed', closes_at = date_trunc('second', now()), ended_at = now() where id = $1`, past.ID)
	var notices int64
	poll(t, "the notices are planned", func() error {
		if notices = w.Number(`select count(*) from notices`); notices != 10 {
			return fmt.Errorf("%d are", notices)
		}
		return nil
	})
	const announced = `select coalesce(sum(items), 0) from hook_events where type = 'coupon.issued'`
	poll(t, "the coupons are announced", func() error {
		if n := w.Number(announced); n != 10 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	var out strings.Builder
	if err := commands.Do(t.Context(), []string{"move", "10"}, func(name string) string { return env[name] }, &out); err != nil {
		t.Fatalf("%s: %v", &out, err)
	}
	t.Log(out.String())
	if n := w.Number(`select (select count(*) from slots) + (select count(*) from reservations) + (select count(*) from coupons) + (select count(*) from notices) + (select count(*) from hook_endpoints)`); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if n := o.Number(`select count(*) from notices where status = 0`); n != notices {
		t.Errorf("%d notices are planned, want %d", n, notices)
	}
	o.DueNow(drop, 1)
	poll(t, "the reminders are sent", func() error {
		if n := o.Number(`select coalesce(sum(sent_count), 0) from batches where template_id = $1`, drop.ID); n != 20 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
	if n := o.Number(announced); n != 10 {
		t.Errorf("10 coupons were announced %d times", n)
	}
	if n := w.Number(`select count(*) from batches`); n != 0 {
		t.Errorf("%d batches were made where the shop was", n)
	}
}
