package asynq

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/task"
	"dropbell/musttest"

	goredis "github.com/redis/go-redis/v9"
)

// infoNumber returns a number of INFO: the value behind name in the section.
func infoNumber(t *testing.T, client *goredis.Client, section, name string) (n int) {
	t.Helper()
	_, rest, found := strings.Cut(client.Info(t.Context(), section).Val(), name)
	if !found {
		return 0
	}
	if _, err := fmt.Sscanf(rest, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestServersWithoutTasksAreBlockedInRedis: servers ask for a task only when there is a task,
// whichever process added it. Delayed tasks are found when they are due.
func TestServersWithoutTasksAreBlockedInRedis(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	client := s.client(t)
	defer client.Close()
	one := task.Run(1, "app", 0, time.Time{})
	var ran atomic.Int64
	servers := startFor(t, s, one, func(context.Context) error { ran.Add(1); return nil })
	idle := func() bool { return infoNumber(t, client, "clients", "blocked_clients:") == 2 }
	eventually(t, "both servers are blocked", idle)
	before := infoNumber(t, client, "commandstats", "cmdstat_rpoplpush:calls=")
	for i := range 20 {
		enqueue(t, q, task.Run(int64(i), "app", 0, time.Time{}))
		eventually(t, "the task runs", func() bool { return ran.Load() == int64(i+1) })
		eventually(t, "both servers are blocked again", idle)
	}
	// Per task, one attempt gets the task, and each server makes one or two attempts in vain.
	if calls := infoNumber(t, client, "commandstats", "cmdstat_rpoplpush:calls=") - before; calls > 20*8 {
		t.Errorf("%d attempts to take 20 tasks", calls)
	}
	enqueue(t, q, task.Run(100, "app", 0, time.Now().Add(time.Second)))
	eventually(t, "the delayed task runs", func() bool { return ran.Load() == 21 })
	eventually(t, "both servers are blocked after it", idle)
	moves := infoNumber(t, client, "commandstats", "cmdstat_zrangebyscore:calls=")
	if moves == 0 || moves > 12 {
		t.Errorf("delayed tasks were moved %d times", moves)
	}
	servers.Shutdown()
}

// TestAPausedQueueKeepsItsTasks although its servers wait for any.
func TestAPausedQueueKeepsItsTasks(t *testing.T) {
	s := startRedis(t)
	q := newQueue(t, s)
	one := task.Run(1, "app", 0, time.Time{})
	var ran atomic.Int64
	startFor(t, s, one, func(context.Context) error { ran.Add(1); return nil })
	client := s.client(t)
	defer client.Close()
	eventually(t, "the servers are blocked", func() bool { return infoNumber(t, client, "clients", "blocked_clients:") == 2 })
	musttest.OK(t, q.Register(t.Context()))
	musttest.OK(t, q.inspector.PauseQueue(one.Queue))
	enqueue(t, q, one)
	looks := infoNumber(t, client, "commandstats", "cmdstat_blmove:calls=")
	eventually(t, "the servers have looked some times", func() bool {
		return infoNumber(t, client, "commandstats", "cmdstat_blmove:calls=") > looks+6
	})
	if ran.Load() != 0 {
		t.Error("a task of a paused queue ran")
	}
	musttest.OK(t, q.inspector.UnpauseQueue(one.Queue))
	eventually(t, "the task runs", func() bool { return ran.Load() == 1 })
}
