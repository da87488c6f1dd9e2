package coupons_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	couponsdb "dropbell/adapters/postgres/coupons"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/redisgate"
	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// issue gives users 1 to n a coupon each, as the key "k" of the API would have.
func (r *gateFixture) issue(drop int64, n int) {
	r.Helper()
	r.exec(`insert into claim_counts (template_id, user_id, issued) select $1::bigint, n, 1 from generate_series(1, $2::int) n`, drop, n)
	r.exec(`insert into coupons (template_id, user_id, claim_id, origin, origin_key, issued_at, expires_at)
		select $1::bigint, n, n + 1000000, 'claim', replace($3::text, '!', n::text), now(), now() + interval '1 day' from generate_series(1, $2::int) n`,
		drop, n, strings.Replace(claim.TapKey(7, "k"), "7", "!", 1))
	r.exec(`update templates set issued = issued + $2::int, version = version + 1 where id = $1`, drop, n)
	r.exec(`update gates set base = base + $2::int where template_id = $1`, drop, n)
	r.exec(`update gate_shards f set allot = allot - $2::int / g.shards from gates g where g.template_id = f.template_id and f.template_id = $1`, drop, n)
}

// states returns the states of the drop's shards in Redis.
func (r *gateFixture) states(drop int64) (list []string) {
	r.Helper()
	for shard := range r.shards {
		state, err := r.client.HGet(r.Context(), fmt.Sprintf("gate:{%d:%d}", drop, shard), "state").Result()
		r.must(err)
		list = append(list, state)
	}
	return list
}

// tornStore is a database from which a keeper reads only the first page of a shard's content;
// reading the next page fails.
type tornStore struct{ couponsdb.Gates }

var errTorn = errors.New("the connection is lost")

func (s tornStore) CouponRecords(ctx context.Context, id, after int64) ([]gate.IdempotencyRecord, int64, error) {
	if after > 0 {
		return nil, 0, errTorn
	}
	return s.Gates.CouponRecords(ctx, id, after)
}

// TestClaimsAreDecidedBeforeTheShardsAreFilled: Redis is emptied after many coupons were issued,
// and the keeper that fills the shards fails after one page. Claims are decided all the same, by
// the limits and earlier requests in the database. Another keeper fills the shards, and does not
// overwrite the counts of claims that were accepted meanwhile.
func TestClaimsAreDecidedBeforeTheShardsAreFilled(t *testing.T) {
	const had, limit = 12_000, 2
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
	drop := r.Open(2*had, limit, nil)
	r.issue(drop.ID, had)
	r.must(r.client.FlushAll(t.Context()).Err())
	k := r.keepers[0]
	k.Store = tornStore{r.store}
	if err := k.Reconcile(t.Context(), drop.ID); !errors.Is(err, errTorn) {
		t.Fatalf("the first keeper: %v", err)
	}
	if got := strings.Join(r.states(drop.ID), " "); got != "filling filling filling" {
		t.Fatalf("shards are %s", got)
	}
	ask := func(by user.ID, key string) (claim.Claim, error) {
		return r.gates[0].Claim(t.Context(), claimtest.Tap(drop, by, key))
	}
	check := func(when string, by user.ID) {
		t.Helper()
		first, err := ask(by, "k")
		if err != nil || first.ID != claim.ID(by)+1_000_000 || first.CouponID == 0 {
			t.Errorf("%s, user %d repeats the request of the coupon: %+v %v", when, by, first, err)
		}
		if second, err := ask(by, "second"); err != nil || second.State == claim.Issued && second.CouponID == first.CouponID {
			t.Errorf("%s, user %d claims the second: %+v %v", when, by, second, err)
		}
		if third, err := ask(by, "third"); !errors.Is(err, claim.ErrLimit) {
			t.Errorf("%s, user %d claims a third of %d: %+v %v", when, by, limit, third, err)
		}
	}
	for _, by := range []user.ID{1, 4000, had} {
		check("while shards are filled", by)
	}
	for _, key := range []string{"a", "b"} {
		if c, err := ask(had+1, key); err != nil || c.State != claim.Accepted {
			t.Errorf("a new user: %+v %v", c, err)
		}
	}
	if _, err := ask(had+1, "c"); !errors.Is(err, claim.ErrLimit) {
		t.Errorf("a new user claims a third: %v", err)
	}

	epoch := r.epochs(drop.ID)
	r.eventually("another keeper fills the shards", func() error {
		if err := r.keepers[1].Reconcile(t.Context(), drop.ID); err != nil {
			return err
		}
		if got := strings.Join(r.states(drop.ID), " "); got != "open open open" {
			return errors.New(got)
		}
		return nil
	})
	if again := r.epochs(drop.ID); fmt.Sprint(again) != fmt.Sprint(epoch) {
		t.Errorf("epochs %v became %v: the shards were built anew", epoch, again)
	}
	for _, by := range []user.ID{1, had + 1} {
		if _, err := ask(by, "fourth"); !errors.Is(err, claim.ErrLimit) {
			t.Errorf("user %d claims one more: %v", by, err)
		}
	}
	check("afterwards", 77)
	r.writeAll()
	claimtest.Holds(t, r, drop.ID, had+3+2+1, limit)
}

