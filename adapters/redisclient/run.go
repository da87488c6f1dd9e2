package redisclient

import (
	"context"
	"errors"
	"fmt"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// Run returns the run id of the server that keeps the key, or always the same word where INFO is
// forbidden. A different id means that a server was restarted or a replica took over: the last
// writes may be lost.
func Run(ctx context.Context, client goredis.UniversalClient, key string) (string, error) {
	var node goredis.Cmdable = client
	if cluster, ok := client.(*goredis.ClusterClient); ok {
		master, err := cluster.MasterForKey(ctx, key)
		if err != nil {
			return "", fmt.Errorf("server of %s: %w", key, err)
		}
		node = master
	}
	info, err := node.Info(ctx, "server").Result()
	if _, answered := errors.AsType[goredis.Error](err); err != nil && !answered {
		return "", fmt.Errorf("server of %s: %w", key, err)
	}
	for line := range strings.Lines(info) {
		if id, found := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); found {
			return id, nil
		}
	}
	return "unknown", nil
}
