package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/pause"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// persistent lets every user claim until the coupon is issued, like a user that checks the
// result. It counts the claims whose answer was that their shard is being filled.
type persistent struct {
	*gateFixture
	drop        template.Template
	unavailable [8]atomic.Int64
	issued      atomic.Int64
	stopped     atomic.Bool // after a failure
	all         sync.WaitGroup
}

func (r *gateFixture) persist(drop template.Template, users, callers int) *persistent {
	p := &persistent{gateFixture: r, drop: drop}
	r.Cleanup(func() { p.stopped.Store(true); p.all.Wait() })
	for i := range callers {
		p.all.Go(func() {
			for by := user.ID(i + 1); by <= user.ID(users); by += user.ID(callers) {
				p.claim(by)
			}
		})
	}
	return p
}

func (p *persistent) claim(by user.ID) {
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); {
		if p.stopped.Load() {
			return
		}
		got, err := p.gates[by%2].Claim(p.Context(), claimtest.Tap(p.drop, by, "k"))
		switch {
		case fault.KindOf(err) == fault.Unavailable:
			if strings.Contains(err.Error(), "being filled") { // and not a call that a busy machine was late with
				p.unavailable[gate.HomeShard(by, 0, p.shards)].Add(1)
			}
			continue
		case err != nil:
			p.Errorf("user %d: %v", by, err)
			return
		}
		for {
			c, err := p.gates[by%2].ByID(p.Context(), by, got.ID)
			if errors.Is(err, claim.ErrNotFound) { // lost with the shard before it was written
				break
			}
			if err == nil && c.State == claim.Issued {
				p.issued.Add(1)
				return
			}
			if err == nil && c.State == claim.Failed {
				p.Errorf("user %d: %+v", by, c)
				return
			}
			if p.stopped.Load() {
				return
			}
			pause.For(context.Background(), time.Millisecond)
		}
	}
	p.Errorf("user %d has no coupon", by)
}

func (r *gateFixture) epochs(id int64) (list []int64) {
	r.Helper()
	plan, err := r.store.Plan(r.Context(), id)
	r.must(err)
	for _, p := range plan.Parts {
		list = append(list, p.Epoch)
	}
	return list
}

// rebuilt returns nil once the shard stands in a later epoch.
func (r *gateFixture) rebuilt(id int64, shard int, epoch int64) error {
	plan, err := r.store.Plan(r.Context(), id)
	if err != nil {
		return err
	}
	shards, err := redisgate.NewShards(r.client).Look(r.Context(), id, plan.Shards)
	if err != nil {
		return err
	}
	var building bool
	err = r.sql.QueryRow(r.Context(), `select lease_until is not null from gate_shards where template_id = $1 and shard = $2`, id, shard).Scan(&building)
	if s := shards[shard]; err == nil && (building || plan.State != gate.Active || s.Epoch <= epoch || s.Epoch != plan.Parts[shard].Epoch || !s.Open) {
		err = errors.New("it is not built anew")
	}
	return err
}

