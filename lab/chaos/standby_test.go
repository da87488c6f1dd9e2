//go:build failover

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/lab/bench/stack"
	"dropbell/musttest"
)

// patroni is a database of a primary and a standby that Patroni looks after.
type patroni struct{ pair *patroniPair }

func (p *patroni) servers(synchronous bool) func(*system) (*stack.Stack, error) {
	return func(w *system) (*stack.Stack, error) {
		p.pair = newPatroniPair(w.t, synchronous)
		queue := localstack.RedisServer(w.t)
		s, err := stack.On(w.ctx, p.pair.URL(), queue.URL())
		if s != nil {
			s.Redis = queue
		}
		return s, err
	}
}

// killPrimary kills the primary and lets it join again as a standby.
func (p *patroni) killPrimary() trouble {
	return trouble{"the primary is killed and its standby takes over", func(w *system) error {
		defer w.outage()()
		took, err := p.pair.KillPrimary(w.ctx)
		if err != nil {
			return err
		}
		w.say("Patroni promoted the standby after %.1f s", took.Seconds())
		return p.pair.Rejoin()
	}}
}

// TestFailoverOfTheDatabase kills the primary while a slot fires and during a rush of claims,
// with a synchronous standby. Every acknowledged write is there, each user has one outcome,
// messages are repeated only as the contract of providers allows, and exactly the stock is
// issued.
func TestFailoverOfTheDatabase(t *testing.T) {
	t.Run("firing", func(t *testing.T) {
		var p patroni
		s := failoverSize()
		s.servers, s.whileSending = p.servers(true), []trouble{p.killPrimary()}
		endure(t, s)
	})
	t.Run("rush", func(t *testing.T) {
		var p patroni
		r := failoverRush()
		r.servers, r.troubles = p.servers(true), []trouble{p.killPrimary()}
		rushAndDestroy(t, r)
	})
}

// TestFailoverLosesWhatTheStandbyLacks: an asynchronous standby stops receiving, users go on
// claiming, and then the primary dies. Only the claims that were acknowledged meanwhile are
// lost. The stock ledger of the remaining claims is exact, and a user that asks again gets a
// coupon.
func TestFailoverLosesWhatTheStandbyLacks(t *testing.T) {
	const each, stock = 200, 1000
	var p patroni
	c := newClaims(t, rush{stock: []int64{stock}, limit: 1, patience: 90 * time.Second, servers: p.servers(false)})
	c.fleet.shop.rowsLost = true
	s := c.publish("durable")
	s.openSoon()
	wait(time.Until(s.opensAt.Add(time.Second)), c.ctx.Done())
	claim := func(from int64) (wishes []wish) {
		var mu sync.Mutex
		c.inParallel(each, func(i int) {
			w := wish{from + int64(i), fmt.Sprint("wish-", from+int64(i))}
			if a := s.ask(w); !a.positive() {
				t.Errorf("user %d is told %d %s", w.user, a.status, a.code)
			}
			mu.Lock()
			defer mu.Unlock()
			wishes = append(wishes, w)
		})
		return wishes
	}
	received := claim(1000)
	sender, err := p.sender(c.ctx, c.stack)
	musttest.OK(t, err)
	musttest.OK(t, syscall.Kill(sender, syscall.SIGSTOP))
	unsent := claim(2000)
	took, err := p.pair.KillPrimary(c.ctx)
	musttest.OK(t, err)
	c.say("Patroni promoted the standby after %.1f s", took.Seconds())
	later := claim(3000)
	c.calm(s.template)
	rows := c.rows(s.template)
	missing := func(wishes []wish) (list []wish) {
		for _, w := range wishes {
			if _, ok := rows[w.originKey()]; !ok {
				list = append(list, w)
			}
		}
		return list
	}
	if a, b := len(missing(received)), len(missing(later)); a+b > 0 {
		t.Errorf("%d claims that the standby had and %d that it took itself are lost", a, b)
	}
	lost := missing(unsent)
	if len(lost) == 0 || len(rows) != 3*each-len(lost) {
		t.Errorf("%d of %d claims that the standby lacked are lost, %d coupons are left", len(lost), each, len(rows))
	}
	for _, w := range lost {
		if a := s.ask(w); !a.positive() {
			t.Errorf("user %d, whose claim was lost, is told %d %s", w.user, a.status, a.code)
		}
	}
	c.calm(s.template)
	if n := len(c.rows(s.template)); n != 3*each {
		t.Errorf("%d coupons after everybody asked again, want %d", n, 3*each)
	}
	c.say("%d acknowledged claims were lost with the primary, %d were not; the ledger is exact", len(lost), len(rows))
}

// sender waits until the standby has all data, and returns the id of the primary's process that
// sends to the standby.
func (p *patroni) sender(ctx context.Context, s *stack.Stack) (pid int, err error) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); wait(50*time.Millisecond, ctx.Done()) {
		err = s.SQL.QueryRow(ctx, `select pid from pg_stat_replication where state = 'streaming' and flush_lsn >= pg_current_wal_flush_lsn()`).Scan(&pid)
		if err == nil {
			return pid, nil
		}
	}
	return 0, errors.Join(errors.New("the standby does not catch up"), err)
}
