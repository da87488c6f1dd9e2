package asynq

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/musttest"

	queue "github.com/hibiken/asynq"
)

var errGone = fault.New(fault.NotFound, "gone", "not there any more")

func start(t *testing.T, config ServersConfig, handlers map[string]Handler) *Servers {
	t.Helper()
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := NewServers(config)
	musttest.OK(t, err)
	for name, h := range handlers {
		s.Handle(name, h)
	}
	musttest.OK(t, s.Start())
	t.Cleanup(s.Shutdown)
	return s
}

// startFor serves the queue of the task one, and runs h for tasks with the name of one.
func startFor(t *testing.T, s *redisServer, one task.Task, h func(ctx context.Context) error) *Servers {
	t.Helper()
	return start(t, ServersConfig{RedisURL: s.URL, Queues: []QueueSpec{{Name: one.Queue, Concurrency: 2, Servers: 2}}},
		map[string]Handler{one.Name: func(ctx context.Context, _ []byte) error { return h(ctx) }})
}

func infoOf(t *testing.T, q *Queue, one task.Task) *queue.TaskInfo {
	t.Helper()
	info, err := q.inspector.GetTaskInfo(one.Queue, one.ID())
	if absent(err) {
		return nil
	}
	musttest.OK(t, err)
	return info
}

func TestSeveralServersRunEveryTaskOnce(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	var mu sync.Mutex
	ran := map[string]int{}
	h := func(_ context.Context, payload []byte) error {
		mu.Lock()
		defer mu.Unlock()
		ran[string(payload)]++
		return nil
	}
	tasks := make([]task.Task, 300)
	for i := range tasks {
		tasks[i] = task.Run(int64(i), []string{"app", "sms"}[i%2], 0, time.Time{})
	}
	enqueue(t, q, tasks...)
	var done atomic.Int64
	config := ServersConfig{RedisURL: s.URL, Queues: []QueueSpec{
		{Name: task.ChannelQueue("app"), Concurrency: 5, Servers: 3}, {Name: task.ChannelQueue("sms"), Concurrency: 1, Servers: 4},
	}, Done: func(name string, took time.Duration, err error) {
		if name == task.Deliver && took > 0 && err == nil {
			done.Add(1)
		}
	}}
	start(t, config, map[string]Handler{task.Deliver: h})
	start(t, config, map[string]Handler{task.Deliver: h})
	eventually(t, "all ran", func() bool { return done.Load() == 300 })
	for payload, n := range ran {
		if n != 1 {
			t.Errorf("%s ran %d times", payload, n)
		}
	}
}

func TestConcurrencyIsDividedExactly(t *testing.T) {
	s := startRedis(t)
	for _, spec := range []QueueSpec{{"q", 5, 3}, {"q", 1, 4}, {"q", 4, 0}} {
		var running, most, done atomic.Int64
		release := make(chan struct{})
		servers := start(t, ServersConfig{RedisURL: s.URL, Queues: []QueueSpec{spec}}, map[string]Handler{"x": func(context.Context, []byte) error {
			n := running.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			<-release
			running.Add(-1)
			done.Add(1)
			return nil
		}})
		q := newQueue(t, s)
		for i := range 12 {
			enqueue(t, q, task.Task{Name: "x", Key: string(rune('a' + i)), Queue: "q", Timeout: time.Minute})
		}
		eventually(t, "full", func() bool { return running.Load() == int64(spec.Concurrency) })
		close(release)
		eventually(t, "all ran", func() bool { return done.Load() == 12 })
		if most.Load() != int64(spec.Concurrency) {
			t.Errorf("%+v ran %d at a time", spec, most.Load())
		}
		servers.Shutdown()
	}
}

func TestWhatAHandlerReturnsDecides(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	for i, c := range []struct {
		name     string
		err      error
		state    queue.TaskState
		retried  int
		min, max time.Duration
	}{
		{"bug", errors.New("boom"), queue.TaskStateRetry, 1, 0, 3 * time.Second},
		{"unavailable", fault.New(fault.Unavailable, "x", "down"), queue.TaskStateRetry, 1, 0, 3 * time.Second},
		{"invalid", fault.New(fault.Invalid, "x", "never"), queue.TaskStateArchived, 0, 0, 0},
		{"not found", errGone, queue.TaskStateArchived, 0, 0, 0},
		{"conflict", fault.New(fault.Conflict, "x", "taken"), queue.TaskStateArchived, 0, 0, 0},
		{"later", &fault.RetryAfter{Err: errors.New("breaker"), After: 30 * time.Second}, queue.TaskStateRetry, 0, 30 * time.Second, 32 * time.Second},
		{"later beats its fault", &fault.RetryAfter{Err: errGone, After: 30 * time.Second}, queue.TaskStateRetry, 0, 30 * time.Second, 32 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := task.Run(int64(i), "sms", 0, time.Time{})
			started := time.Now()
			enqueue(t, q, one)
			servers := startFor(t, s, one, func(context.Context) error { return c.err })
			defer servers.Shutdown()
			var info *queue.TaskInfo
			eventually(t, "it ended in "+c.state.String(), func() bool {
				info = infoOf(t, q, one)
				return info != nil && info.State == c.state
			})
			servers.Shutdown()
			if info.Retried != c.retried || !strings.Contains(info.LastErr, c.err.Error()) {
				t.Errorf("retried %d with %q", info.Retried, info.LastErr)
			}
			if c.state != queue.TaskStateRetry {
				return
			}
			if pause := info.NextProcessAt.Sub(started); pause < c.min || pause > c.max+time.Since(started) {
				t.Errorf("retried after %v, want %v to %v", pause, c.min, c.max)
			}
		})
	}
}