// TestOneShardIsLostInTheRush: after each kind of damage to one of four shards, only the damaged
// shard is rebuilt. Claims of users of the other shards are decided meanwhile, no coupon is sold
// twice, and in the end each accepted claim has its coupon.
func TestOneShardIsLostInTheRush(t *testing.T) {
	const stock, users, bad = 4000, 1600, 2
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 4)
	drop := r.Open(stock, 1, nil)
	key := fmt.Sprintf("gate:{%d:%d}", drop.ID, bad)
	r.run()
	all := r.persist(drop, users, 16)
	del := func(parts ...string) func() error {
		return func() error {
			for _, part := range parts {
				if err := r.client.Del(t.Context(), key+part).Err(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for _, damage := range []struct {
		name string
		do   func() error
	}{
		{"all of it is gone", del("", ":users", ":keys", ":claims", ":stream", ":gone", ":came", ":pace")},
		{"its counters are gone", del("")},
		{"what its users have is gone", del(":users")},
		{"its requests are gone", del(":keys")},
		{"its stream is gone", del(":stream")},
		{"it has more than it was given", func() error { return r.client.HIncrBy(t.Context(), key, "stock", 3).Err() }},
		{"it is of an epoch that never was", func() error { return r.client.HSet(t.Context(), key, "epoch", 0).Err() }},
		{"its builder died", func() error {
			plan, err := r.store.Plan(t.Context(), drop.ID)
			if err == nil {
				_, err = r.store.BeginShards(t.Context(), plan, []int{bad}, "test", 100*time.Millisecond)
			}
			return err
		}},
	} {
		issued, before := all.issued.Load(), r.epochs(drop.ID)
		var done time.Time
		r.eventually(damage.name, func() error {
			if time.Since(done) > 2*time.Second { // a shard that is just being built takes no damage, or loses it
				if err := damage.do(); err != nil {
					return err
				}
				done = time.Now()
			}
			return r.rebuilt(drop.ID, bad, before[bad])
		})
		for i, epoch := range r.epochs(drop.ID) {
			if i != bad && epoch != before[i] {
				t.Errorf("%s: shard %d was built anew as well", damage.name, i)
			}
		}
		r.eventually("the rush goes on", func() error {
			if n := all.issued.Load(); n < min(issued+50, users) {
				return fmt.Errorf("%d issued", n)
			}
			return nil
		})
	}
	all.all.Wait()
	for shard := range r.shards {
		if n := all.unavailable[shard].Load(); shard != bad && n > 0 {
			t.Errorf("%d claims at shard %d were not decided", n, shard)
		}
	}
	claimtest.Holds(t, r, drop.ID, users, 1)
	if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: stock, OnSale: stock - users, Issued: users}) {
		t.Errorf("%+v %v", l, err)
	}
}

// TestTheLastCouponsWhileAShardIsLost: coupons move between the shards all the time, and one
// shard is lost repeatedly. Exactly the stock is sold.
func TestTheLastCouponsWhileAShardIsLost(t *testing.T) {
	const stock, users = 300, 900
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 4)
	drop := r.Open(stock, 1, nil)
	r.run()
	rs := startRush(r, drop, 12, users)
	for i := range 6 {
		wins := rs.wins()
		rs.until("the rush goes on", func() bool { return rs.wins() >= min(wins+40, stock) })
		before := r.epochs(drop.ID)
		key := fmt.Sprintf("gate:{%d:%d}", drop.ID, i%4)
		r.must(r.client.Del(t.Context(), key, key+":users", key+":keys", key+":gone", key+":came").Err()) // accepted claims are on the stream
		r.eventually("it is built anew", func() error { return r.rebuilt(drop.ID, i%4, before[i%4]) })
	}
	rs.end(users)
	for _, c := range claimtest.Holds(t, r, drop.ID, stock, 1) {
		if rs.won[c.ID] != c.UserID {
			t.Errorf("coupon %d of user %d was never promised", c.CouponID, c.UserID)
		}
	}
}

// TestTheLastCouponsWhileSeveralShardsAreLost: coupons move between the shards all the time. Two
// or three of the four shards are lost at once, repeatedly, sometimes together with coupons in
// transit between them. Intact shards are never rebuilt, and exactly the stock is sold.
func TestTheLastCouponsWhileSeveralShardsAreLost(t *testing.T) {
	const stock, users = 400, 1200
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 4)
	drop := r.Open(stock, 1, nil)
	r.run()
	rs := startRush(r, drop, 12, users)
	for i, lost := range [][]int{{0, 1}, {1, 2, 3}, {0, 2}, {0, 1, 3}} {
		wins := rs.wins()
		rs.until("the rush goes on", func() bool { return rs.wins() >= min(wins+40, stock) })
		before := r.epochs(drop.ID)
		pipe := r.client.TxPipeline() // at once, as a primary is lost
		for _, shard := range lost {
			key := fmt.Sprintf("gate:{%d:%d}", drop.ID, shard)
			pipe.Del(t.Context(), key, key+":users", key+":keys", key+":gone", key+":came") // accepted claims are on the stream
		}
		_, err := pipe.Exec(t.Context())
		r.must(err)
		for _, shard := range lost {
			r.eventually("it is built anew", func() error { return r.rebuilt(drop.ID, shard, before[shard]) })
		}
		for shard, epoch := range r.epochs(drop.ID) {
			if !slices.Contains(lost, shard) && epoch != before[shard] {
				t.Errorf("loss %d: shard %d was built anew as well", i, shard)
			}
		}
	}
	rs.end(users)
	for _, c := range claimtest.Holds(t, r, drop.ID, stock, 1) {
		if rs.won[c.ID] != c.UserID {
			t.Errorf("coupon %d of user %d was never promised", c.CouponID, c.UserID)
		}
	}
}

// TestUsersOfALostShardAreToldToComeAgain: without a keeper that rebuilds the lost shard, only
// the users of this shard wait.
func TestUsersOfALostShardAreToldToComeAgain(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 2)
	drop := r.Open(10, 1, nil)
	at := [2]user.ID{}
	for by := user.ID(1); at[0] == 0 || at[1] == 0; by++ {
		at[gate.HomeShard(by, 0, 2)] = by
	}
	key := fmt.Sprintf("gate:{%d:1}", drop.ID)
	r.must(r.client.Del(t.Context(), key).Err())
	hasty, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := r.gates[0].Claim(hasty, claimtest.Tap(drop, at[1], "k"))
	if again, ok := errors.AsType[*fault.RetryAfter](err); !ok || again.After <= 0 || !errors.Is(err, claim.ErrOverloaded) {
		t.Errorf("at the lost shard: %v", err)
	}
	if _, err := r.gates[0].Claim(t.Context(), claimtest.Tap(drop, at[0], "k")); err != nil {
		t.Errorf("at the other one: %v", err)
	}
}
