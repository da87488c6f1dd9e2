package coupons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/template"
)

// TestClaimsWaitForTheirShards: a claim that arrives shortly before the gate is active waits for
// the gate.
func TestClaimsWaitForTheirShards(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.published(50, 1)
	answers := make(chan error)
	for by := int64(1); by <= 60; by++ {
		go func() {
			for end := time.Now().Add(30 * time.Second); ; { // a busy machine may need more than one wait
				_, err := r.gates[by%2].Claim(t.Context(), claimtest.Tap(drop, userID(by), "k"))
				if !errors.Is(err, claim.ErrOverloaded) || time.Now().After(end) {
					answers <- err
					return
				}
			}
		}()
	}
	r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
	refused := 0
	for range 60 {
		switch err := <-answers; {
		case errors.Is(err, claim.ErrSoldOut):
			refused++
		case err != nil:
			t.Error(err)
		}
	}
	if refused != 10 {
		t.Errorf("%d of 60 were refused, want 10", refused)
	}
	r.run()
	claimtest.Holds(t, r, drop.ID, 50, 1)
}

// TestClaimsWaitForABoundedTime: without a keeper that builds the gate, a claim is answered
// after a bounded wait. An answer that needs no shard is given at once.
func TestClaimsWaitForABoundedTime(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	patience := 100 * time.Millisecond
	gate := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Patience: patience})
	drop := r.published(5, 1)
	began := time.Now()
	if _, err := gate.Claim(t.Context(), claimtest.Tap(drop, 1, "k")); !errors.Is(err, claim.ErrOverloaded) {
		t.Errorf("without shards: %v", err)
	}
	if took := time.Since(began); took < patience {
		t.Errorf("it gave up after %v", took)
	}
	hungUp, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.gates[0].Claim(hungUp, claimtest.Tap(drop, 1, "")); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("hung up: %v", err)
	}
	patient := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Patience: time.Hour})
	if _, err := patient.Claim(t.Context(), claimtest.Tap(r.Draft(), 1, "k")); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("of a draft: %v", err)
	}
}

// TestClaimsWaitForTheShareOfTheirDoor: the share of the first door is used up, and the second door opens before
// the keeper has handed out its share. Its customers are not told that nothing is left, also by a process that has just
// proved that for the first door: their claims wait until the share is handed out.
func TestClaimsWaitForTheShareOfTheirDoor(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	opens := time.Now().UTC().Truncate(time.Second).Add(10 * time.Minute)
	drop := r.Open(5, 1, func(s *template.Spec) { s.OpensAt, s.ClosesAt = opens, opens.Add(time.Hour) })
	doors := func(everybody int) []template.Door {
		return []template.Door{{Name: "Members", Who: template.ToSegment, LeadMinutes: 20, Share: 2}, {Name: "Everybody", Who: template.ToAll, LeadMinutes: everybody}}
	}
	r.Doors(drop.ID, doors(0))
	hasty := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Patience: 30 * time.Millisecond})
	through := func(g *redisgate.Gate, door int, by int64, want error) {
		t.Helper()
		tap := claimtest.Tap(drop, userID(by), "")
		tap.Door = door
		if _, err := g.Claim(t.Context(), tap); !errors.Is(err, want) {
			t.Errorf("user %d through door %d: %v, want %v", by, door, err, want)
		}
	}
	through(hasty, 1, 1, nil)
	through(hasty, 1, 2, nil)
	through(hasty, 1, 3, claim.ErrSoldOut)
	r.saveDoors(drop.ID, doors(20)) // the second door opens before a keeper looks
	hasty.Forget(drop.ID)           // as the event does
	through(hasty, 2, 4, claim.ErrOverloaded)
	answers := make(chan error)
	for by := int64(5); by < 10; by++ {
		go func() {
			tap := claimtest.Tap(drop, userID(by), "")
			tap.Door = 2
			_, err := r.gates[0].Claim(t.Context(), tap)
			answers <- err
		}()
	}
	r.run()
	refused := 0
	for range 5 {
		switch err := <-answers; {
		case errors.Is(err, claim.ErrSoldOut):
			refused++
		case err != nil:
			t.Error(err)
		}
	}
	if refused != 2 {
		t.Errorf("%d of 5 customers of the second door were refused, want 2", refused)
	}
	claimtest.Holds(t, r, drop.ID, 5, 1)
}