func TestAPanicIsAnErrorAndTheServerLives(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	one := task.Run(1, "sms", 0, time.Time{})
	var calls atomic.Int64
	startFor(t, s, one, func(context.Context) error {
		if calls.Add(1) == 1 {
			panic("nil map")
		}
		return nil
	})
	enqueue(t, q, one)
	eventually(t, "the second attempt succeeds", func() bool { return calls.Load() == 2 && infoOf(t, q, one) == nil })
}

func TestRetriesEndInTheArchiveAndEnqueueRevives(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	one := task.Run(1, "sms", 0, time.Time{})
	var fails atomic.Bool
	var calls atomic.Int64
	fails.Store(true)
	startFor(t, s, one, func(context.Context) error {
		calls.Add(1)
		if fails.Load() {
			return errGone
		}
		return nil
	})
	enqueue(t, q, one)
	eventually(t, "archived", func() bool {
		info := infoOf(t, q, one)
		return info != nil && info.State == queue.TaskStateArchived
	})
	fails.Store(false)
	enqueue(t, q, one)
	eventually(t, "revived and done", func() bool { return calls.Load() == 2 && infoOf(t, q, one) == nil })
}

func TestRemovingARunningTaskIsNoError(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	one := task.Run(1, "sms", 0, time.Time{})
	running, release := make(chan struct{}), make(chan struct{})
	startFor(t, s, one, func(context.Context) error {
		close(running)
		<-release
		return nil
	})
	enqueue(t, q, one)
	<-running
	if err := q.Remove(t.Context(), one); err != nil {
		t.Error(err)
	}
	enqueue(t, q, one)
	if d := depthOf(t, q, one.Queue); d.Active != 1 || d.Pending != 0 {
		t.Errorf("%+v", d)
	}
	close(release)
}

func TestShutdownFinishesRunningTasksAndPutsSlowOnesBack(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	quick, slow := task.Run(1, "sms", 0, time.Time{}), task.Run(2, "email", 0, time.Time{})
	running, release := make(chan struct{}, 2), make(chan struct{})
	var finished, cancelled atomic.Bool
	servers := start(t, ServersConfig{RedisURL: s.URL, ShutdownTimeout: time.Second,
		Queues: []QueueSpec{{quick.Queue, 1, 1}, {slow.Queue, 1, 1}}},
		map[string]Handler{task.Deliver: func(ctx context.Context, payload []byte) error {
			running <- struct{}{}
			if strings.Contains(string(payload), "email") {
				<-ctx.Done()
				cancelled.Store(true)
				return ctx.Err()
			}
			<-release
			finished.Store(true)
			return nil
		}})
	enqueue(t, q, quick, slow)
	<-running
	<-running
	time.AfterFunc(200*time.Millisecond, func() { close(release) })
	servers.Shutdown()
	servers.Shutdown()
	if !finished.Load() || infoOf(t, q, quick) != nil {
		t.Error("the quick task was not finished")
	}
	if info := infoOf(t, q, slow); info == nil || info.State != queue.TaskStatePending || info.Retried != 0 {
		t.Errorf("the slow task is not back in its queue: %+v", info)
	}
	eventually(t, "the abandoned handler is told", cancelled.Load)
}

func TestNamesMatchExactly(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	known := task.Task{Name: "x.v1", Key: "1", Queue: "q", Timeout: time.Minute}
	unknown := task.Task{Name: "x.v10", Key: "1", Queue: "q", Timeout: time.Minute}
	var calls atomic.Int64
	startFor(t, s, known, func(context.Context) error { calls.Add(1); return nil })
	enqueue(t, q, unknown)
	eventually(t, "v10 waits for somebody who knows it", func() bool {
		info := infoOf(t, q, unknown)
		return info != nil && info.State == queue.TaskStateRetry
	})
	if calls.Load() != 0 {
		t.Error("v1 got a task of v10")
	}
}

func TestRetryDelayGrowsWithJitter(t *testing.T) {
	for n, base := range []time.Duration{1, 2, 4, 8, 16, 32, 32} {
		base *= time.Second
		for range 50 {
			if d := retryDelay(n, errors.New("x"), nil); d < base*3/4 || d > base*5/4+time.Second {
				t.Fatalf("attempt %d waits %v, want about %v", n, d, base)
			}
		}
	}
	if d := retryDelay(3, queue.ErrLeaseExpired, nil); d != 0 {
		t.Errorf("a task of a dead worker waits %v more", d)
	}
}

func TestBadServersConfig(t *testing.T) {
	for _, config := range []ServersConfig{
		{RedisURL: "redis://localhost", Queues: []QueueSpec{{"", 1, 1}}},
		{RedisURL: "redis://localhost", Queues: []QueueSpec{{"q", 0, 1}}},
		{RedisURL: "localhost:1"},
	} {
		if _, err := NewServers(config); err == nil {
			t.Errorf("%+v: no error", config)
		}
	}
}
