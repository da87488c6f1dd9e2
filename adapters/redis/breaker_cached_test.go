package redis

import (
	"strconv"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// count reads a number of the SMS circuit as Redis has it.
func count(t *testing.T, s *CachedBreaker, field string) int {
	t.Helper()
	text, err := s.breaker.client.HGet(t.Context(), breakerKey(delivery.SMS), field).Result()
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(text)
	musttest.OK(t, err)
	return n
}

func TestCachedBreakerCountsEveryCall(t *testing.T) {
	b := NewCachedBreaker(NewBreaker(open(t, startRedis(t)), BreakerConfig{Failures: 50, MinCalls: 1000}), aloneFor(1))
	wait, state, err := b.Admit(t.Context(), delivery.SMS)
	if wait != 0 || state != StateClosed || err != nil {
		t.Fatalf("admitted after %v, %s, %v", wait, state, err)
	}
	for range 200 {
		musttest.OK(t, b.Report(t.Context(), delivery.SMS, true, ""))
	}
	musttest.OK(t, b.Report(t.Context(), delivery.SMS, false, "503 busy"))
	if calls, failed := count(t, b, "calls"), count(t, b, "failed"); calls != 201 || failed != 1 {
		t.Errorf("%d calls, %d failed; bad news must carry the good news along", calls, failed)
	}
}

func TestCachedBreakerSparesRedisWhileAllIsWell(t *testing.T) {
	b := NewCachedBreaker(NewBreaker(open(t, startRedis(t)), BreakerConfig{}), aloneFor(1))
	c := &b.circuits[delivery.SMS]
	now := time.Now()
	c.trust(now.Add(trustFor))
	if n := c.learn(true, now); n != 1 {
		t.Errorf("the first call reported %d", n)
	}
	for range 9 {
		if n := c.learn(true, now.Add(trustFor-time.Millisecond)); n != 0 {
			t.Errorf("%d calls were reported too early", n)
		}
	}
	c.trust(now.Add(3 * trustFor))
	if n := c.learn(true, now.Add(trustFor)); n != 10 {
		t.Errorf("%d calls were reported together, want 10", n)
	}
}

func TestCachedBreakerOpensAtOnceAndProbes(t *testing.T) {
	s := startRedis(t)
	config := BreakerConfig{OpenFor: 300 * time.Millisecond}
	b, other := NewCachedBreaker(NewBreaker(open(t, s), config), aloneFor(1)), newWorker(t, open(t, s), config)
	for range 5 {
		if wait, _, err := b.Admit(t.Context(), delivery.SMS); wait != 0 || err != nil {
			t.Fatalf("refused for %v, %v", wait, err)
		}
		musttest.OK(t, b.Report(t.Context(), delivery.SMS, false, "503 busy"))
	}
	if wait, state, _ := b.Admit(t.Context(), delivery.SMS); wait <= 0 || state != StateOpen {
		t.Errorf("after five failures: wait %v, %s", wait, state)
	}
	if wait, _ := other.admit(); wait <= 0 {
		t.Error("another worker was not told")
	}
	for deadline := time.Now().Add(5 * time.Second); ; {
		if wait, state, err := b.Admit(t.Context(), delivery.SMS); wait == 0 && state == StateHalfOpen {
			break
		} else if err != nil || time.Now().After(deadline) {
			t.Fatalf("no probe: %s, %v", state, err)
		}
	}
	musttest.OK(t, b.Report(t.Context(), delivery.SMS, true, ""))
	other.wantState(StateClosed)
}

func TestCachedBreakerNoticesWhatOthersOpened(t *testing.T) {
	s := startRedis(t)
	b, other := NewCachedBreaker(NewBreaker(open(t, s), BreakerConfig{}), aloneFor(1)), newWorker(t, open(t, s), BreakerConfig{})
	if wait, _, err := b.Admit(t.Context(), delivery.SMS); wait != 0 || err != nil {
		t.Fatalf("refused for %v, %v", wait, err)
	}
	for range 5 {
		other.report(false)
	}
	began := time.Now()
	for {
		wait, _, err := b.Admit(t.Context(), delivery.SMS)
		musttest.OK(t, err)
		if wait > 0 {
			break
		}
		if time.Since(began) > 10*trustFor {
			t.Fatal("still admitted")
		}
	}
}
