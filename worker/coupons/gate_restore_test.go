package coupons_test

import (
	"errors"
	"testing"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// restored is the gate on a copy of the database in its earlier state: PostgreSQL was restored
// from a backup, Redis was not.
func (r *gateFixture) restored(redisURL string, backup string) *gateFixture {
	r.Helper()
	return gateFixtureOn(r.T, backup, redisURL, r.shards)
}

// writeAll writes everything that waits.
func (r *gateFixture) writeAll() {
	for r.writeOnce(r.Context(), 0) > 0 {
		continue
	}
}

func span(from, to user.ID) (list []user.ID) {
	for by := from; by <= to; by++ {
		list = append(list, by)
	}
	return list
}

// TestGateOfARestoredDatabase: the restored database lacks claims that its gate had accepted.
// The gate notices this whatever the epochs are, reports it, and decides the claims once more.
// Each user whose claim was accepted has one coupon, and the remaining stock is sold.
func TestGateOfARestoredDatabase(t *testing.T) {
	for name, between := range map[string]func(r *gateFixture, drop template.Template){
		"of the same epoch": func(*gateFixture, template.Template) {},
		"of an earlier epoch": func(r *gateFixture, drop template.Template) {
			r.must(r.client.FlushAll(r.Context()).Err())
			r.tend(drop.ID)
		},
		"while one is written": func(r *gateFixture, drop template.Template) { r.accepted(drop.ID, 60) },
	} {
		t.Run(name, func(t *testing.T) {
			server := localstack.RedisServer(t)
			r := newGateFixture(t, server.URL(), 3)
			drop := r.Open(100, 1, nil)
			r.accepted(drop.ID, span(1, 20)...)
			r.writeAll()
			backup := localstack.RestoredElsewhere(t, r.sql.Config().ConnString())
			r.accepted(drop.ID, span(21, 50)...)
			r.writeAll()
			between(r, drop)

			now := r.restored(server.URL(), backup)
			lost := map[int64]int64{}
			now.keepers[0].Restored = func(id, coupons int64) { lost[id] += coupons }
			now.tend(drop.ID)
			if name == "of an earlier epoch" && lost[drop.ID] != 30 || lost[drop.ID] < 30 {
				t.Errorf("told of %v lost coupons, want 30", lost)
			}
			plan, err := now.store.Plan(t.Context(), drop.ID)
			if err != nil || plan.Reason != gate.ReasonRestored {
				t.Errorf("%+v %v", plan, err)
			}
			now.run()
			for _, by := range span(1, 50) {
				if _, err := now.Claim(t.Context(), claimtest.Tap(drop, by, "other")); !errors.Is(err, claim.ErrLimit) {
					t.Errorf("user %d claims once more: %v", by, err)
				}
				again, err := now.Claim(t.Context(), claim.Request{ID: 5, TemplateID: drop.ID, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "k")})
				if err != nil || again.ID != claim.NewID(uint64(by)<<32, drop.ID) || again.CouponID == 0 {
					t.Errorf("user %d asks again with the first key: %+v %v", by, again, err)
				}
			}
			for by := user.ID(100); ; by++ {
				if _, err := now.Claim(t.Context(), claimtest.Tap(drop, by, "")); errors.Is(err, claim.ErrSoldOut) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			claimtest.Holds(t, now, drop.ID, 100, 1)
			if now.keepers[0].Restored = nil; lost[drop.ID] > 31 {
				t.Errorf("%v coupons were recovered", lost)
			}
		})
	}
}

// TestARestoredStockIsNotOversold: the stock of the restored database is smaller than the number
// of coupons that the gate sold. Some of the lost claims are refused, and their users are told.
func TestARestoredStockIsNotOversold(t *testing.T) {
	server := localstack.RedisServer(t)
	r := newGateFixture(t, server.URL(), 2)
	drop := r.Open(10, 1, nil)
	backup := localstack.RestoredElsewhere(t, r.sql.Config().ConnString())
	r.Raise(drop.ID, 30)
	ids := r.accepted(drop.ID, span(1, 30)...)
	r.writeAll()
	now := r.restored(server.URL(), backup)
	now.tend(drop.ID)
	claimtest.Holds(t, now, drop.ID, 10, 1)
	states := map[claim.State]int{}
	for i, id := range ids {
		c, err := now.gates[0].ByID(t.Context(), user.ID(i+1), id)
		now.must(err)
		states[c.State]++
		if c.State == claim.Failed && c.Reason != claim.ErrSoldOut.Code {
			t.Errorf("user %d is told %q", i+1, c.Reason)
		}
	}
	if states[claim.Issued] != 10 || states[claim.Failed] != 20 {
		t.Errorf("told %v", states)
	}
}

// TestShardsOfAForgottenDrop: the restored database has no gate for the drop, or gave the drop's
// number to another drop. The claims on the old shards are ignored.
func TestShardsOfAForgottenDrop(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(10, 1, nil)
	r.accepted(drop.ID, span(1, 4)...)
	r.exec(`delete from gate_shards`)
	r.exec(`delete from gates`)
	r.tend(drop.ID)
	r.writeAll()
	if plan, err := r.store.Plan(t.Context(), drop.ID); err != nil || plan.Epoch != 2 || plan.Reason != gate.ReasonNew {
		t.Errorf("%+v %v", plan, err)
	}
	if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: 10, OnSale: 10}) {
		t.Errorf("%+v %v", l, err)
	}
	r.run()
	for _, by := range span(1, 10) {
		if _, err := r.Claim(t.Context(), claimtest.Tap(drop, by, "")); err != nil {
			t.Errorf("user %d: %v", by, err)
		}
	}
	claimtest.Holds(t, r, drop.ID, 10, 1)
}
