package coupons_test

import (
	"context"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// dyingStream is a stream whose writer dies before it settles.
type dyingStream struct {
	redisgate.Stream
	died int
}

var errDied = errors.New("kill -9")

func (d *dyingStream) Settle(context.Context, int64, int, []gate.Group, map[claim.ID]gate.Settlement) error {
	d.died++
	return errDied
}

// accepted makes claims that are not written yet.
func (r *gateFixture) accepted(drop int64, users ...user.ID) []claim.ID {
	r.Helper()
	var ids []claim.ID
	for _, by := range users {
		q := claim.Request{ID: claim.NewID(uint64(by)<<32, drop), TemplateID: drop, UserID: by, Origin: claim.ByTap, Key: claim.TapKey(by, "k")}
		got, err := r.Claim(r.Context(), q)
		if err != nil || got.State != claim.Accepted {
			r.Fatalf("%+v %v", got, err)
		}
		ids = append(ids, got.ID)
	}
	return ids
}

// outcome returns the claim as its user sees it.
func (r *gateFixture) outcome(by user.ID, id claim.ID) claim.Claim {
	r.Helper()
	c, err := r.gates[0].ByID(r.Context(), by, id)
	r.must(err)
	return c
}

// TestWriterDiesBeforeItSettles: a writer dies when the coupons are in the database and the
// entries still on the stream. Another writer takes the entries over, finds them decided and
// settles them. No coupon is issued or given back twice.
func TestWriterDiesBeforeItSettles(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 1)
	drop := r.Open(10, 1, nil)
	r.exec(`insert into claim_counts (template_id, user_id, issued) values ($1, 3, 1)`, drop.ID) // user 3 will be refused
	ids := r.accepted(drop.ID, 1, 2, 3)
	if c := r.outcome(1, ids[0]); c.State != claim.Accepted || c.UserID != 1 {
		t.Errorf("before it is written: %+v", c)
	}
	doomed := &dyingStream{Stream: redisgate.NewStream(r.client, "doomed")}
	dead := &gate.Writer{Stream: doomed, Recorder: couponsdb.NewGateRecorder(r.db)}
	if _, err := dead.Step(t.Context(), drop.ID, 0); !errors.Is(err, errDied) || doomed.died != 1 {
		t.Fatalf("%v, died %d times", err, doomed.died)
	}
	r.eventually("another writer takes over", func() error {
		if _, err := r.writers[0].Step(t.Context(), drop.ID, 0); err != nil {
			return err
		}
		if waiting, err := r.stream.Waiting(t.Context(), drop.ID, 1); err != nil || len(waiting) > 0 {
			return errors.New("entries are left")
		}
		return nil
	})
	for i, want := range []claim.State{claim.Issued, claim.Issued, claim.Failed} {
		if c := r.outcome(user.ID(i+1), ids[i]); c.State != want || (c.CouponID != 0) != (want == claim.Issued) {
			t.Errorf("claim %d: %+v, want %s", i, c, want)
		}
	}
	shards, err := redisgate.NewShards(r.client).Look(t.Context(), drop.ID, 1)
	if err != nil || shards[0].Stock != 8 || shards[0].Returned != 1 || shards[0].Accepted != 3 {
		t.Errorf("%+v %v", shards, err)
	}
	l, err := r.ledger(drop.ID)
	if err != nil || l != (gate.Ledger{Total: 10, OnSale: 8, Issued: 2}) {
		t.Errorf("%+v %v", l, err)
	}
}

// TestWhatTheDatabaseRefusesIsGivenBack: the database refuses an accepted claim. Its user gets
// the reason and may try again, and another user gets the coupon.
func TestWhatTheDatabaseRefusesIsGivenBack(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
	drop := r.Open(3, 1, nil)
	r.exec(`insert into claim_counts (template_id, user_id, issued) values ($1, 7, 1)`, drop.ID)
	id := r.accepted(drop.ID, 7)[0]
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	if c := r.outcome(7, id); c.State != claim.Failed || c.Reason != claim.ErrLimit.Code || c.UserID != 7 {
		t.Errorf("told %+v", c)
	}
	again, err := r.Claim(t.Context(), claim.Request{ID: claim.NewID(1, drop.ID), TemplateID: drop.ID, UserID: 7, Origin: claim.ByTap, Key: claim.TapKey(7, "k")})
	if err != nil || again.ID != id || again.State != claim.Failed {
		t.Errorf("the same key once more: %+v %v", again, err)
	}
	r.exec(`delete from claim_counts where template_id = $1 and user_id = 7`, drop.ID)
	r.run()
	for by := user.ID(7); by < 10; by++ {
		if _, err := r.Claim(t.Context(), claimtest.Tap(drop, by, "other")); err != nil {
			t.Errorf("user %d: %v", by, err)
		}
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 10, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a fourth one of three: %v", err)
	}
	claimtest.Holds(t, r, drop.ID, 3, 1)
}

