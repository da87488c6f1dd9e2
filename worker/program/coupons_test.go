package program

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/coupon"
	"dropbell/domain/task"
	"dropbell/musttest"
)

// lockedCoupon returns a coupon that order A holds for so long.
func lockedCoupon(t *testing.T, conn *pgx.Conn, url string, lasting time.Duration) (*coupon.Service, int64) {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "test"})
	musttest.OK(t, err)
	t.Cleanup(db.Close)
	drop := rows.Drop{Issued: 1, OpensAt: time.Now()}.Add(t, conn)
	id := rows.ID(t, conn, "coupons", rows.Row{"template_id": drop, "user_id": 7, "expires_at": rows.SQL("now() + interval '1 hour'")})
	s := &coupon.Service{Store: pgtest.Payments(t, db), LockFor: lasting}
	if _, err := s.Lock(t.Context(), "key:1", id, coupon.Order{ID: "A", Amount: 2500}); err != nil {
		t.Fatal(err)
	}
	return s, id
}

func stateOf(t *testing.T, s *coupon.Service, id int64) coupon.State {
	t.Helper()
	c, err := s.Coupon(t.Context(), 0, id)
	musttest.OK(t, err)
	return c.Coupon.State
}

// TestLockEndsByItself runs a whole worker: its sweep ends the lock, and no timer does.
func TestLockEndsByItself(t *testing.T) {
	env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
	conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
	musttest.OK(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	s, id := lockedCoupon(t, conn, env["DATABASE_URL"], 2*time.Second)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
	poll(t, "the lock ends", func() error {
		if state := stateOf(t, s, id); state != coupon.Unused {
			return fmt.Errorf("the coupon is %s", state)
		}
		return nil
	})
	var late float64
	if err := conn.QueryRow(t.Context(), `select extract(epoch from e.at - l.at - interval '2 seconds')::float8 from coupon_operations l, coupon_operations e
		where l.step = 'lock' and e.step = 'timeout'`).Scan(&late); err != nil || late < 0 || late > 10 {
		t.Errorf("ended %v s late, %v", late, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTimersOfLocksFromBefore: tasks that the program before queued for the end of locks are
// acknowledged, whatever they hold.
func TestTimersOfLocksFromBefore(t *testing.T) {
	p, conn := assembled(t)
	s, id := lockedCoupon(t, conn, p.Config.DatabaseURL, time.Hour)
	musttest.OK(t, taskOf(t, p, task.EndLock)(t.Context(), []byte(`{"coupon_id":"1","order_id":"A"}`)))
	if got := stateOf(t, s, id); got != coupon.Locked {
		t.Fatalf("the coupon is %s", got)
	}
}
