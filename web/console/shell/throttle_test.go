package shell

import (
	"testing"
	"time"
)

func TestThrottle(t *testing.T) {
	now := time.Unix(1000, 0)
	th := NewThrottle(2, 10*time.Second, func() time.Time { return now })
	allow := func(key string) time.Duration { wait, _ := th.Allow(t.Context(), key); return wait }
	burst := func(key string) (n int) {
		for allow(key) == 0 {
			n++
		}
		return n
	}
	if n := burst("a"); n != 2 {
		t.Fatalf("a burst of %d, want 2", n)
	}
	if wait := allow("a"); wait != 10*time.Second {
		t.Errorf("third attempt waits %v, want 10s", wait)
	}
	if wait := allow("b"); wait != 0 {
		t.Errorf("another key waits %v", wait)
	}
	now = now.Add(10 * time.Second)
	if wait := allow("a"); wait != 0 {
		t.Errorf("after waiting as told: %v more", wait)
	}
	if wait := allow("a"); wait != 10*time.Second {
		t.Errorf("the bucket filled up too fast: %v", wait)
	}
	now = now.Add(time.Hour)
	if n := burst("a"); n != 2 {
		t.Errorf("a rested key has a burst of %d, want 2", n)
	}
	if err := th.Return(t.Context(), "a"); err != nil || allow("a") != 0 || allow("a") != 10*time.Second {
		t.Errorf("one attempt that is given back is not exactly one: %v", err)
	}
}
