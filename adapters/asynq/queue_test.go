package asynq

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/musttest"

	queue "github.com/hibiken/asynq"
)

func newQueue(t *testing.T, s *redisServer) *Queue {
	t.Helper()
	q, err := NewQueue(s.URL, slog.New(slog.DiscardHandler))
	musttest.OK(t, err)
	t.Cleanup(func() { q.Close() })
	return q
}

// timerAt returns a task for exactly the instant at; the product's own timers are queued a
// moment before their instant.
func timerAt(key int, at time.Time) task.Task {
	return task.Task{Name: task.FireSlot, Key: fmt.Sprint(key), Queue: task.TimerQueue,
		Payload: task.SlotPayload{SlotID: int64(key)}, At: at, Timeout: time.Minute}
}

func enqueue(t *testing.T, q *Queue, tasks ...task.Task) {
	t.Helper()
	musttest.OK(t, q.Enqueue(t.Context(), tasks...))
}

func depthOf(t *testing.T, q *Queue, name string) Depth {
	t.Helper()
	depths, err := q.Depth(t.Context())
	musttest.OK(t, err)
	i := slices.IndexFunc(depths, func(d Depth) bool { return d.Queue == name })
	if i < 0 {
		t.Fatalf("no queue %s in %+v", name, depths)
	}
	return depths[i]
}

func TestEnqueueingATaskTwiceQueuesItOnce(t *testing.T) {
	q := newQueue(t, startRedis(t))
	now, later := task.Run(1, "sms", 0, time.Time{}), timerAt(7, time.Now().Add(time.Hour))
	enqueue(t, q, now, now, later)
	enqueue(t, q, now, later)
	if d := depthOf(t, q, now.Queue); d.Pending != 1 || d.Scheduled != 0 {
		t.Errorf("channel queue %+v", d)
	}
	if d := depthOf(t, q, task.TimerQueue); d.Pending != 0 || d.Scheduled != 1 {
		t.Errorf("timers %+v", d)
	}
	info, err := q.inspector.GetTaskInfo(now.Queue, now.ID())
	musttest.OK(t, err)
	if info.MaxRetry != 5 || info.Timeout != 10*time.Minute || info.Retention != 0 || string(info.Payload) != `{"batch_id":"1","channel":"sms"}` {
		t.Errorf("stored %+v with payload %s", info, info.Payload)
	}
}

func TestTimersAreNeverEarly(t *testing.T) {
	q := newQueue(t, startRedis(t))
	base := time.Now().Add(time.Hour).Truncate(time.Second)
	for i, offset := range []time.Duration{0, 1, 500 * time.Millisecond, 999_999_999} {
		timer := timerAt(i, base.Add(offset))
		enqueue(t, q, timer)
		info, err := q.inspector.GetTaskInfo(timer.Queue, timer.ID())
		musttest.OK(t, err)
		want := base
		if offset > 0 {
			want = base.Add(time.Second)
		}
		if !info.NextProcessAt.Equal(want) {
			t.Errorf("+%v runs at %v, want %v", offset, info.NextProcessAt, want)
		}
	}
}

