package asynq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"dropbell/adapters/redisclient"
	"dropbell/domain/task"
	"dropbell/domain/timer"
)

const (
	// armedKey is in the hash slot of the timers' queue, so that the key is lost together with
	// the timers. Its value is the run id of the server in which all timers were queued. A
	// server that was restarted, or a replica that took over, has another run id and may have
	// lost the last writes.
	armedKey = "dropbell:{" + task.TimerQueue + "}:armed"
	// armingFor is how long a process that stopped responding keeps other processes from adding
	// timers.
	armingFor = 10 * time.Second
	arming    = "arming "
)

// swapMark replaces the mark ARGV[1] ("" = no mark) by ARGV[2], for ARGV[3] milliseconds (0 =
// until it is replaced). It returns 1 if the mark was replaced, 0 if another mark is stored.
var swapMark = goredis.NewScript(`
if (redis.call('get', KEYS[1]) or '') ~= ARGV[1] then return 0 end
if ARGV[3] == '0' then redis.call('set', KEYS[1], ARGV[2]) else redis.call('set', KEYS[1], ARGV[2], 'px', ARGV[3]) end
return 1`)

// BeginArming is part of [timer.Queue].
func (q *Queue) BeginArming(ctx context.Context) (timer.Mark, error) {
	found, server, err := q.readMark(ctx)
	if err != nil || found == server || strings.HasPrefix(found, arming) {
		return "", err
	}
	mark := arming + server + " " + uuid.NewString()
	begun, err := q.swapMark(ctx, found, mark, armingFor)
	if err != nil || !begun {
		return "", err
	}
	return timer.Mark(mark), nil
}

// KeepArming is part of [timer.Queue].
func (q *Queue) KeepArming(ctx context.Context, m timer.Mark) (bool, error) {
	return q.swapMark(ctx, string(m), string(m), armingFor)
}

// EndArming is part of [timer.Queue].
func (q *Queue) EndArming(ctx context.Context, m timer.Mark) (bool, error) {
	server, _, _ := strings.Cut(strings.TrimPrefix(string(m), arming), " ")
	return q.swapMark(ctx, string(m), server, 0)
}

func (q *Queue) swapMark(ctx context.Context, before, after string, life time.Duration) (bool, error) {
	n, err := swapMark.Run(ctx, q.redis, []string{armedKey}, before, after, life.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("mark of the timers: %w: %w", ErrUnavailable, err)
	}
	return n == 1, nil
}

// readMark returns the mark and the id of the run of the server that keeps it.
func (q *Queue) readMark(ctx context.Context) (mark, server string, err error) {
	mark, err = q.redis.Get(ctx, armedKey).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return "", "", fmt.Errorf("mark of the timers: %w: %w", ErrUnavailable, err)
	}
	if server, err = redisclient.Run(ctx, q.redis, armedKey); err != nil {
		return "", "", fmt.Errorf("mark of the timers: %w: %w", ErrUnavailable, err)
	}
	return mark, server, nil
}
