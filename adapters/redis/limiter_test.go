package redis

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/adapters/redisclient"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"

	goredis "github.com/redis/go-redis/v9"
)

// rounding is how far waits that Redis works out may be off.
const rounding = 5 * time.Millisecond

func open(t *testing.T, s *redisServer) goredis.UniversalClient {
	t.Helper()
	client, err := Open(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func TestCountsAreSharedByClients(t *testing.T) {
	s := startRedis(t)
	counts := []*Counts{NewCounts(open(t, s)), NewCounts(open(t, s))}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := counts[i%2].Spend(t.Context(), "u:1", 2, 100, time.Hour); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One comes back every 36 s, more than this test takes.
	for _, c := range []struct{ n, remaining int }{{0, 84}, {80, 4}, {10, 0}, {0, 0}} {
		if got, err := counts[0].Spend(t.Context(), "u:1", c.n, 100, time.Hour); err != nil || got != c.remaining {
			t.Errorf("after %d more %d remain, not %d: %v", c.n, got, c.remaining, err)
		}
	}
	if got, err := counts[1].Spend(t.Context(), "u:2", 1, 100, time.Hour); err != nil || got != 99 {
		t.Errorf("of another key %d remain: %v", got, err)
	}
}

func TestCountsHideTheTextOfKeys(t *testing.T) {
	client := open(t, startRedis(t))
	for _, key := range []string{"first@example.com", "second@example.com"} {
		if _, err := NewCounts(client).Spend(t.Context(), key, 1, 10, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	keys := client.Keys(t.Context(), "*").Val()
	if len(keys) != 2 {
		t.Fatalf("keys %q", keys)
	}
	for _, key := range keys {
		if strings.Contains(key, "example.com") {
			t.Errorf("key %q shows an address", key)
		}
	}
}

func TestPacerSharesARateAndTakesWholeChunks(t *testing.T) {
	s := startRedis(t)
	a, b := NewPacer(open(t, s), aloneFor(1)), NewPacer(open(t, s), aloneFor(1))
	admit := func(p *Pacer, n int) time.Duration {
		t.Helper()
		return p.Admit(t.Context(), delivery.SMS, n, 10)
	}
	began := time.Now()
	if wait := admit(a, 10); wait != 0 {
		t.Fatalf("first second's worth had to wait %v", wait)
	}
	wait := admit(b, 10)
	if passed := time.Since(began); wait < time.Second-passed-rounding || wait > time.Second {
		t.Fatalf("the other worker waits %v, want a second but for %v", wait, passed)
	}
	if wait := b.Admit(t.Context(), delivery.Email, 10, 10); wait != 0 {
		t.Fatalf("another channel waits %v", wait)
	}
	// A refusal takes nothing: after the named wait the chunk passes.
	eventually(t, "the refused chunk passes", func() bool { return admit(b, 10) == 0 })
}

func TestPacerAdmitsAChunkLargerThanTheRate(t *testing.T) {
	p, began := NewPacer(open(t, startRedis(t)), aloneFor(1)), time.Now()
	if wait := p.Admit(t.Context(), delivery.SMS, 100, 50); wait != 0 {
		t.Fatalf("wait %v", wait)
	}
	wait := p.Admit(t.Context(), delivery.SMS, 100, 50)
	if passed := time.Since(began); wait < 2*time.Second-passed-rounding || wait > 2*time.Second {
		t.Fatalf("second chunk waits %v, want 2s but for %v", wait, passed)
	}
}

func TestPacerTakesBackWhatIsNotUsed(t *testing.T) {
	p := NewPacer(open(t, startRedis(t)), aloneFor(1))
	admit := func(n int) time.Duration {
		t.Helper()
		return p.Admit(t.Context(), delivery.SMS, n, 10)
	}
	began := time.Now()
	if first, second := admit(4), admit(6); first != 0 || second != 0 {
		t.Fatalf("waits %v and %v", first, second)
	}
	if wait, passed := admit(6), time.Since(began); wait < 600*time.Millisecond-passed-rounding {
		t.Fatalf("beyond the rate: wait %v after %v", wait, passed)
	}
	p.Return(t.Context(), delivery.SMS, 6, 10)
	if wait := admit(6); wait != 0 {
		t.Errorf("what was given back waits %v", wait)
	}
	p.Return(t.Context(), delivery.SMS, 6, 0) // without a rate
}

func TestWithoutRedisEveryCallSaysUnavailable(t *testing.T) {
	s := startRedis(t)
	client := open(t, s)
	s.kill(t)
	ctx, started := t.Context(), time.Now()
	_, limitErr := NewCounts(client).Spend(ctx, "k", 1, 1, time.Second)
	_, _, breakErr := NewBreaker(client, BreakerConfig{}).Admit(ctx, delivery.SMS)
	if took := time.Since(started); took > 3*time.Second {
		t.Errorf("two calls took %v", took)
	}
	for name, err := range map[string]error{"limit": limitErr, "breaker": breakErr} {
		if !errors.Is(err, redisclient.ErrUnavailable) || fault.KindOf(err) != fault.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOpenRefusesWhatItCannotReadWithoutRepeatingIt(t *testing.T) {
	for _, address := range []string{"redis://:se%cret@host", "http://:secret@host", "redis://:secret@h:1,:::", ""} {
		client, err := Open(address)
		if err == nil {
			client.Close()
			t.Errorf("%q: no error", address)
		} else if strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: the error shows the password: %v", address, err)
		}
	}
}
