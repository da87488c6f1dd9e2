package program

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest/rows"
	"dropbell/domain/coupon"
	"dropbell/domain/event"
	"dropbell/domain/task"
)

// lockedCoupon returns a coupon that order A holds for so long.
func lockedCoupon(t *testing.T, conn *pgx.Conn, url string, lasting time.Duration) (*coupon.Service, int64) {
	t.Helper()
	db, err := postgres.Open(t.Context(), url, postgres.Options{AppName: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	drop := rows.Drop{Issued: 1, OpensAt: time.Now()}.Add(t, conn)
	id := rows.ID(t, conn, "coupons", rows.Row{"template_id": drop, "user_id": 7, "expires_at": rows.SQL("now() + interval '1 hour'")})
	s := &coupon.Service{Store: couponsdb.NewCouponSteps(db), LockFor: lasting}
	if _, err := s.Lock(t.Context(), "key:1", id, coupon.Order{ID: "A", Amount: 2500}); err != nil {
		t.Fatal(err)
	}
	return s, id
}

func stateOf(t *testing.T, s *coupon.Service, id int64) coupon.State {
	t.Helper()
	c, err := s.Coupon(t.Context(), 0, id)
	if err != nil {
		t.Fatal(err)
	}
	return c.Coupon.State
}

// TestLockEndsByItself runs a whole worker: once with the event of the lock, and once without
// the event, as if Redis had lost the timer.
func TestLockEndsByItself(t *testing.T) {
	for name, spoil := range map[string]string{"with its timer": "", "by the sweep": `delete from outbox where topic = '` + event.CouponChanged + `'`} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"DATABASE_URL": localstack.Database(t), "REDIS_URL": localstack.RedisServer(t).URL(), "WORKER_HTTP_ADDR": "127.0.0.1:0"}
			conn, err := pgx.Connect(t.Context(), env["DATABASE_URL"])
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.WithoutCancel(t.Context()))
			s, id := lockedCoupon(t, conn, env["DATABASE_URL"], 2*time.Second)
			if _, err := conn.Exec(t.Context(), spoil); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, func(name string) string { return env[name] }, io.Discard) }()
			for end := time.Now().Add(localstack.Patience(t)); stateOf(t, s, id) != coupon.Unused; {
				if time.Now().After(end) {
					t.Fatal("the lock stands")
				}
				pause := time.NewTimer(50 * time.Millisecond)
				<-pause.C
			}
			var late float64
			if err := conn.QueryRow(t.Context(), `select extract(epoch from e.at - l.at - interval '2 seconds')::float8 from coupon_operations l, coupon_operations e
				where l.step = 'lock' and e.step = 'timeout'`).Scan(&late); err != nil || late < 0 || late > 10 {
				t.Errorf("ended %v s late, %v", late, err)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLockTimer: the event sets a timer for the end of the lock. The timer fires up to a second
// early; its handler then waits until the database's clock has reached the end.
func TestLockTimer(t *testing.T) {
	p, conn := assembled(t)
	s, id := lockedCoupon(t, conn, p.Config.DatabaseURL, 1500*time.Millisecond)
	payload, err := json.Marshal(task.LockEnd(id, "A", time.Time{}).Payload)
	if err != nil {
		t.Fatal(err)
	}
	endLock := taskOf(t, p, task.EndLock)
	if err := endLock(t.Context(), payload); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, s, id); got != coupon.Unused {
		t.Fatalf("the timer left the coupon %s", got)
	}
	if err := endLock(t.Context(), payload); err != nil { // again
		t.Fatal(err)
	}
	if err := endLock(t.Context(), []byte("{")); err == nil {
		t.Fatal("a broken payload is no success")
	}
}