// TestHouseholdsOfShardsThatAreFilled: as above, with a household that got its coupons before Redis was emptied, and
// one that gets them while the shards are filled.
func TestHouseholdsOfShardsThatAreFilled(t *testing.T) {
	const had = 12_000
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
	drop := r.Open(2*had, 2, func(s *template.Spec) { s.HouseholdLimit = 2 })
	r.issue(drop.ID, had)
	for by, household := range map[user.ID]string{1: "a", 2: "a", 3: "a", had + 1: "b", had + 2: "b", had + 3: "b"} {
		r.Household(by, strings.Repeat(household, 16))
	}
	r.exec(`delete from coupons where template_id = $1 and user_id = 3`, drop.ID)
	r.exec(`delete from claim_counts where template_id = $1 and user_id = 3`, drop.ID)
	r.exec(`update claim_counts c set household = household_number(u.household) from users u where u.id = c.user_id and c.template_id = $1`, drop.ID)
	r.must(r.client.FlushAll(t.Context()).Err())
	r.keepers[0].Store = tornStore{r.store}
	if err := r.keepers[0].Reconcile(t.Context(), drop.ID); !errors.Is(err, errTorn) {
		t.Fatalf("the first keeper: %v", err)
	}
	ask := func(by user.ID, want error) {
		t.Helper()
		if _, err := r.gates[0].Claim(t.Context(), claimtest.Tap(drop, by, "")); !errors.Is(err, want) {
			t.Errorf("user %d: %v, want %v", by, err, want)
		}
	}
	ask(1, claim.ErrHousehold)
	ask(3, claim.ErrHousehold)
	ask(had+1, nil)
	ask(had+2, nil)
	ask(had+3, claim.ErrHousehold)
	r.eventually("another keeper fills the shards", func() error {
		if err := r.keepers[1].Reconcile(t.Context(), drop.ID); err != nil {
			return err
		}
		if got := strings.Join(r.states(drop.ID), " "); got != "open open open" {
			return errors.New(got)
		}
		return nil
	})
	ask(3, claim.ErrHousehold)
	ask(had+3, claim.ErrHousehold)
	ask(had+1, claim.ErrHousehold)
	r.writeAll()
	r.must(r.client.FlushAll(t.Context()).Err())
	r.must(r.keepers[1].Reconcile(t.Context(), drop.ID))
	ask(2, claim.ErrHousehold)
	ask(had+3, claim.ErrHousehold)
	ask(had+4, nil)
}

// deadStore is the database of a builder that dies, or is halted, as soon as it has begun: none
// of its later calls reaches the database.
type deadStore struct {
	couponsdb.Gates
	halted chan struct{} // closed when the builder was halted
}

func (s deadStore) StartEpoch(ctx context.Context, _, _ int64) (gate.Plan, error) {
	close(s.halted)
	<-ctx.Done()
	return gate.Plan{}, ctx.Err()
}

