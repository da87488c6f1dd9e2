package push_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/adapters/push"
)

// TestPushesAreTriedAgainAtTheirTurn: no push waits for more than a second in its call, and all
// pushes go at the pace of the quota.
func TestPushesAreTriedAgainAtTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 40
		q, start := push.NewQuota(120, nil), time.Now()
		var mu sync.Mutex
		var gone []time.Duration
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				for {
					begun := time.Now()
					wait := q.Turn(t.Context())
					if took := time.Since(begun); took > time.Second || wait < 0 || wait > time.Minute {
						t.Errorf("took %v, is to wait %v", took, wait)
					}
					if wait == 0 {
						break
					}
					<-time.After(wait)
				}
				mu.Lock()
				defer mu.Unlock()
				gone = append(gone, time.Since(start))
			})
		}
		all.Wait()
		for i, at := range gone {
			if pace := time.Duration(i-2) * time.Second / 2; at < pace {
				t.Errorf("push %d went after %v", i+1, at)
			}
		}
		if last := gone[n-1]; last > n*time.Second/2+5*time.Second {
			t.Errorf("the last one went after %v", last)
		}
	})
}

// TestAUsedUpQuotaIsAskedOnce: pushes that would wait for long are put off at once, each behind
// the push before it.
func TestAUsedUpQuotaIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, asked, went, start := 3, 0, 0, time.Now()
		q := push.NewQuota(600, func(_ context.Context, n, _ int) (int, time.Duration) {
			asked++
			if budget -= n; budget < 0 {
				return 0, 5 * time.Second
			}
			return n, 0
		})
		for i := range 1000 {
			switch wait := q.Turn(t.Context()); {
			case wait == 0:
				went++
			case wait != min(time.Duration((i-3)/10+1)*time.Second, time.Minute):
				t.Errorf("push %d is to wait %v", i+1, wait)
			}
		}
		if went != 3 || asked != 4 || time.Since(start) != 0 {
			t.Errorf("%d went after %v, asked %d times", went, time.Since(start), asked)
		}
	})
}
