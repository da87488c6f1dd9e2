package redis

import (
	"testing"
	"time"

	"dropbell/musttest"
)

// TestSharedValues: one of several processes may make the value that all processes load, until
// that process has stored the value.
func TestSharedValues(t *testing.T) {
	client, err := Open(startRedis(t).URL)
	musttest.OK(t, err)
	t.Cleanup(func() { _ = client.Close() })
	a, b, other := NewShared(client, "a"), NewShared(client, "a"), NewShared(client, "b")
	turn := func(s *Shared, want bool) {
		t.Helper()
		if got, err := s.Turn(t.Context(), time.Minute); err != nil || got != want {
			t.Errorf("has the turn: %v, %v, want %v", got, err, want)
		}
	}
	if v, err := a.Load(t.Context()); v != nil || err != nil {
		t.Errorf("at first: %q, %v", v, err)
	}
	turn(a, true)
	turn(b, false)
	turn(other, true)
	musttest.OK(t, a.Store(t.Context(), []byte("x\x00"), time.Minute))
	if v, err := b.Load(t.Context()); string(v) != "x\x00" || err != nil {
		t.Errorf("stored: %q, %v", v, err)
	}
	turn(b, true)
	if ttl, err := client.TTL(t.Context(), "shared:a").Result(); err != nil || ttl <= 0 || ttl > time.Minute {
		t.Errorf("the value ends after %v, %v", ttl, err)
	}
}
