package redis

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"dropbell/adapters/redisclient"

	goredis "github.com/redis/go-redis/v9"
)

// releaseScript deletes the lock KEYS[1] if ARGV[1] holds it. It returns 1 if the lock was
// deleted.
const releaseScript = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0`

// A Lock admits one of several processes that want the same key. It refuses quickly, before the
// database refuses for good.
type Lock struct {
	client  goredis.UniversalClient
	release *goredis.Script
}

// NewLock returns a lock that uses client and does not close it.
func NewLock(client goredis.UniversalClient) *Lock {
	return &Lock{client, goredis.NewScript(releaseScript)}
}

// Take returns whether id holds the lock of key now. It returns
// [redisclient.ErrUnavailable] when Redis does not answer.
func (l *Lock) Take(ctx context.Context, key [32]byte, id int64, lasting time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	taken, err := l.client.SetNX(ctx, lockKey(key), id, lasting).Result()
	if err != nil || taken {
		return taken, wrapLock(err)
	}
	holder, err := l.client.Get(ctx, lockKey(key)).Result()
	if err == goredis.Nil { // released in between: the database decides
		return true, nil
	}
	return holder == strconv.FormatInt(id, 10), wrapLock(err)
}

// Release gives the lock back if id holds it.
func (l *Lock) Release(ctx context.Context, key [32]byte, id int64) error {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	return wrapLock(l.release.Run(ctx, l.client, []string{lockKey(key)}, id).Err())
}

func wrapLock(err error) error {
	if err == nil {
		return nil
	}
	return redisclient.Unavailable("lock", err)
}

func lockKey(key [32]byte) string {
	return "latch:" + base64.RawURLEncoding.EncodeToString(key[:])
}
