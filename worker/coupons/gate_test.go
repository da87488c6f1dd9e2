package coupons_test

import (
	"context"
	"fmt"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/claimtest"
	"dropbell/adapters/localstack"
	"dropbell/adapters/redisgate"
)

func TestGateKeepsTheContract(t *testing.T) {
	server := localstack.RedisServer(t)
	for name, shards := range map[string]int{"one shard": 1, "four shards": 4} {
		t.Run(name, func(t *testing.T) {
			claimtest.Run(t, func(t *testing.T) claimtest.Harness {
				r := newGateFixture(t, server.URL(), shards)
				r.must(r.client.FlushDB(t.Context()).Err()) // the databases number their templates alike
				r.run()
				return r
			})
		})
	}
}

// TestGateKeepsTheContractOnACluster: every script uses keys of one slot only, while moves
// between shards cross nodes.
func TestGateKeepsTheContractOnACluster(t *testing.T) {
	_, addresses := localstack.RedisCluster(t, 3)
	claimtest.Run(t, func(t *testing.T) claimtest.Harness {
		r := newGateFixture(t, addresses, 6)
		cluster, ok := r.client.(*goredis.ClusterClient)
		if !ok {
			t.Fatal("not a cluster")
		}
		r.must(cluster.ForEachMaster(t.Context(), func(ctx context.Context, node *goredis.Client) error { return node.FlushDB(ctx).Err() }))
		if n := redisgate.NewShards(r.client).Machines(t.Context()); n != 3 {
			t.Errorf("%d machines, want 3", n)
		}
		r.run()
		return r
	})
}

// TestAClusterLosesANode: one of three nodes is killed during the rush and comes back with its
// data. Later a node is replaced by an empty node. Exactly the stock is sold: no coupon more and
// no coupon less.
func TestAClusterLosesANode(t *testing.T) {
	const stock, users = 900, 2000
	nodes, addresses := localstack.RedisCluster(t, 3)
	r := newGateFixture(t, addresses, 6)
	r.run()
	drop := r.Open(stock, 1, nil)
	rs := startRush(r, drop, 16, users)
	rs.until("the rush has begun", func() bool { return rs.wins() > 200 })
	r.must(nodes[1].Kill())
	r.must(nodes[1].Restart(context.Background(), false))
	rs.until("the rush goes on", func() bool { return rs.wins() > 500 })
	// A node is replaced by an empty node with the same slots.
	empty := goredis.NewClient(&goredis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", nodes[2].Port())})
	defer empty.Close()
	r.must(empty.FlushAll(t.Context()).Err())
	rs.until("the rush goes on", func() bool { return rs.wins() > 700 })
	rs.end(users)
	for _, c := range claimtest.Holds(t, r, drop.ID, stock, 1) {
		if rs.won[c.ID] != c.UserID {
			t.Errorf("coupon %d of user %d was never promised", c.CouponID, c.UserID)
		}
	}
}
