package localstack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCluster returns an empty Redis Cluster of n masters without replicas, for this test only,
// and its address, which lists all nodes. A stopped or killed node comes back with its slots,
// unless the test empties it.
func RedisCluster(tb testing.TB, n int) (nodes []*Redis, addresses string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	nodes, addresses = clusterNodes(ctx, tb, n)
	if err := joinCluster(ctx, nodes); err != nil {
		tb.Fatalf("make a Redis Cluster: %v", err)
	}
	return nodes, addresses
}

// ReplicatedCluster is [RedisCluster] with a replica of each of the n masters. replicas[i] takes
// over from masters[i] a few seconds after masters[i] has died.
func ReplicatedCluster(tb testing.TB, n int) (masters, replicas []*Redis, addresses string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), helperTimeout)
	defer cancel()
	nodes, addresses := clusterNodes(ctx, tb, 2*n)
	masters, replicas = nodes[:n], nodes[n:]
	err := joinCluster(ctx, masters)
	if err == nil {
		err = addReplicas(ctx, masters, replicas)
	}
	if err != nil {
		tb.Fatalf("make a Redis Cluster with replicas: %v", err)
	}
	return masters, replicas, addresses
}

func clusterNodes(ctx context.Context, tb testing.TB, n int) (nodes []*Redis, addresses string) {
	tb.Helper()
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
	return nodes, "redis://" + strings.Join(list, ",")
}

// addReplicas adds a replica of each master to the cluster. It waits until all nodes agree and
// each replica has its master's data.
func addReplicas(ctx context.Context, masters, replicas []*Redis) error {
	_, port, _ := strings.Cut(masters[0].addr(), ":")
	for _, r := range replicas {
		client := redis.NewClient(&redis.Options{Addr: r.addr()})
		defer client.Close()
		if err := client.ClusterMeet(ctx, "127.0.0.1", port).Err(); err != nil {
			return err
		}
	}
	for _, node := range append(masters[:len(masters):len(masters)], replicas...) {
		if err := clusterReady(ctx, node, len(masters)+len(replicas)); err != nil {
			return err
		}
	}
	for i, r := range replicas {
		if err := replicate(ctx, masters[i], r); err != nil {
			return err
		}
	}
	return nil
}

func replicate(ctx context.Context, master, replica *Redis) error {
	of, client := redis.NewClient(&redis.Options{Addr: master.addr()}), redis.NewClient(&redis.Options{Addr: replica.addr()})
	defer of.Close()
	defer client.Close()
	id, err := of.Do(ctx, "cluster", "myid").Text()
	if err != nil {
		return err
	}
	if err := client.ClusterReplicate(ctx, id).Err(); err != nil {
		return err
	}
	return until(ctx, replica.Done(), func(ctx context.Context) error {
		info, err := client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(info, "master_link_status:up") {
			err = errors.New("the replica has not caught up yet")
		}
		return err
	})
}

// slots is how many hash slots a cluster has.
const slots = 16384

// joinCluster assigns each node its share of the slots, introduces the nodes to each other, and
// waits until all nodes agree.
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
