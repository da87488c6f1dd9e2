package push

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Admit takes up to n messages out of the quota that all workers share, and returns
// how many it got; none with how long to wait before asking again.
type Admit func(ctx context.Context, n, perMinute int) (admitted int, wait time.Duration, err error)

// A Quota keeps pushes below what a service takes a minute: in a pace that all workers
// share, or, as long as that one does not answer, in one of its own. It is safe for
// concurrent use.
type Quota struct {
	perMinute int
	admit     Admit
	own       *rate.Limiter
	// asking is held by the one push that asks for further ones.
	asking chan struct{}

	mu   sync.Mutex
	left int // admitted and not used yet
}

// NewQuota returns a quota of so many pushes a minute, more than zero. admit shares it
// among all workers; nil = this process has it alone.
func NewQuota(perMinute int, admit Admit) *Quota {
	perSecond := float64(perMinute) / 60
	return &Quota{perMinute: perMinute, admit: admit, own: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))), asking: make(chan struct{}, 1)}
}

// Wait returns when one push may go, or the context's error.
func (q *Quota) Wait(ctx context.Context) error {
	if q.admit == nil {
		return q.own.Wait(ctx)
	}
	for {
		if q.take() {
			return ctx.Err()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case q.asking <- struct{}{}:
		}
		err := q.ask(ctx)
		<-q.asking
		if err != nil {
			return err
		}
	}
}

func (q *Quota) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.left == 0 {
		return false
	}
	q.left--
	return true
}

// ask gets a twentieth of a second's worth, so that workers share evenly and little
// is lost with a worker, and waits if there is none.
func (q *Quota) ask(ctx context.Context) error {
	q.mu.Lock()
	enough := q.left > 0 // the push before this one has asked
	q.mu.Unlock()
	if enough {
		return nil
	}
	admitted, pause, err := q.admit(ctx, max(1, q.perMinute/60/20), q.perMinute)
	if err != nil {
		if err := q.own.Wait(ctx); err != nil {
			return err
		}
		admitted = 1
	}
	if admitted == 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
			return nil
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left += admitted
	return nil
}
