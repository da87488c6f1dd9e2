package asynq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"
)

// CheckRedis returns a warning if Redis, or one node of a cluster, is configured to evict keys:
// an evicted task is lost without trace, and its queue keeps an entry that never ends.
// CheckRedis returns [ErrUnavailable] when Redis does not answer.
func (q *Queue) CheckRedis(ctx context.Context) (warning string, err error) {
	var mu sync.Mutex
	check := func(ctx context.Context, node *goredis.Client) error {
		policy, err := evictionPolicy(ctx, node)
		if err == nil && policy != "noeviction" {
			mu.Lock()
			defer mu.Unlock()
			warning = fmt.Sprintf("Redis runs with maxmemory-policy %q and may drop tasks and events; set it to noeviction", policy)
		}
		return err
	}
	switch client := q.redis.(type) {
	case *goredis.ClusterClient:
		err = client.ForEachMaster(ctx, check)
	case *goredis.Client:
		err = check(ctx, client)
	}
	if err != nil {
		return "", fmt.Errorf("check redis: %w: %w", ErrUnavailable, err)
	}
	return warning, nil
}

// evictionPolicy reads INFO because hosted servers often forbid CONFIG.
func evictionPolicy(ctx context.Context, node *goredis.Client) (string, error) {
	info, err := node.Info(ctx, "memory").Result()
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(info) {
		if policy, found := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); found {
			return policy, nil
		}
	}
	return "", errors.New("no maxmemory_policy in INFO")
}
