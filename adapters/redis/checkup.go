package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"dropbell/domain/doctor"
)

// examined are the parameters of Redis that the doctor judges, and dir, where its files are.
var examined = []string{"maxmemory-policy", "appendonly", "appendfsync", "min-replicas-to-write", "dir"}

// Examine measures what the doctor examines of Redis: of each primary of a cluster. now is this
// machine's clock.
func Examine(ctx context.Context, client goredis.UniversalClient, now func() time.Time) (list []doctor.Redis, err error) {
	var mu sync.Mutex
	one := func(ctx context.Context, node *goredis.Client) error {
		r, err := examine(ctx, node, now)
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r)
		return err
	}
	switch c := client.(type) {
	case *goredis.ClusterClient:
		err = c.ForEachMaster(ctx, one)
	case *goredis.Client:
		err = one(ctx, c)
	default:
		err = fmt.Errorf("%T is no client that can be examined", client)
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

func examine(ctx context.Context, node *goredis.Client, now func() time.Time) (r doctor.Redis, err error) {
	r.Address = node.Options().Addr
	for i := range 5 { // the reading with the shortest round trip counts
		before := now()
		server, err := node.Time(ctx).Result()
		if err != nil {
			return r, err
		}
		within := now().Sub(before) / 2
		if i == 0 || within < r.Clock.Within {
			r.Clock = doctor.Clock{Ahead: server.Sub(before.Add(within)), Within: within}
		}
	}
	info, err := node.Info(ctx).Result()
	if err != nil {
		return r, err
	}
	facts := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	number := func(name string) int64 { n, _ := strconv.ParseInt(facts[name], 10, 64); return n }
	r.Version, r.Used, r.Limit, r.Machine, r.Replicas = facts["redis_version"], number("used_memory"), number("maxmemory"), number("total_system_memory"), int(number("connected_slaves"))
	r.WriteFailed = facts["aof_last_write_status"] == "err" || facts["rdb_last_bgsave_status"] == "err" || facts["aof_last_bgrewrite_status"] == "err"
	r.Config = map[string]string{}
	for _, name := range examined {
		found, err := node.ConfigGet(ctx, name).Result()
		if err == nil && len(found) > 0 {
			r.Config[name] = found[name]
		}
	}
	if policy, ok := facts["maxmemory_policy"]; ok { // hosted servers often forbid CONFIG
		r.Config["maxmemory-policy"] = policy
	}
	if on, ok := facts["aof_enabled"]; ok && r.Config["appendonly"] == "" {
		r.Config["appendonly"] = map[string]string{"0": "no", "1": "yes"}[on]
	}
	return r, nil
}