func TestOptionsAtTheEdges(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		timeout, want time.Duration
	}{{0, time.Minute}, {-1, time.Minute}, {1, time.Second}, {time.Second, time.Second}, {1500 * time.Millisecond, 2 * time.Second}} {
		if got := wholeSeconds(c.timeout); got != c.want {
			t.Errorf("timeout %v becomes %v, want %v", c.timeout, got, c.want)
		}
	}
	for _, at := range []time.Time{{}, now.Add(-time.Hour), now} {
		for _, o := range optionsOf(timerAt(1, at), now) {
			if o.Type() == queue.ProcessAtOpt {
				t.Errorf("a task due at %v is scheduled", at)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	q := newQueue(t, startRedis(t))
	timer, pending := timerAt(1, time.Now().Add(time.Hour)), task.Run(2, "sms", 0, time.Time{})
	never := task.Run(3, "email", 0, time.Time{})
	enqueue(t, q, timer, pending)
	musttest.OK(t, q.Remove(t.Context(), timer, pending, never))
	if d := depthOf(t, q, task.TimerQueue); d.Scheduled != 0 {
		t.Errorf("the timer is still there: %+v", d)
	}
	if d := depthOf(t, q, pending.Queue); d.Pending != 0 {
		t.Errorf("the pending task is still there: %+v", d)
	}
	if err := q.Remove(t.Context()); err != nil {
		t.Errorf("removing nothing: %v", err)
	}
}

func TestARemovedTaskCanBeQueuedAgain(t *testing.T) {
	q := newQueue(t, startRedis(t))
	first, moved := time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	enqueue(t, q, timerAt(1, first))
	musttest.OK(t, q.Remove(t.Context(), timerAt(1, first)))
	enqueue(t, q, timerAt(1, moved))
	info, err := q.inspector.GetTaskInfo(task.TimerQueue, timerAt(1, moved).ID())
	if err != nil || info.NextProcessAt.Before(moved) {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestAfterRedisWasEmptied(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	timer := timerAt(1, time.Now().Add(time.Hour))
	enqueue(t, q, timer)
	client := s.client(t)
	defer client.Close()
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	enqueue(t, q, timer)
	if _, err := q.inspector.GetQueueInfo(task.TimerQueue); err == nil {
		t.Fatal("the library announced the queue again by itself: Register is not needed any more")
	}
	musttest.OK(t, q.Register(t.Context()))
	names, err := q.inspector.Queues()
	slices.Sort(names)
	if want := slices.Sorted(slices.Values(QueueNames())); err != nil || !slices.Equal(names, want) {
		t.Errorf("known queues %q, want %q (%v)", names, want, err)
	}
	if d := depthOf(t, q, task.TimerQueue); d.Scheduled != 1 {
		t.Errorf("timers %+v", d)
	}
	// Forgetting the registry must not make Remove believe there is nothing.
	musttest.OK(t, client.Del(t.Context(), registryKey).Err())
	musttest.OK(t, q.Remove(t.Context(), timer))
	if d := depthOf(t, q, task.TimerQueue); d.Scheduled != 0 {
		t.Errorf("the timer survived its removal: %+v", d)
	}
}

func TestWithoutRedisTheQueueIsUnavailable(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	s.kill(t)
	one := task.Run(1, "sms", 0, time.Time{})
	_, depthErr := q.Depth(t.Context())
	_, checkErr := q.CheckRedis(t.Context())
	for name, err := range map[string]error{
		"enqueue": q.Enqueue(t.Context(), one), "remove": q.Remove(t.Context(), one),
		"register": q.Register(t.Context()), "depth": depthErr, "check": checkErr,
	} {
		if fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAThousandTasksAreEnqueuedSideBySide: the tasks are sent over many connections at a time,
// not one after the other.
func TestAThousandTasksAreEnqueuedSideBySide(t *testing.T) {
	s := startRedis(t)
	q, client := newQueue(t, s), s.client(t)
	defer client.Close()
	connections := func() (n int) {
		t.Helper()
		_, rest, _ := strings.Cut(client.Info(t.Context(), "stats").Val(), "total_connections_received:")
		if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	tasks := make([]task.Task, 1000)
	for i := range tasks {
		tasks[i] = task.Run(int64(i), "app", 0, time.Time{})
	}
	before := connections()
	enqueue(t, q, tasks...)
	opened := connections() - before
	if d := depthOf(t, q, tasks[0].Queue); d.Pending != 1000 {
		t.Errorf("pending %d", d.Pending)
	}
	if opened < parallelCalls/4 {
		t.Errorf("over %d connections: they go one after the other", opened)
	}
}

func TestCheckRedisWarnsOfEviction(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	if warning, err := q.CheckRedis(t.Context()); warning != "" || err != nil {
		t.Errorf("sound Redis: %q, %v", warning, err)
	}
	client := s.client(t)
	defer client.Close()
	musttest.OK(t, client.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	if warning, err := q.CheckRedis(t.Context()); err != nil || !strings.Contains(warning, "allkeys-lru") {
		t.Errorf("evicting Redis: %q, %v", warning, err)
	}
}

func TestPruneArchiveDeletesOnlyTheOld(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	client := s.client(t)
	defer client.Close()
	for i := range 450 {
		dead := task.Run(int64(i), "sms", 0, time.Time{})
		enqueue(t, q, dead)
		musttest.OK(t, q.inspector.ArchiveTask(dead.Queue, dead.ID()))
	}
	if n, err := q.PruneArchive(t.Context(), -time.Hour); err != nil || n != 450 {
		t.Fatalf("pruned %d, %v", n, err)
	}
	failing := task.Run(0, "sms", 0, time.Time{})
	servers := startFor(t, s, failing, func(context.Context) error { return errGone })
	for i := range 3 {
		enqueue(t, q, task.Run(int64(1000+i), "sms", 0, time.Time{}))
	}
	eventually(t, "three failed for good", func() bool { return depthOf(t, q, failing.Queue).Archived == 3 })
	servers.Shutdown()
	if n, err := q.PruneArchive(t.Context(), time.Hour); err != nil || n != 0 {
		t.Fatalf("pruned %d fresh ones, %v", n, err)
	}
	if keys := client.Keys(t.Context(), fmt.Sprintf("asynq:{%s}:t:*", task.ChannelQueue("sms"))).Val(); len(keys) != 3 {
		t.Errorf("%d task hashes left, want 3", len(keys))
	}
}