// TestPoisonIsSetAside: entries that are no claims, and claims that the database cannot store,
// do not hold up other claims. Operators can read these entries.
func TestPoisonIsSetAside(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 1)
	drop := r.Open(10, 1, nil)
	first := r.accepted(drop.ID, 1)[0]
	stream := "gate:{" + itoa(drop.ID) + ":0}:stream"
	for _, values := range [][]string{{"greeting", "hello"}, {"epoch", "1", "at", "1", "x", "y"}, {"epoch", "1", "at", "1"}} {
		r.must(r.client.XAdd(t.Context(), &goredis.XAddArgs{Stream: stream, Values: values}).Err())
	}
	bad, err := r.gates[0].Claim(t.Context(), claim.Request{ID: 99, TemplateID: drop.ID, UserID: 2, Origin: claim.ByTap, Key: "a\x00b"})
	r.must(err)
	last := r.accepted(drop.ID, 3)[0]
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	for i, id := range []claim.ID{first, bad.ID, last} {
		want := []claim.State{claim.Issued, claim.Failed, claim.Issued}[i]
		if c := r.outcome(user.ID(i+1), id); c.State != want {
			t.Errorf("%+v, want %s", c, want)
		}
	}
	messages := workdb.NewDeadMessages(r.db)
	open, err := messages.Open(t.Context(), 0, 10)
	r.must(err)
	if len(open) != 4 {
		t.Fatalf("%d set aside: %+v", len(open), open)
	}
	for _, m := range open {
		if err := messages.Requeue(t.Context(), staff.System(), m.ID); fault.KindOf(err) != fault.Invalid || m.Handler != "gate" {
			t.Errorf("%s: sent again: %v", m.Handler, err)
		}
	}
	claimtest.Holds(t, r, drop.ID, 2, 1)
}

// TestAnotherBuilderTakesOver: a builder dies after it has fenced the shards. No claim is
// accepted. Once the builder's lease has ended, another keeper builds the gate.
func TestAnotherBuilderTakesOver(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(10, 1, nil)
	r.accepted(drop.ID, 1, 2, 3)
	plan, err := r.store.Plan(t.Context(), drop.ID)
	r.must(err)
	plan, err = r.store.Begin(t.Context(), plan, 0, 2, "test", time.Hour)
	r.must(err)
	shards := redisgate.NewShards(r.client)
	for shard := range 2 {
		r.must(shards.Fence(t.Context(), drop.ID, shard, plan.Epoch))
	}
	if _, err := r.gates[0].Claim(t.Context(), claimtest.Tap(drop, 4, "")); !errors.Is(err, claim.ErrOverloaded) {
		t.Errorf("while it is being built: %v", err)
	}
	if err := r.keepers[1].Reconcile(t.Context(), drop.ID); !errors.Is(err, gate.ErrStaleEpoch) {
		t.Errorf("two build at once: %v", err)
	}
	r.exec(`update gates set lease_until = now() where template_id = $1`, drop.ID)
	r.must(r.keepers[1].Reconcile(t.Context(), drop.ID))
	for _, late := range []error{r.store.Activate(t.Context(), drop.ID, plan.Epoch), shards.Reset(t.Context(), drop.ID, 0, plan.Epoch, 99),
		shards.Open(t.Context(), drop.ID, 0, plan.Epoch, true)} {
		if !errors.Is(late, gate.ErrStaleEpoch) {
			t.Errorf("the first builder wakes up and is let do: %v", late)
		}
	}
	l, err := r.ledger(drop.ID)
	if err != nil || l != (gate.Ledger{Total: 10, OnSale: 7, Issued: 3}) {
		t.Errorf("%+v %v", l, err)
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "")); !errors.Is(err, claim.ErrLimit) {
		t.Errorf("the limit is forgotten: %v", err)
	}
	again, err := r.Claim(t.Context(), claim.Request{ID: 5, TemplateID: drop.ID, UserID: 1, Origin: claim.ByTap, Key: claim.TapKey(1, "k")})
	if err != nil || again.State != claim.Issued || again.CouponID == 0 {
		t.Errorf("the key is forgotten: %+v %v", again, err)
	}
}

