package rehearsal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/user"
)

// A share has about 20,000 users at most, and so few that a wave ends before the next one.
func TestShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reserved int64
		wave     time.Duration
		want     int64
	}{{0, 0, 1000}, {20_000, 0, 1000}, {40_000, 0, 500}, {1_000_000_000, 0, 1}, {100, 8 * time.Second, 1000}, {100, 64 * time.Second, 125}, {100, 100 * time.Hour, 1}, {200_000, 16 * time.Second, 100}} {
		if got := Share(c.reserved, c.wave); got != c.want {
			t.Errorf("%d users, a wave of %s: %d thousandths, want %d", c.reserved, c.wave, got, c.want)
		}
	}
}

func TestArrivals(t *testing.T) {
	t.Parallel()
	sum := func(list []int64) (n int64) {
		for _, v := range list {
			n += v
		}
		return n
	}
	if got := Arrivals(1000, nil, 1e9); len(got) != 10 || got[0] != 100 || sum(got) != 1000 {
		t.Errorf("flat: %v", got)
	}
	if got := Arrivals(1000, []int64{90, 10, 0}, 1e9); len(got) != 3 || got[0] != 900 || got[1] != 100 || got[2] != 0 {
		t.Errorf("by a curve: %v", got)
	}
	if got := Arrivals(1_000_000, []int64{1, 1}, 50); got[0] != 50 || got[1] != 50 {
		t.Errorf("at most 50 a second: %v", got)
	}
	if got := Arrivals(10, make([]int64, 5), 1e9); sum(got) != 10 {
		t.Errorf("by a curve without sales: %v", got)
	}
}

// Customers come at their instants although no claim is answered before all have come. Each is another made-up user.
func TestRushIsOpen(t *testing.T) {
	t.Parallel()
	const n = 50
	var came sync.WaitGroup
	came.Add(n)
	var mu sync.Mutex
	seen := map[user.ID]bool{}
	var answered atomic.Int64
	full, broken := fault.New(fault.Conflict, "sold_out", "there is none"), errors.New("broken")
	r := Rush{Seconds: []int64{n}, Now: time.Now, Answered: &answered, Claim: func(_ context.Context, by user.ID) error {
		mu.Lock()
		seen[by] = true
		nth := len(seen)
		mu.Unlock()
		came.Done()
		came.Wait()
		switch {
		case nth <= 10:
			return nil
		case nth == n:
			return broken
		}
		return full
	}}.Run(t.Context())
	if r.Issued != 10 || r.Failed != 1 || r.Refused != n-11 || len(r.Took) != n || answered.Load() != n || len(seen) != n {
		t.Errorf("%+v, %d users", r, len(seen))
	}
	for id := range seen {
		if id <= FirstUser {
			t.Errorf("user %d may be a real one", id)
		}
	}
	if r.Quantile(0.5) > r.Quantile(0.99) || (Result{}).Quantile(0.5) != 0 {
		t.Error("quantiles")
	}
}

func TestBottleneck(t *testing.T) {
	t.Parallel()
	for want, c := range map[Bottleneck]struct {
		r   Report
		cut time.Duration
	}{NoBottleneck: {Report{LateP99: 900, ClaimP99: 60}, time.Second}, OfClaims: {Report{ClaimP99: 1500, Expired: 1}, 0}, OfReminders: {Report{Expired: 4}, time.Minute}, OfProviders: {Report{Wave: 61_000}, 0}} {
		if c.r.Judge(c.cut); c.r.Bottleneck != want {
			t.Errorf("%+v is %s, want %s", c, c.r.Bottleneck, want)
		}
	}
	if (Report{Failed: 1}).Sound() != true || (Report{Oversold: 1}).Sound() || (Report{Off: 1}).Sound() {
		t.Error("sound")
	}
}
