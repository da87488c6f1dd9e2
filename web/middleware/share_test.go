package middleware_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redis"
	"dropbell/musttest"
	"dropbell/web/middleware"
)

// TestProcessesShareALimit: the limiters of two processes give a key its limit once, send Redis
// nothing about rarely used keys, and continue without Redis.
func TestProcessesShareALimit(t *testing.T) {
	client, err := redis.Open(localstack.RedisServer(t).URL())
	musttest.OK(t, err)
	t.Cleanup(func() { client.Close() })
	counts := redis.NewCounts(client)
	const limit = 640 // of which ten are not shared, and one comes back in an hour
	at := time.Now()
	now := func() time.Time { return at } // nothing comes back in this process
	const name = "test"
	a, b := middleware.NewAttempts(limit, time.Hour), middleware.NewAttempts(limit, time.Hour)
	exchange := func(l *middleware.Limiter) {
		t.Helper()
		musttest.OK(t, l.Exchange(t.Context(), name, counts, now))
	}
	allow := func(l *middleware.Limiter, key middleware.LimitKey, n int) (allowed int) {
		for range n {
			if l.Allow(key, at).Allowed {
				allowed++
			}
		}
		return allowed
	}
	exchange(a)
	exchange(b)
	busy, quiet := middleware.LimitKey{Kind: 'k', Low: 1}, middleware.LimitKey{Kind: 'k', Low: 2}
	if n := allow(a, busy, 500) + allow(a, quiet, 5); n != 505 {
		t.Fatalf("%d allowed", n)
	}
	exchange(a)
	if n := allow(b, busy, 20); n != 20 {
		t.Fatalf("%d of 20 allowed before the exchange", n)
	}
	exchange(b)
	if left := allow(b, busy, limit); left != limit-500-20 {
		t.Errorf("%d were left to the second process", left)
	}
	if shared := middleware.Listed(a) + middleware.Listed(b); shared != 2 {
		t.Errorf("%d keys are shared, want the busy one in both", shared)
	}
	exchange(b)
	exchange(a)
	if n := allow(a, busy, limit); n != 0 {
		t.Errorf("%d more passed in the first process, which had %d left of its own", n, limit-500)
	}
	gone := errors.New("no Redis")
	allow(b, middleware.LimitKey{Kind: 'k', Low: 3}, 100)
	if err := b.Exchange(t.Context(), name, broken{gone}, now); !errors.Is(err, gone) {
		t.Errorf("without Redis: %v", err)
	}
	if n := allow(b, middleware.LimitKey{Kind: 'k', Low: 3}, limit); n != limit-100 {
		t.Errorf("without Redis %d of %d pass", n, limit-100)
	}
	if n := middleware.Listed(b); n != 2 {
		t.Errorf("%d keys wait for Redis to come back", n)
	}
}

// TestWithoutRedisProcessesDivideALimit: until Redis answers, each of four processes allows a
// quarter of a limit, shows this in the headers, and counts it.
func TestWithoutRedisProcessesDivideALimit(t *testing.T) {
	const limit, processes = 640, 4
	at := time.Now()
	now := func() time.Time { return at }
	l := middleware.NewAttempts(limit, time.Hour)
	busy, fresh := middleware.LimitKey{Kind: 'k', Low: 1}, middleware.LimitKey{Kind: 'k', Low: 2}
	counts := &dying{}
	counts.dead.Store(true)
	ctx, stop := context.WithCancel(t.Context())
	parts := &divided{processes, make(chan int), ctx.Done()}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		middleware.Share(ctx, map[string]*middleware.Limiter{"test": l}, counts, parts, now, slog.New(slog.DiscardHandler))
	}()
	defer func() { stop(); <-ended }()
	<-parts.told // after the first exchange, of nothing
	for range limit / 64 {
		l.Allow(busy, at)
	}
	for counts.asked.Load() == 0 {
		<-parts.told
	}
	<-parts.told
	passed := 0
	for l.Allow(fresh, at).Allowed {
		passed++
	}
	if d := l.Look(fresh, at); passed != limit/processes || d.Limit != limit/processes || d.Remaining != 0 || d.Allowed || d.RetryAfter != processes*time.Hour {
		t.Errorf("%d of %d passed in one of %d processes, then %+v", passed, limit, processes, d)
	}
	l.Return(fresh, at)
	if first, second := l.Allow(fresh, at).Allowed, l.Allow(fresh, at).Allowed; !first || second {
		t.Errorf("what was given back: %v, %v", first, second)
	}
	counts.dead.Store(false)
	counted := 0
	for other := fresh.Low + 1; ; other++ { // until the limit is shared again
		counted += <-parts.told
		passed = 0
		for key := (middleware.LimitKey{Kind: 'k', Low: other}); l.Allow(key, at).Allowed; passed++ {
		}
		if passed == limit {
			break
		}
	}
	if counted < limit/processes {
		t.Errorf("%d requests were counted", counted)
	}
}

// dying are counts that may not answer.
type dying struct {
	dead  atomic.Bool
	asked atomic.Int64
}

func (d *dying) Spend(_ context.Context, _ string, n, burst int, _ time.Duration) (int, error) {
	d.asked.Add(1)
	if d.dead.Load() {
		return 0, errors.New("no Redis")
	}
	return burst - n, nil
}

// divided are the processes of a test, which learns of each exchange.
type divided struct {
	processes int
	told      chan int
	over      <-chan struct{}
}

func (d *divided) All(context.Context) int { return d.processes }
func (d *divided) Alone(_ string, n int) {
	select {
	case d.told <- n:
	case <-d.over:
	}
}

type broken struct{ err error }

func (b broken) Spend(context.Context, string, int, int, time.Duration) (int, error) {
	return 0, b.err
}
