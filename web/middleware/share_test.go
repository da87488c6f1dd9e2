package middleware_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/redis"
	"dropbell/web/middleware"
)

// TestProcessesShareALimit: the limiters of two processes let a key pass its limit
// once, tell Redis nothing about keys that are seldom used, and go on alone without
// Redis.
func TestProcessesShareALimit(t *testing.T) {
	client, err := redis.Open(localstack.RedisServer(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	counts := redis.NewCounts(client)
	const limit = 640 // of which ten are not shared, and one comes back in an hour
	at := time.Now()
	now := func() time.Time { return at } // nothing comes back in this process
	const name = "test"
	a, b := middleware.NewAttempts(limit, time.Hour), middleware.NewAttempts(limit, time.Hour)
	exchange := func(l *middleware.Limiter) {
		t.Helper()
		if err := l.Exchange(t.Context(), name, counts, now); err != nil {
			t.Fatal(err)
		}
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

type broken struct{ err error }

func (b broken) Spend(context.Context, string, int, int, time.Duration) (int, error) {
	return 0, b.err
}
