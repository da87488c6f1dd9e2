package stack

import (
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"dropbell/domain/task"
)

// RedisClient returns a client of the queue's server, for looking and tuning.
func (s *Stack) RedisClient() (*redis.Client, error) {
	o, err := redis.ParseURL(s.RedisURL)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// RedisMemory returns the bytes that Redis has allocated for its data, without the buffers of
// connections and of its log. Redis updates the size of these buffers only now and then, so the
// least value of two seconds is taken.
func RedisMemory(ctx context.Context, client *redis.Client) (int64, error) {
	least, looks := int64(math.MaxInt64), 0
	err := Until(ctx, 200*time.Millisecond, func() (bool, error) {
		now, err := redisMemory(ctx, client)
		least, looks = min(least, now), looks+1
		return looks == 10, err
	})
	return least, err
}

func redisMemory(ctx context.Context, client *redis.Client) (int64, error) {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return 0, err
	}
	sum, found := int64(0), 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		bytes, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "used_memory":
			sum, found = sum+bytes, found+1
		case "mem_clients_normal", "mem_aof_buffer":
			sum -= bytes
		}
	}
	if found != 1 {
		return 0, errors.New("redis does not tell its memory")
	}
	return sum, nil
}

// Timers returns how many timers of slots wait in the queue.
func Timers(ctx context.Context, client *redis.Client) (int64, error) {
	ids, err := client.ZRange(ctx, "asynq:{"+task.TimerQueue+"}:scheduled", 0, -1).Result()
	n := int64(0)
	for _, id := range ids {
		if strings.HasPrefix(id, task.FireSlot) {
			n++
		}
	}
	return n, err
}

// WaitTimers waits until n timers or more are there.
func WaitTimers(ctx context.Context, client *redis.Client, n int64) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return Until(ctx, 50*time.Millisecond, func() (bool, error) {
		have, err := Timers(ctx, client)
		return have >= n, err
	})
}