func (s deadStore) Renew(ctx context.Context, id, epoch int64, lease, ready time.Duration) error {
	select {
	case <-s.halted:
		return errTorn // neither a renewal nor the end of the lease
	default:
		return s.Gates.Renew(ctx, id, epoch, lease, ready)
	}
}

// TestABuilderThatDiesIsTakenOverSoon: a builder dies while it holds the lease. Two seconds
// later, by the database's clock, another builder may begin. Claims are told to retry at the
// time at which the first builder expected to be done.
func TestABuilderThatDiesIsTakenOverSoon(t *testing.T) {
	r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
	drop := r.Open(10, 1, nil)
	r.accepted(drop.ID, 1, 2)
	r.must(r.client.Del(t.Context(), fmt.Sprintf("gate:{%d:0}", drop.ID), fmt.Sprintf("gate:{%d:1}", drop.ID), fmt.Sprintf("gate:{%d:2}", drop.ID)).Err())
	dead := deadStore{r.store, make(chan struct{})}
	r.keepers[0].Store = dead
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.keepers[0].Reconcile(ctx, drop.ID) }()
	<-dead.halted
	kill()
	if err := <-ended; err == nil {
		t.Fatal("the builder was not halted")
	}
	var left time.Duration
	r.must(r.sql.QueryRow(t.Context(), `select lease_until - clock_timestamp() from gates where template_id = $1`, drop.ID).Scan(&left))
	if left > 2*time.Second {
		t.Errorf("the next builder has to wait for %v", left)
	}
	r.exec(`update gates set ready_at = clock_timestamp() + interval '1 hour' where template_id = $1`, drop.ID)
	hasty := redisgate.New(r.client, facts{r.store, dropsdb.NewTemplates(r.db)}, redisgate.Options{Patience: 30 * time.Millisecond})
	_, err := hasty.Claim(t.Context(), claimtest.Tap(drop, 3, "k"))
	if again, ok := errors.AsType[*fault.RetryAfter](err); !ok || again.After < 50*time.Minute || again.After > time.Hour {
		t.Errorf("a claim is told %v", err)
	}
	r.eventually("another builds it", func() error { return r.keepers[1].Reconcile(t.Context(), drop.ID) })
	if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: 10, OnSale: 8, Issued: 2}) {
		t.Errorf("%+v %v", l, err)
	}
}

// tiredStore is a database that fails once a shard, or the gate, was fenced.
type tiredStore struct{ couponsdb.Gates }

func (tiredStore) StartEpoch(context.Context, int64, int64) (gate.Plan, error) {
	return gate.Plan{}, errTorn
}
func (tiredStore) StartShards(context.Context, int64, []int, int64) (gate.Plan, error) {
	return gate.Plan{}, errTorn
}

// TestABuilderThatFailsLeavesAtOnce: a builder that cannot continue releases its lease, so that
// the next builder need not wait. This holds for the whole gate and for single shards.
func TestABuilderThatFailsLeavesAtOnce(t *testing.T) {
	for name, lost := range map[string][]int{"all shards": {0, 1, 2}, "two shards": {0, 2}} {
		t.Run(name, func(t *testing.T) {
			r := newGateFixture(t, localstack.RedisServer(t).URL(), 3)
			drop := r.Open(10, 1, nil)
			r.accepted(drop.ID, 1, 2)
			for _, shard := range lost {
				r.must(r.client.Del(t.Context(), fmt.Sprintf("gate:{%d:%d}", drop.ID, shard)).Err())
			}
			r.keepers[0].Store = tiredStore{r.store}
			if err := r.keepers[0].Reconcile(t.Context(), drop.ID); !errors.Is(err, errTorn) {
				t.Fatal(err)
			}
			r.must(r.keepers[1].Reconcile(t.Context(), drop.ID))
			r.writeAll()
			if l, err := r.ledger(drop.ID); err != nil || l != (gate.Ledger{Total: 10, OnSale: 8, Issued: 2}) {
				t.Errorf("%+v %v", l, err)
			}
		})
	}
}
