package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/domain/claim"
	"dropbell/domain/staff"
	"dropbell/web/api"
	"dropbell/web/middleware"
)

// slack is how much later than its limit an answer may arrive on a busy machine.
const slack = 5 * time.Second

// newTimelyRig returns a fixture whose end users wait for at most d. change, if not nil, may
// replace further dependencies.
func newTimelyRig(t *testing.T, d time.Duration, change func(*api.Deps)) *fixture {
	t.Helper()
	r := newFixture(t, nil)
	claims := couponsdb.NewClaims(r.db, postgres.Grouping{Timeout: d})
	t.Cleanup(claims.Close)
	return r.with(func(deps *api.Deps) {
		deps.RequestTimeout = d
		deps.Coupons.Claims = &claim.Service{Gate: claims, Finders: []claim.Finder{claims}, Owned: claims, Random: rand.Uint64}
		if change != nil {
			change(deps)
		}
	})
}

// block locks the tables until free is called.
func (r *fixture) block(tables string) (free func()) {
	r.Helper()
	tx, err := r.sql.Begin(context.Background())
	r.must(err)
	_, err = tx.Exec(context.Background(), "lock table "+tables+" in access exclusive mode")
	r.must(err)
	return func() { r.must(tx.Rollback(context.Background())) }
}

// refusedInTime fails unless the call is answered 503 with Retry-After in time.
func (r *fixture) refusedInTime(who http.Header, method, path string, body any) {
	r.Helper()
	began := time.Now()
	a := r.want(r.call(who, method, path, body), 503, "overloaded")
	if took := time.Since(began); took > slack || a.Header().Get("Retry-After") == "" {
		r.Errorf("%s %s: refused after %v, Retry-After %q", method, path, took, a.Header().Get("Retry-After"))
	}
}

// TestNobodyWaitsForABlockedTable: while another session holds the tables, every kind of end-user
// request ends with 503 within its time limit. After the tables are free, the same requests with
// the same keys succeed, and the stored state is exactly the answered state.
func TestNobodyWaitsForABlockedTable(t *testing.T) {
	const users = 40
	r := newTimelyRig(t, 300*time.Millisecond, nil)
	drop, coming := r.open(1000), r.drop(2*time.Hour)
	r.want(r.call(as(token(1)), "POST", "/claims", map[string]any{"template_id": drop}), 201, "")
	free := r.block("coupons, claim_counts, reservations, users")
	var all sync.WaitGroup
	for u := range users {
		all.Go(func() {
			me := as(token(100+u), "Idempotency-Key", fmt.Sprint("claim ", u))
			r.refusedInTime(me, "POST", "/claims", map[string]any{"template_id": drop})
		})
	}
	all.Wait()
	me := as(token(1))
	r.refusedInTime(me, "POST", "/reservations", reserve(coming, "app", 10))
	r.refusedInTime(as(token(1), "Idempotency-Key", "reserve"), "POST", "/reservations", reserve(coming, "email", 10))
	for _, path := range []string{"/coupons", "/reservations", "/reservations/" + coming, "/preferences"} {
		r.refusedInTime(me, "GET", path, nil)
	}
	r.refusedInTime(me, "DELETE", "/reservations/"+coming, nil)
	free()
	for u := range users {
		me := as(token(100+u), "Idempotency-Key", fmt.Sprint("claim ", u))
		eventually(t, "the claim succeeds", func() bool {
			a := r.call(me, "POST", "/claims", map[string]any{"template_id": drop})
			return a.Code == 201
		})
	}
	if n, counted := r.number(`select count(*) from coupons where template_id = $1`, drop), r.number(`select issued from templates where id = $1`, drop); n != users+1 || counted != n {
		t.Errorf("%d coupons, %d counted, want %d", n, counted, users+1)
	}
	eventually(t, "the reservation succeeds", func() bool {
		a := r.call(as(token(1), "Idempotency-Key", "reserve"), "POST", "/reservations", reserve(coming, "email", 10))
		return a.Code == 200 || a.Code == 201
	})
}

