package redisgate

import (
	"context"
	"strconv"
	"strings"
	"time"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// paceRing is how many seconds each shard remembers.
const paceRing = 64

// Pace returns the number of claims accepted in each of the last full seconds before now, the
// oldest second first, over all shards. Shards remember the last minute only.
func (s Shards) Pace(ctx context.Context, templateID int64, shards int, now time.Time, seconds int) ([]int64, error) {
	pipe := s.client.Pipeline()
	rings := make([]*goredis.MapStringStringCmd, shards)
	for i := range rings {
		rings[i] = pipe.HGetAll(ctx, keysOf(templateID, i).pace)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, redisclient.Unavailable("pace of shards", err)
	}
	list, first := make([]int64, min(seconds, paceRing-4)), now.Unix()-int64(min(seconds, paceRing-4))
	for _, ring := range rings {
		for _, entry := range ring.Val() {
			at, count, _ := strings.Cut(entry, " ")
			second, err1 := strconv.ParseInt(at, 10, 64)
			n, err2 := strconv.ParseInt(count, 10, 64)
			if i := second - first; err1 == nil && err2 == nil && i >= 0 && i < int64(len(list)) {
				list[i] += n
			}
		}
	}
	return list, nil
}
