package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/domain/claim"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// rush is a crowd of clients. Each client repeats its request with the same idempotency key
// until it gets an answer.
type rush struct {
	*gateFixture
	drop    template.Template
	mu      sync.Mutex
	won     map[claim.ID]user.ID
	refused map[string]int
	looks   atomic.Int64 // of the checker, at a standing gate
	stop    chan struct{}
	halt    func() // closes stop
	crowd   sync.WaitGroup
	checker sync.WaitGroup
}

// startRush starts callers that claim for users, each user up to tries times. It checks the
// ledger until the rush ends.
func startRush(r *gateFixture, drop template.Template, callers, users int) *rush {
	rs := &rush{gateFixture: r, drop: drop, won: map[claim.ID]user.ID{}, refused: map[string]int{}, stop: make(chan struct{})}
	rs.halt = sync.OnceFunc(func() { close(rs.stop) })
	for i := range callers {
		rs.crowd.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-rs.stop:
					return
				default:
				}
				rs.ask(user.ID(1+rand.IntN(users)), fmt.Sprint(i, ":", n))
			}
		})
	}
	for range 2 {
		rs.checker.Go(rs.check)
	}
	r.Cleanup(func() { // also if the test ends before
		rs.halt()
		rs.crowd.Wait()
		rs.checker.Wait()
	})
	return rs
}

// ask claims until the answer is yes or no.
func (rs *rush) ask(by user.ID, key string) {
	for {
		got, err := rs.Claim(rs.Context(), claimtest.Tap(rs.drop, by, key))
		if fault.KindOf(err) == fault.Unavailable {
			pause.For(rs.Context(), time.Millisecond)
			select {
			case <-rs.stop: // Redis may never come back
				return
			default:
				continue
			}
		}
		rs.mu.Lock()
		if err == nil && got.State != claim.Failed {
			rs.won[got.ID] = by
		}
		rs.refused[fault.CodeOf(err)]++
		rs.mu.Unlock()
		if err != nil && fault.KindOf(err) != fault.Conflict && rs.Context().Err() == nil {
			rs.Errorf("user %d: %v", by, err)
		}
		if err != nil { // leaves processor time to the keepers when everything is sold out
			pause.For(rs.Context(), time.Millisecond)
		}
		return
	}
}

// check reads the ledger as often as it can: it must be exact every time.
func (rs *rush) check() {
	for {
		select {
		case <-rs.stop:
			return
		default:
		}
		l, err := rs.ledger(rs.drop.ID)
		if err != nil {
			pause.For(context.Background(), time.Millisecond)
			continue
		}
		rs.looks.Add(1)
		if l.Difference != 0 || l.Total != l.OnSale+l.Writing+l.Issued || l.OnSale < 0 {
			rs.Errorf("the ledger is off: %+v", l)
			return
		}
	}
}

// until waits for something to have happened in the rush.
func (rs *rush) until(what string, done func() bool) {
	rs.Helper()
	rs.eventually(what, func() error {
		if !done() {
			return errors.New("not yet")
		}
		return nil
	})
}

func (rs *rush) wins() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.won)
}

// end stops the crowd and lets newcomers take what is left.
func (rs *rush) end(users int) {
	rs.Helper()
	rs.halt()
	rs.crowd.Wait()
	rs.checker.Wait()
	for by := user.ID(users + 1); ; by++ {
		got, err := rs.Claim(rs.Context(), claimtest.Tap(rs.drop, by, "last"))
		switch {
		case err == nil:
			rs.won[got.ID] = by
		case errors.Is(err, claim.ErrSoldOut):
			return
		case fault.KindOf(err) != fault.Unavailable:
			rs.Fatal(err)
		default:
			by--
			pause.For(rs.Context(), 5*time.Millisecond)
		}
	}
}

// TestRushSurvivesWhateverHappens: a crowd claims while the drop is paused, resumed and
// refilled, and Redis is killed with kill -9 several times. Two nodes decide, two write, two
// reconcile. Every acknowledged claim is issued, exactly the stock is used up, no user is over
// the limit, and the ledger is exact at every read.
func TestRushSurvivesWhateverHappens(t *testing.T) {
	const stock, more, users, limit = 1500, 700, 3000, 2
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 4)
	r.run()
	drop := r.Open(stock, limit, nil)
	rs := startRush(r, drop, 24, users)
	rs.until("the rush has begun", func() bool { return rs.wins() > 200 })
	r.Do(drop.ID, template.Pausing)
	r.Do(drop.ID, template.Resuming)
	for i := range 3 {
		r.must(server.Kill())
		r.must(server.Restart(context.Background(), false))
		rs.until("claims go on", func() bool { return rs.wins() > 400+200*i })
	}
	r.Raise(drop.ID, stock+more)
	rs.until("the first stock is gone", func() bool { return rs.wins() > stock })
	r.must(server.Kill())
	r.must(server.Restart(context.Background(), false))
	rs.until("nearly everything is gone", func() bool { return rs.wins() > stock+more-100 })
	rs.end(users)
	coupons := claimtest.Holds(t, r, drop.ID, stock+more, limit)
	for _, c := range coupons {
		if rs.won[c.ID] != c.UserID {
			t.Errorf("coupon %d of user %d was never promised", c.CouponID, c.UserID)
		}
		delete(rs.won, c.ID)
	}
	if len(rs.won) != 0 {
		t.Errorf("%d claims were acknowledged and led to nothing", len(rs.won))
	}
	if rs.looks.Load() < 50 {
		t.Errorf("the ledger was read only %d times", rs.looks.Load())
	}
	t.Logf("%d looks at the ledger, answers %v", rs.looks.Load(), rs.refused)
}

// TestRushOnAnEmptiedRedis: Redis loses all data twice during the rush. Claims are refused as
// overloaded until the gate is rebuilt. Then exactly the remaining stock is sold.
func TestRushOnAnEmptiedRedis(t *testing.T) {
	const stock, users, limit = 1200, 3000, 1
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 3)
	r.run()
	drop := r.Open(stock, limit, nil)
	rs := startRush(r, drop, 16, users)
	for i := range 2 {
		rs.until("the rush goes on", func() bool { return rs.wins() > 300+300*i })
		r.must(server.Kill())
		r.must(server.Restart(context.Background(), true))
	}
	rs.until("the rush goes on", func() bool { return rs.wins() > 900 })
	r.must(r.client.FlushAll(t.Context()).Err())
	rs.end(users)
	for _, c := range claimtest.Holds(t, r, drop.ID, stock, limit) {
		if rs.won[c.ID] != c.UserID {
			t.Errorf("coupon %d of user %d was never promised", c.CouponID, c.UserID)
		}
	}
	plan, err := r.store.Plan(t.Context(), drop.ID)
	if err != nil || plan.Epoch < 4 {
		t.Errorf("the gate was built %d times, %v", plan.Epoch, err)
	}
	t.Logf("%d promised, %d looks at the ledger, built %d times", len(rs.won), rs.looks.Load(), plan.Epoch)
}