// TestALockThatWasNotAnswered: locks of coupons are answered 503 while another session holds a
// table. Such a lock may have been stored after its answer: the repeated request of the order
// locks the coupon, or finds its lock.
func TestALockThatWasNotAnswered(t *testing.T) {
	tables := []string{"coupons", "coupon_operations", "outbox"}
	const ofTable = 20
	orders := ofTable * len(tables)
	r := newTimelyRig(t, 300*time.Millisecond, nil)
	till := as(r.keys[staff.ScopePayment])
	drop := r.open(1000)
	var ids []string
	for u := range orders {
		ids = append(ids, r.coupon(int64(100+u), drop))
	}
	lock := func(i int) (path string, body map[string]any) {
		return "/coupons/" + ids[i] + "/lock", map[string]any{"order_id": fmt.Sprint("A-", i), "order_amount": 6000}
	}
	for n, table := range tables {
		free := r.block(table)
		var all sync.WaitGroup
		for i := range ofTable {
			all.Go(func() {
				path, body := lock(n*ofTable + i)
				r.refusedInTime(till, "POST", path, body)
			})
		}
		all.Wait()
		free()
	}
	for i := range orders {
		path, body := lock(i)
		for range 2 {
			if a := r.want(r.call(till, "POST", path, body), 200, ""); a.at("state") != "locked" || a.at("order_id") != fmt.Sprint("A-", i) {
				t.Errorf("repeated: %s", a.Body)
			}
		}
	}
	if n := r.number(`select count(*) from coupon_operations where step = 'lock' and outcome = 'done'`); n != int64(orders) {
		t.Errorf("%d locks of %d orders", n, orders)
	}
}

// TestOneCallIsBounded: a single call to the database ends after a quarter of the request's time
// limit.
func TestOneCallIsBounded(t *testing.T) {
	r := newTimelyRig(t, 20*time.Second, nil)
	free := r.block("coupons")
	began := time.Now()
	r.want(r.call(as(token(1)), "GET", "/coupons", nil), 503, "overloaded")
	if took := time.Since(began); took < 4*time.Second || took > 5*time.Second+slack {
		t.Errorf("refused after %v", took)
	}
	free()
	r.want(r.call(as(token(1)), "GET", "/coupons", nil), 200, "")
}

// TestBeyondTheBudget: as many requests wait as the budget allows. The next request is refused at
// once, and staff are served meanwhile.
func TestBeyondTheBudget(t *testing.T) {
	const budget = 3
	r := newTimelyRig(t, time.Hour, func(d *api.Deps) {
		d.Budget, d.StaffBudget = middleware.NewBudget(budget, "users", nil), middleware.NewBudget(1, "staff", nil)
	})
	drop := r.open(1000)
	free := r.block("coupons, claim_counts")
	ask := func(u int) answer {
		return r.call(as(token(u), "Idempotency-Key", "k"), "POST", "/claims", map[string]any{"template_id": drop})
	}
	var all sync.WaitGroup
	for u := range budget {
		all.Go(func() {
			for ask(u+1).Code != 201 { // the look below takes a place for a moment
				runtime.Gosched()
			}
		})
	}
	eventually(t, "the budget is used up", func() bool {
		return r.call(as(token(9)), "GET", "/templates/"+drop, nil).Code == 503
	})
	for u := range 5 {
		a := r.want(ask(100+u), 503, "overloaded") // would wait for an hour
		if a.Header().Get("Retry-After") != "1" {
			t.Errorf("Retry-After %q", a.Header().Get("Retry-After"))
		}
	}
	r.want(r.call(r.admin(), "GET", "/admin/shops", nil), 200, "")
	free()
	all.Wait()
	r.want(ask(9), 201, "")
	if n := r.number(`select count(*) from coupons where template_id = $1`, drop); n != budget+1 {
		t.Errorf("%d coupons", n)
	}
}