// TestStaffGiveAwayAfterTheEnd: once a drop has ended and all its claims are written, its shards
// are removed. Later grants by staff are decided by the database.
func TestStaffGiveAwayAfterTheEnd(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	durable := couponsdb.NewClaims(r.db, postgres.Grouping{})
	defer durable.Close()
	claims := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Later: durable})
	drop := r.Open(10, 1, nil)
	r.accepted(drop.ID, 1)
	r.exec(`update templates set closes_at = now() - interval '1 second', version = version + 1 where id = $1`, drop.ID)
	if _, err := r.service.CloseEnded(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	grant := func(by user.ID) error {
		_, err := claims.Claim(t.Context(), claim.Request{ID: claim.NewID(uint64(by)<<32, drop.ID), TemplateID: drop.ID, UserID: by, Origin: claim.ByGrant, Key: by.String()})
		return err
	}
	r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
	r.must(grant(2)) // still from the shard
	for r.writeOnce(t.Context(), 0) > 0 {
		continue
	}
	r.must(r.keepers[0].Reconcile(t.Context(), drop.ID))
	plan, err := r.store.Plan(t.Context(), drop.ID)
	if err != nil || plan.State != gate.Retired {
		t.Fatalf("%+v %v", plan, err)
	}
	r.eventually("the gate has noticed", func() error { return grant(3) })
	if err := grant(3); err != nil {
		t.Errorf("repeated: %v", err)
	}
	if _, err := claims.Claim(t.Context(), claimtest.Tap(drop, 4, "")); !errors.Is(err, claim.ErrEnded) {
		t.Errorf("a user after the end: %v", err)
	}
	claimtest.Holds(t, r, drop.ID, 3, 1)
}

// takenStream is a stream of which a writer has taken something already.
type takenStream struct {
	redisgate.Stream
	groups []gate.Group
}

func (s *takenStream) Take(context.Context, int64, int, int) ([]gate.Group, []gate.Poison, error) {
	return s.groups, nil, nil
}

// TestWhatAWriterHadInHand: a writer has read accepted claims. Redis is emptied and the gate
// rebuilt, and only then does the writer store these claims. The claims are honoured, and the
// surplus that the shards have because of them is removed before it is sold.
func TestWhatAWriterHadInHand(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(5, 1, nil)
	r.accepted(drop.ID, 1, 2)
	var taken [2][]gate.Group
	for shard := range taken {
		var err error
		taken[shard], _, err = r.stream.Take(t.Context(), drop.ID, shard, 10)
		r.must(err)
	}
	r.must(r.client.FlushAll(t.Context()).Err())
	r.tend(drop.ID)
	for shard, groups := range taken {
		if len(groups) > 0 {
			late := &gate.Writer{Stream: &takenStream{r.stream, groups}, Recorder: couponsdb.NewGateRecorder(r.db)}
			_, err := late.Step(t.Context(), drop.ID, shard)
			r.must(err)
		}
	}
	if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: 5, OnSale: 3, Issued: 2}) {
		t.Errorf("%+v %v", l, err)
	}
	r.tend(drop.ID)
	if plan, err := r.store.Plan(t.Context(), drop.ID); err != nil || plan.Reason != gate.ReasonExcess || plan.Allot() != 3 {
		t.Errorf("%+v %v", plan, err)
	}
	r.run()
	for by := user.ID(3); by <= 5; by++ {
		if _, err := r.Claim(t.Context(), claimtest.Tap(drop, by, "")); err != nil {
			t.Errorf("user %d: %v", by, err)
		}
	}
	if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 6, "")); !errors.Is(err, claim.ErrSoldOut) {
		t.Errorf("a sixth of five: %v", err)
	}
	claimtest.Holds(t, r, drop.ID, 5, 1)
}

// TestAGiftIsWrittenBeforeATap: the gate accepts two taps of a user, who may have two coupons, and then a
// gift beyond the limit. Whichever is written first, all three are issued; a third tap is none.
func TestAGiftIsWrittenBeforeATap(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 1)
	for _, together := range []bool{false, true} {
		drop := r.Open(10, 2, nil)
		for _, key := range []string{"a", "b"} {
			_, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, key+itoa(drop.ID)))
			r.must(err)
		}
		_, err := r.Claim(t.Context(), claim.Request{ID: claim.NewID(1<<40, drop.ID), TemplateID: drop.ID, UserID: 1, Origin: claim.ByGrant, Key: claim.OverLimit + itoa(drop.ID)})
		r.must(err)
		if _, err := r.Claim(t.Context(), claimtest.Tap(drop, 1, "c"+itoa(drop.ID))); !errors.Is(err, claim.ErrLimit) {
			t.Errorf("a third tap: %v", err)
		}
		groups, _, err := r.stream.Scan(t.Context(), drop.ID, 0, "", 10)
		r.must(err)
		if len(groups) != 3 {
			t.Fatalf("%+v", groups)
		}
		pages := [][]gate.Group{{groups[2]}, groups[:2]}
		if together {
			pages = [][]gate.Group{{groups[2], groups[0], groups[1]}}
		}
		for _, page := range pages {
			verdicts, err := couponsdb.NewGateRecorder(r.db).Write(t.Context(), drop.ID, 0, page)
			r.must(err)
			for _, v := range verdicts {
				if !v.Issued {
					t.Errorf("%+v", v)
				}
			}
		}
		for r.writeOnce(t.Context(), 0) > 0 {
		}
		if n := len(r.Coupons(drop.ID)); n != 3 {
			t.Errorf("%d coupons", n)
		}
		r.Balance(drop.ID)
	}
}
