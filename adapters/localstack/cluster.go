package localstack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCluster returns an empty Redis Cluster of n masters without replicas,
// of this test alone, and its addresses separated by commas. A stopped or
// killed node comes back with its slots, unless it is emptied.
func RedisCluster(tb testing.TB, n int) (nodes []*Redis, addresses string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	var list []string
	for range n {
		r, err := StartRedis(ctx, Options{Cluster: true})
		if err != nil {
			tb.Fatalf("no Redis for tests: %v", err)
		}
		tb.Cleanup(func() {
			if err := r.Stop(context.Background()); err != nil {
				tb.Errorf("stop Redis: %v", err)
			}
		})
		nodes, list = append(nodes, r), append(list, r.addr())
	}
	if err := joinCluster(ctx, nodes); err != nil {
		tb.Fatalf("make a Redis Cluster: %v", err)
	}
	return nodes, "redis://" + strings.Join(list, ",")
}

// slots is how many hash slots a cluster has.
const slots = 16384

// joinCluster gives each node its share of the slots, introduces them to each
// other, and waits until all agree.
func joinCluster(ctx context.Context, nodes []*Redis) error {
	for i, node := range nodes {
		client := redis.NewClient(&redis.Options{Addr: node.addr()})
		defer client.Close()
		first, last := i*slots/len(nodes), (i+1)*slots/len(nodes)-1
		if err := client.ClusterAddSlotsRange(ctx, first, last).Err(); err != nil {
			return err
		}
		// Two nodes of one epoch would quarrel about it first.
		if err := client.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			return err
		}
		for _, other := range nodes[:i] {
			_, port, _ := strings.Cut(other.addr(), ":")
			if err := client.ClusterMeet(ctx, "127.0.0.1", port).Err(); err != nil {
				return err
			}
		}
	}
	for _, node := range nodes {
		if err := clusterReady(ctx, node, len(nodes)); err != nil {
			return err
		}
	}
	return nil
}

func clusterReady(ctx context.Context, node *Redis, n int) error {
	client := redis.NewClient(&redis.Options{Addr: node.addr()})
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return until(ctx, node.Done(), func(ctx context.Context) error {
		info, err := client.ClusterInfo(ctx).Result()
		if err != nil {
			return err
		}
		known, err := client.ClusterNodes(ctx).Result()
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") || strings.Count(strings.TrimSpace(known), "\n")+1 != n || strings.Contains(known, "handshake") {
			return errors.New("the nodes do not agree yet")
		}
		return nil
	})
}
