package redis

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/localstack"
	"dropbell/musttest"
)

// TestADeadPrimary kills one of three primaries. Writes to keys of the other two primaries never
// fail. Writes to keys of the dead primary succeed soon after its replica was elected, because
// the client reads the topology again; before that change it took a minute.
func TestADeadPrimary(t *testing.T) {
	masters, replicas, addresses := localstack.ReplicatedCluster(t, 3)
	client, err := Open(addresses)
	musttest.OK(t, err)
	t.Cleanup(func() { client.Close() })
	keys := keyOfEach(t, client.(*goredis.ClusterClient), masters)
	write := func(key string) error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		return client.Set(ctx, key, "x", 0).Err()
	}
	for _, key := range keys {
		musttest.OK(t, write(key))
	}
	stop := make(chan struct{})
	ended := make(chan error, 2)
	var written atomic.Int64
	for _, key := range keys[1:] {
		go func() {
			for {
				select {
				case <-stop:
					ended <- nil
					return
				default:
				}
				if err := write(key); err != nil {
					ended <- err
					return
				}
				written.Add(1)
			}
		}()
	}
	musttest.OK(t, masters[0].Kill())
	before := written.Load()
	replica := goredis.NewClient(&goredis.Options{Addr: fmt.Sprint("127.0.0.1:", replicas[0].Port())})
	t.Cleanup(func() { replica.Close() })
	await(t, "the replica is elected", time.Minute, func() bool {
		nodes, err := replica.ClusterNodes(context.Background()).Result()
		return err == nil && strings.Contains(nodes, "myself,master")
	})
	elected := time.Now()
	await(t, "keys of the dead primary are written again", 10*time.Second, func() bool { return write(keys[0]) == nil })
	t.Logf("%v after the election; %d writes to the others since the death", time.Since(elected), written.Load()-before)
	close(stop)
	for range keys[1:] {
		if err := <-ended; err != nil {
			t.Errorf("a key of a healthy primary: %v", err)
		}
	}
	if written.Load() == before {
		t.Error("nothing was written to the healthy primaries")
	}
}

// keyOfEach returns a key of each primary.
func keyOfEach(t *testing.T, client *goredis.ClusterClient, masters []*localstack.Redis) []string {
	t.Helper()
	keys := make([]string, len(masters))
	for i, m := range masters {
		for n := 0; keys[i] == ""; n++ {
			key := fmt.Sprint("key:", n)
			node, err := client.MasterForKey(t.Context(), key)
			musttest.OK(t, err)
			if strings.HasSuffix(node.Options().Addr, fmt.Sprint(":", m.Port())) {
				keys[i] = key
			}
		}
	}
	return keys
}

func await(t *testing.T, what string, limit time.Duration, done func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}