// TestABuilderThatWorksKeepsItsLease: building may take longer than the lease, as long as the
// builder makes progress. Once another builder has begun, the first builder is told.
func TestABuilderThatWorksKeepsItsLease(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.published(5, 1)
	plan, err := r.store.Plan(t.Context(), drop.ID)
	r.must(err)
	plan, err = r.store.Begin(t.Context(), plan, 0, 2, gate.ReasonNew, time.Hour)
	r.must(err)
	r.exec(`update gates set lease_until = clock_timestamp() - interval '1 second'`)
	r.must(r.store.Renew(t.Context(), drop.ID, plan.Epoch, time.Minute, time.Second))
	if _, err := r.store.Begin(t.Context(), plan, 0, 2, gate.ReasonUnfinished, time.Hour); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("another began: %v", err)
	}
	r.exec(`update gates set lease_until = clock_timestamp() - interval '1 second'`)
	_, err = r.store.Begin(t.Context(), plan, 0, 2, gate.ReasonUnfinished, time.Hour)
	r.must(err)
	if lost := r.store.Renew(t.Context(), drop.ID, plan.Epoch, time.Minute, time.Second); !errors.Is(lost, gate.ErrStaleEpoch) {
		t.Errorf("the first is told %v", lost)
	}
}

// TestApplyNowDoesWhatAChangeNeeds: publishing a drop and raising its stock fill the shards
// before the next sweep. Applying the same change again has no further effect.
func TestApplyNowDoesWhatAChangeNeeds(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
	drop := r.published(2, 1)
	prompt := func() {
		t.Helper()
		for _, k := range r.keepers {
			r.must(k.ApplyNow(t.Context(), drop.ID))
		}
		for _, g := range r.gates {
			g.Forget(drop.ID) // as the event does
		}
	}
	ask := func(by int64) error {
		_, err := r.gates[by%2].Claim(t.Context(), claimtest.Tap(drop, userID(by), ""))
		return err
	}
	prompt()
	r.must(errors.Join(ask(1), ask(2)))
	if err := ask(3); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a third: %v", err)
	}
	r.exec(`update templates set stock = 3, version = version + 1 where id = $1`, drop.ID)
	prompt()
	r.must(ask(3))
	if err := ask(4); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a fourth: %v", err)
	}
	r.exec(`update templates set state = 'paused', version = version + 1 where id = $1`, drop.ID)
	prompt()
	if err := ask(5); !errors.Is(err, template.ErrNotOpen) {
		t.Errorf("paused: %v", err)
	}
	plan, err := r.store.Plan(t.Context(), drop.ID)
	if err != nil || plan.Epoch != 1 || plan.State != gate.Active {
		t.Errorf("%+v %v", plan, err)
	}
}

// TestAClockThatWasSet: the window was set on the shards while the clock of their server was
// wrong. Once the clock is right, the window is set again.
func TestAClockThatWasSet(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(5, 1, nil)
	for shard := range 2 {
		key := "gate:{" + itoa(drop.ID) + ":" + itoa(int64(shard)) + "}"
		if ahead, err := r.client.HGet(t.Context(), key, "ahead").Result(); err != nil || ahead != "0" {
			t.Fatalf("shard %d: ahead %q, %v", shard, ahead, err)
		}
		r.must(r.client.HSet(t.Context(), key, "ahead", 3_600_000).Err()) // the drop is not open for another hour
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "")); !errors.Is(err, claim.ErrNotStarted) {
		t.Fatalf("by a clock that is an hour late: %v", err)
	}
	r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "")); err != nil {
		t.Errorf("after it was tended: %v", err)
	}
}

// TestTwoDivideNewStock: two keepers hand out new stock at the same time, each by its own view.
// Together they never hand out more than the stock.
func TestTwoDivideNewStock(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(4, 1, nil)
	r.exec(`update templates set stock = 6 where id = $1`, drop.ID)
	plan, err := r.store.Plan(t.Context(), drop.ID)
	r.must(err)
	first, second := []int64{plan.Parts[0].Allot + 2, plan.Parts[1].Allot}, []int64{plan.Parts[0].Allot + 1, plan.Parts[1].Allot + 1}
	r.must(r.store.Allot(t.Context(), drop.ID, plan.Epoch, first))
	if err := r.store.Allot(t.Context(), drop.ID, plan.Epoch, second); !errors.Is(err, gate.ErrOverAllotted) {
		t.Errorf("the second was allowed: %v", err)
	}
	if plan, err = r.store.Plan(t.Context(), drop.ID); err != nil || plan.Allot() != 6 {
		t.Errorf("%d on the shards, %v", plan.Allot(), err)
	}
}
