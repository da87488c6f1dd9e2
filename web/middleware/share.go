package middleware

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Counts counts requests over all web processes, by the same rule as a
// [Limiter]: a token bucket with burst tokens that refills at burst per period.
type Counts interface {
	// Spend takes n tokens of the key, or as many as are left, and returns how many
	// remain.
	Spend(ctx context.Context, key string, n, burst int, period time.Duration) (remaining int, err error)
}

// Parts are the processes among which limits are divided while [Counts] does not answer.
type Parts interface {
	// All is how many processes there are, with this one.
	All(ctx context.Context) int
	// Alone is called with the number n of requests that only this process has counted.
	Alone(limit string, n int)
}

const (
	// ShareEvery is how often the processes exchange their counts of allowed requests.
	ShareEvery = 500 * time.Millisecond
	// shareFraction: a key is shared after it has used 1/shareFraction of its burst, so that the
	// many clients that come once or twice cost Redis nothing.
	shareFraction = 64
	// maxShared bounds how many keys of a limiter are shared at a time.
	maxShared = 4096
	// sharers is how many calls to the counts are made at a time.
	sharers = 8
)

// sharing holds the buckets that are to be shared.
type sharing struct {
	on   atomic.Bool
	mu   sync.Mutex
	busy []sharedBucket
}

type sharedBucket struct {
	key LimitKey
	*bucket
}

func (l *Limiter) shareFrom() int64 { return int64(max(1, l.burst/shareFraction)) }

// list adds a bucket that is busy enough to be shared.
func (s *sharing) list(key LimitKey, b *bucket) {
	if !s.on.Load() || b.listed.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.busy) < maxShared && b.listed.CompareAndSwap(false, true) {
		s.busy = append(s.busy, sharedBucket{key, b})
	}
}

// Share exchanges the counts of limits with the other web processes every [ShareEvery] until ctx
// ends, by the names of the limits. So a key has its limit once, and not once per process. No
// request waits for the exchange. A key may pass its limit by the requests that the processes allow
// between two exchanges, and by 1/64 of the limit per process. While counts does not answer, each
// process keeps to its part of each limit, which is logged once.
func Share(ctx context.Context, limits map[string]*Limiter, counts Counts, parts Parts, now func() time.Time, log *slog.Logger) {
	tick := time.NewTicker(ShareEvery)
	defer tick.Stop()
	alone := false
	for {
		var failure error
		for name, l := range limits {
			if !l.Unlimited() && failure == nil {
				failure = l.Exchange(ctx, name, counts, now)
			}
		}
		if ctx.Err() != nil {
			return
		}
		if (failure != nil) != alone {
			if alone = failure != nil; alone {
				log.Warn("rate limits are kept by each process alone, each its part, until Redis answers", "err", failure)
			} else {
				log.Info("rate limits are shared between the processes again")
			}
		}
		divided := 0
		if alone {
			divided = parts.All(ctx)
		}
		for _, l := range limits {
			l.parts.Store(int64(divided))
			parts.Alone("api", int(l.alone.Swap(0)))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Exchange sends the requests allowed since the last exchange to counts, and takes the requests
// allowed by other processes from the buckets of this process. It returns the first error of
// counts; requests that counts did not accept are sent by the next exchange. Requests before the
// first exchange count in this process alone.
func (l *Limiter) Exchange(ctx context.Context, name string, counts Counts, now func() time.Time) error {
	l.shared.on.Store(true)
	l.shared.mu.Lock()
	busy := l.shared.busy
	l.shared.busy = nil
	l.shared.mu.Unlock()
	var wait sync.WaitGroup
	var next atomic.Int64
	var first atomic.Pointer[error]
	kept := make([]bool, len(busy))
	for range min(sharers, len(busy)) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(busy)) && first.Load() == nil; i = next.Add(1) - 1 {
				idle, err := l.exchange(ctx, name, counts, busy[i], now)
				if err != nil {
					first.CompareAndSwap(nil, &err)
				}
				kept[i] = !idle || err != nil
			}
		})
	}
	wait.Wait()
	failure := first.Load()
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	for i, b := range busy {
		if failure != nil || kept[i] {
			l.shared.busy = append(l.shared.busy, b)
		} else {
			b.listed.Store(false)
		}
	}
	if failure != nil {
		return *failure
	}
	return nil
}

// exchange exchanges the counts of one key. idle reports that the key has nothing left to share.
func (l *Limiter) exchange(ctx context.Context, name string, counts Counts, b sharedBucket, now func() time.Time) (idle bool, err error) {
	used := max(0, b.used.Swap(0))
	period := time.Duration(float64(l.burst) / float64(l.rate) * float64(time.Second))
	remaining, err := counts.Spend(ctx, fmt.Sprintf("%s:%c:%x:%x", name, b.key.Kind, b.key.High, b.key.Low), int(used), l.burst, period)
	if err != nil {
		b.used.Add(used)
		return false, err
	}
	at := now()
	here := b.TokensAt(at) + float64(b.used.Load()) // had nothing been allowed since the swap
	if others := min(int(here)-remaining, l.burst); others > 0 {
		b.ReserveN(at, others)
	}
	current, known := l.buckets.GetIfPresent(b.key)
	return used == 0 && (remaining >= l.burst || !known || current != b.bucket), nil
}
