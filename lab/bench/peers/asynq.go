package peers

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"dropbell/lab/bench/stack"
)

const (
	// A server fetches one task per round trip, so several servers share the queue. More than
	// four servers only compete for the two processors.
	asynqServers     = 4
	asynqConcurrency = 32
	asynqEnqueuers   = 64
	// asynqSlowest is the enqueuing speed reckoned with, per second.
	asynqSlowest = 12_000
)

// runAsynq schedules a task per reminder and drains them.
func runAsynq(ctx context.Context, n int) (o outcome, err error) {
	s, err := stack.Start(ctx)
	if err != nil {
		return o, err
	}
	defer s.Close()
	client, err := s.RedisClient()
	if err != nil {
		return o, err
	}
	defer client.Close()
	if err := client.ConfigSet(ctx, "appendfsync", "everysec").Err(); err != nil {
		return o, err
	}
	opt, err := asynq.ParseRedisURI(s.RedisURL)
	if err != nil {
		return o, err
	}
	due := dueAfter(n, asynqSlowest)
	if o, err = scheduleTasks(ctx, client, opt, due, n); err != nil {
		return o, err
	}
	w := newWatch(n)
	stop, err := startServers(opt, w)
	if err != nil {
		return o, err
	}
	defer stop()
	o.First, o.All, err = w.wait(ctx, due)
	return o, err
}

// scheduleTasks enqueues the tasks ahead and measures the cost of enqueueing.
func scheduleTasks(ctx context.Context, client *redis.Client, opt asynq.RedisConnOpt, due time.Time, n int) (o outcome, err error) {
	before, err := stack.RedisMemory(ctx, client)
	if err != nil {
		return o, err
	}
	queue := asynq.NewClient(opt)
	defer queue.Close()
	o.Enqueued, err = inParallel(n, 100, asynqEnqueuers, func(from, to int) error {
		for i := from; i < to; i++ {
			user := strconv.Itoa(i + 1)
			task := asynq.NewTask("remind", []byte(`{"template_id":"1","user_id":"`+user+`","slot":1,"channel":"app"}`))
			if _, err := queue.EnqueueContext(ctx, task, asynq.TaskID("1:1:app:"+user), asynq.ProcessAt(due)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return o, err
	}
	if !time.Now().Before(due) {
		return o, errTooSlow
	}
	after, err := stack.RedisMemory(ctx, client)
	o.Bytes = float64(after-before) / float64(n)
	return o, err
}

// startServers starts the servers with the shortest intervals that help.
func startServers(opt asynq.RedisConnOpt, w *watch) (stop func(), err error) {
	var servers []*asynq.Server
	stop = func() {
		for _, s := range servers {
			s.Shutdown()
		}
	}
	for range asynqServers {
		s := asynq.NewServer(opt, asynq.Config{Concurrency: asynqConcurrency, TaskCheckInterval: 20 * time.Millisecond,
			DelayedTaskCheckInterval: 200 * time.Millisecond, LogLevel: asynq.ErrorLevel})
		if err := s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error { w.called(); return nil })); err != nil {
			stop()
			return nil, fmt.Errorf("start server: %w", err)
		}
		servers = append(servers, s)
	}
	return stop, nil
}
