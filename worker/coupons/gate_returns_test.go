package coupons_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/coupon"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/worker/commands"
)

func (r *gateFixture) admin() *coupon.Admin {
	return &coupon.Admin{Store: couponsdb.NewCouponSteps(r.db)}
}

// revoke returns the coupon to stock.
func (r *gateFixture) revoke(id int64) {
	r.Helper()
	_, err := r.admin().Revoke(r.Context(), staff.System(), id, "wrong person", true)
	r.must(err)
}

// watch reads the ledger once, and then repeatedly until the test ends. Every time the ledger
// must add up.
func (r *gateFixture) watch(id int64) {
	r.Helper()
	look := func() error {
		l, err := r.ledger(id)
		if err == nil && (l.Difference != 0 || l.Total != l.OnSale+l.Writing+l.Issued || l.OnSale < 0) {
			r.Errorf("it does not add up: %+v", l)
		}
		return err
	}
	r.eventually("the ledger cannot be read", look)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = look() // not possible while Redis is empty
			}
		}
	}()
	r.Cleanup(func() {
		close(stop)
		<-done
	})
}

// TestCouponReturnsBehindTheGate: the transaction that revokes a coupon makes the coupon
// available to a shard. Another user gets it; the former owner does not.
func TestCouponReturnsBehindTheGate(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(2, 1, nil)
	r.accepted(drop.ID, 1, 2)
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	list := r.Coupons(drop.ID)
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 3, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Fatal(err)
	}
	r.watch(drop.ID)
	r.revoke(list[0].CouponID)
	r.revoke(list[0].CouponID)
	// No keeper has run yet, as after a death between the two.
	if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: 2, OnSale: 1, Issued: 1}) {
		t.Fatalf("%+v, %v", l, err)
	}
	r.tend(drop.ID)
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, list[0].UserID, "other")); !errors.Is(err, claim.ErrLimit) {
		t.Errorf("whoever lost it claims another: %v", err)
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 3, "")); err != nil {
		t.Errorf("the returned coupon is not for sale: %v", err)
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 4, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("one was returned, two were given: %v", err)
	}
	for r.writeOnce(t.Context(), 1) > 0 {
		continue
	}
	if total, issued := r.Balance(drop.ID); total != 2 || issued != 2 {
		t.Errorf("%d of %d", issued, total)
	}
}

// TestEverythingReturnsBehindTheGate: more coupons are returned than the stock at the start of
// the epoch, during the rush and while the gate is rebuilt on an emptied Redis.
func TestEverythingReturnsBehindTheGate(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 3)
	drop := r.Open(30, 1, nil)
	r.run()
	r.watch(drop.ID)
	for by := user.ID(1); by <= 30; by++ {
		_, err := r.Claim(t.Context(), claimtest.Tap(drop, by, ""))
		r.must(err)
	}
	list := r.Coupons(drop.ID)
	var all sync.WaitGroup
	for i, c := range list {
		all.Go(func() { r.revoke(c.CouponID) })
		all.Go(func() { _, _ = r.Claim(r.Context(), claimtest.Tap(drop, user.ID(100+i), "")) })
		if i == 15 {
			r.must(r.client.FlushAll(t.Context()).Err())
		}
	}
	all.Wait()
	// The stock on the shard now is all that may still be had.
	sold := int64(0)
	for by := user.ID(1000); ; by++ {
		_, err := r.Claim(t.Context(), claimtest.Tap(drop, by, ""))
		if errors.Is(err, claim.ErrSoldOut) {
			r.settled(drop.ID)
			if l, err := r.ledger(drop.ID); err == nil && l.OnSale == 0 {
				break
			}
			continue // a return was not handed out yet
		}
		r.must(err)
		if sold++; sold > 60 {
			t.Fatal("sold more than there is")
		}
	}
	if total, issued := r.Balance(drop.ID); total != 30 || issued != 30 {
		t.Errorf("%d of %d", issued, total)
	}
	var returned int64
	r.must(r.sql.QueryRow(t.Context(), `select returned from templates where id = $1`, drop.ID).Scan(&returned))
	if returned != 30 {
		t.Errorf("%d returned", returned)
	}
}

// TestCurveAndPaceOfTheGate: a claim counts in the curve and in the pace at the time of the
// claim, however late it is written.
func TestCurveAndPaceOfTheGate(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(50, 1, nil)
	var users []user.ID
	for by := user.ID(1); by <= 20; by++ {
		users = append(users, by)
	}
	began := time.Now()
	r.accepted(drop.ID, users...)
	ended := time.Now()
	shards := redisgate.NewShards(r.client)
	sum := func(now time.Time) (n int64) {
		pace, err := shards.Pace(t.Context(), drop.ID, 2, now, 10)
		r.must(err)
		for _, m := range pace {
			n += m
		}
		return n
	}
	if n := sum(ended.Add(time.Second)); n != 20 {
		t.Errorf("%d in the last seconds, before anything is written", n)
	}
	if n := sum(ended.Add(30 * time.Second)); n != 0 {
		t.Errorf("%d half a minute later", n)
	}
	// Written two seconds later, they still belong to their own second.
	r.eventually("two seconds later", func() error {
		if time.Since(ended) < 2*time.Second {
			return errors.New("not yet")
		}
		return nil
	})
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	var first, last time.Time
	var issued int64
	r.must(r.sql.QueryRow(t.Context(), `select min(second), max(second), sum(issued) from claim_seconds where template_id = $1`, drop.ID).Scan(&first, &last, &issued))
	if issued != 20 || first.Before(began.Truncate(time.Second).Add(-time.Second)) || last.After(ended) {
		t.Errorf("%d from %s to %s, claimed from %s to %s", issued, first, last, began, ended)
	}
}

// TestAuditLooksAtTheGate, and says when it could not.
func TestAuditLooksAtTheGate(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 2)
	drop := r.Open(5, 1, nil)
	r.accepted(drop.ID, 1, 2)
	audited := func(redisURL string, wantErr bool, words ...string) {
		t.Helper()
		var out bytes.Buffer
		env := map[string]string{"DATABASE_URL": r.sql.Config().ConnString(), "REDIS_URL": redisURL}
		err := commands.Do(context.WithoutCancel(t.Context()), []string{"audit", fmt.Sprint(drop.ID)}, func(k string) string { return env[k] }, &out)
		if (err != nil) != wantErr {
			t.Errorf("%v\n%s", err, &out)
		}
		for _, w := range words {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%q is missing in\n%s", w, &out)
			}
		}
	}
	audited(server.URL(), false, "5 in all = 3 available + 2 being written + 0 issued", "2 shards of epoch 1 were read", "balances")
	audited("", false, "NOT read, since REDIS_URL is not set")
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	audited(server.URL(), false, "5 in all = 3 available + 0 being written + 2 issued")
	r.must(r.client.HIncrBy(t.Context(), fmt.Sprintf("gate:{%d:0}", drop.ID), "stock", 2).Err())
	audited(server.URL(), true, "7")
	server.Kill()
	audited(server.URL(), false, "could NOT be read, since Redis does not answer", "balances")
}
