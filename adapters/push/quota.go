package push

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"dropbell/domain/pause"
)

// Admit takes up to n messages out of the quota that all workers share, and returns how many it
// took. If admitted is 0, wait is the delay before the next question.
type Admit func(ctx context.Context, n, perMinute int) (admitted int, wait time.Duration)

// A Quota keeps pushes below a service's limit per minute. It is safe for concurrent use.
type Quota struct {
	perMinute int
	admit     Admit
	own       *rate.Limiter
	// asking is a lock: one push at a time asks for further pushes.
	asking chan struct{}

	mu   sync.Mutex
	left int // admitted and not used yet
	// dry is until when the quota has no further pushes. last is the turn of the push that was
	// put off last.
	dry, last time.Time
}

const (
	// patience is how long a push waits for its turn in the call that it is part of.
	patience = time.Second
	// instant is the longest wait of a push while pushes that were put off have turns to come.
	instant = time.Millisecond
	// longestTurn is how far ahead a turn may be.
	longestTurn = time.Minute
)

// NewQuota returns a quota of perMinute pushes per minute; perMinute is more than zero. admit
// shares the quota among all workers; nil = this process has the whole quota.
func NewQuota(perMinute int, admit Admit) *Quota {
	perSecond := float64(perMinute) / 60
	return &Quota{perMinute: perMinute, admit: admit, own: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))), asking: make(chan struct{}, 1)}
}

// Turn waits up to a second and returns zero when one push may go. Otherwise Turn puts the push
// off and returns the delay before its next attempt, at most a minute. Each push that is put off
// gets the turn after the last turn. While such turns are still to come, Turn hardly waits.
func (q *Quota) Turn(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !q.take() {
		select {
		case <-ctx.Done():
			return q.putOff()
		case q.asking <- struct{}{}:
		}
		filled := q.fill(ctx)
		<-q.asking
		if !filled {
			return q.putOff()
		}
	}
	return 0
}

// fill asks for further pushes and waits until there may be some. It returns false if the wait
// would be too long.
func (q *Quota) fill(ctx context.Context) bool {
	now := time.Now()
	q.mu.Lock()
	enough, dry, behind := q.left > 0, now.Before(q.dry), now.Before(q.last)
	q.mu.Unlock()
	if enough || dry {
		return enough
	}
	admitted, wait := q.further(ctx)
	end, ends := ctx.Deadline()
	if admitted == 0 && (behind && wait > instant || ends && now.Add(wait).After(end)) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.dry = now.Add(wait)
		return false
	}
	if admitted == 0 {
		pause.For(ctx, wait)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left += admitted
	return true
}

// further takes pushes out of the quota, or returns when there will be some.
func (q *Quota) further(ctx context.Context) (admitted int, pause time.Duration) {
	if q.admit != nil {
		return q.admit(ctx, q.portion(), q.perMinute)
	}
	mine := q.own.Reserve()
	if pause = mine.Delay(); pause > 0 {
		mine.Cancel()
		return 0, pause
	}
	return 1, 0
}

// putOff puts a push off and returns the delay until its turn, which comes after the last turn.
// The delay is rounded up to whole seconds, so that the pushes of a second are tried together.
func (q *Quota) putOff() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.last.Before(now) {
		q.last = now
	}
	q.last = q.last.Add(time.Minute / time.Duration(q.perMinute))
	if farthest := now.Add(longestTurn); q.last.After(farthest) {
		q.last = farthest
	}
	return (q.last.Sub(now) + time.Second - 1).Truncate(time.Second)
}

// portion is how many pushes a worker takes at once: a twentieth of the quota of a second. Small
// portions are shared evenly among workers, and little is lost when a worker ends.
func (q *Quota) portion() int { return max(1, q.perMinute/60/20) }

func (q *Quota) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left == 0 {
		return false
	}
	q.left--
	return true
}
