package coupons_test

import (
	"context"
	"errors"
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/task"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/domain/waitlist"
)

// away is a queue that does not answer.
type away struct{}

func (away) Enqueue(context.Context, ...task.Task) error { return errors.New("the queue is away") }

// TestWaitlistBehindTheGate: while a user waits, no stock that comes back reaches a tap behind the
// gate: not the coupon of a claim that the database refused, not a returned coupon, not raised stock,
// and not after Redis was emptied. The waiting user gets one, and the others are on sale again.
func TestWaitlistBehindTheGate(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 2)
	drop := r.Open(3, 1, func(s *template.Spec) { s.Waitlist = template.IssueNext })
	lists := couponsdb.NewWaitlists(r.db, postgres.Grouping{})
	t.Cleanup(lists.Close)
	filler := &waitlist.Filler{Store: lists, Queue: away{}}
	_, _, err := lists.Join(t.Context(), waitlist.Wish{TemplateID: drop.ID, UserID: 20, Channels: 1})
	r.must(err)
	r.exec(`insert into claim_counts (template_id, user_id, issued) values ($1, 7, 1)`, drop.ID) // user 7 will be refused
	ids := r.accepted(drop.ID, 1, 2, 7)
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	r.exec(`delete from claim_counts where template_id = $1 and user_id = 7`, drop.ID)
	if c := r.outcome(7, ids[2]); c.State != claim.Failed {
		t.Errorf("user 7: %+v", c)
	}
	noTap := func(after string, held int64) {
		t.Helper()
		r.tend(drop.ID)
		l, err := r.ledger(drop.ID)
		if err != nil || l.Difference != 0 || l.Held != held || l.OnSale != 0 || l.Total != l.OnSale+l.Held+l.Writing+l.Issued {
			t.Errorf("after %s: %+v %v", after, l, err)
		}
		if _, err := r.Claim(t.Context(), claimtest.Tap(drop, user.ID(100+held), after)); !errors.Is(err, claim.ErrSoldOut) {
			t.Errorf("after %s a tap got stock that is kept: %v", after, err)
		}
	}
	noTap("a refusal", 1)
	r.Raise(drop.ID, 4)
	noTap("a raise", 2)
	r.must(server.Restart(t.Context(), true))
	for _, k := range r.keepers {
		k.CallAll()
	}
	r.eventually("the gate is built again", func() error {
		_ = r.keepers[0].Sweep(t.Context())
		shards, err := redisgate.NewShards(r.client).Look(t.Context(), drop.ID, 2)
		if err == nil && (!shards[0].Open || !shards[1].Open) {
			err = errors.New("shards are missing")
		}
		return err
	})
	noTap("Redis was emptied", 2)
	r.must(filler.Sweep(t.Context()))
	if w, err := lists.Waiter(t.Context(), drop.ID, 20); err != nil || w.State != waitlist.Filled {
		t.Errorf("the waiting user: %+v %v", w, err)
	}
	r.tend(drop.ID)
	l, err := r.ledger(drop.ID)
	if err != nil || l != (gate.Ledger{Total: 4, OnSale: 1, Issued: 3}) {
		t.Errorf("%+v %v", l, err)
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 30, "")); err != nil {
		t.Errorf("a tap on stock that is for taps: %v", err)
	}
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	claimtest.Holds(t, r, drop.ID, 4, 1)
}
