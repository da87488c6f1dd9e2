package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/user"
)

const (
	// refusalsFor is how old the opt-outs and suppressions that a call follows may be. A
	// batch whose calls begin within this time after its lease reads none besides the lease's.
	refusalsFor = 500 * time.Millisecond
	// runFor is after what time a run begins no further call and gives its batch back: the
	// next run reads contacts, the screen and whatever else it follows anew.
	runFor = 30 * time.Second
)

// Refusals are recipients who are no longer to be sent to: the reason by user.
type Refusals map[user.ID]string

// refusals are those of a run's recipients. Its calls share them.
type refusals struct {
	mu sync.Mutex
	// among are the recipients of the run, and at is as of when known was read, by the
	// database's clock.
	among []user.ID
	at    time.Time
	known Refusals
}

// currentRefusals returns the refusals among the recipients of the run, at most [refusalsFor] old.
// Calls that need newer ones wait for one reading.
func (r *run) currentRefusals(ctx context.Context) (Refusals, error) {
	s := &r.refusals
	s.mu.Lock()
	defer s.mu.Unlock()
	now := r.clock()
	if now.Sub(s.at) <= refusalsFor {
		return s.known, nil
	}
	known, err := r.Store.Refusals(ctx, r.batch.Channel, slices.Clone(s.among))
	if err != nil {
		return nil, err
	}
	s.at, s.known = now, known
	return known, nil
}

// keepBack removes the recipients of a chunk who have opted out, or whose address was
// suppressed, since the lease. It returns false if that cannot be read: no message goes out
// on an old answer, and the batch is given back for a moment.
func (r *run) keepBack(ctx context.Context, c *calls, chunk *chunkResult) bool {
	refused, err := r.currentRefusals(ctx)
	if err != nil {
		c.wait.Store(int64(time.Second))
		return false
	}
	chunk.messages = slices.DeleteFunc(chunk.messages, func(m Message) bool {
		reason := refused[m.To.ID]
		if reason != "" {
			chunk.verdicts = append(chunk.verdicts, Screening{UserID: m.To.ID, Reason: reason})
		}
		return reason != ""
	})
	return true
}

// A term is until when a lease is certain to last, by [Service.Uptime], which is asked right
// before each call: a process that was halted goes on in the middle of anything,
// and the batch may have a new holder by then.
type term struct {
	mu  sync.Mutex
	end time.Duration
}

// renewed notes that the lease lasts at least so long from asked on, an instant before its
// renewal was asked for.
func (t *term) renewed(asked, lasting time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = max(t.end, asked+lasting)
}

// left is how long the lease is certain to last.
func (t *term) left(now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.end - now
}

// uptime is [Service.Uptime].
func (s *Service) uptime() time.Duration {
	if s.Uptime == nil {
		return time.Duration(s.Now().UnixNano())
	}
	return s.Uptime()
}

// holds reports whether a call may begin: the lease lasts for at least another quarter of
// its length, within which the next renewal is due. If it does not, or may not, it is renewed
// first; without an answer the batch is given back.
func (r *run) holds(ctx context.Context, c *calls) bool {
	if r.term.left(r.uptime()) >= r.LeaseFor/4 {
		return true
	}
	// A reason to stop comes with the next checkpoint too.
	if _, err := r.extend(ctx); err != nil {
		c.wait.Store(int64(time.Second))
		return false
	}
	return true
}

// tired reports whether the run has gone on for [runFor].
func (r *run) tired() bool { return r.uptime()-r.begun >= runFor }

// lookEvery is how often a batch's stop reason is read while calls last or wait
// to be admitted, and no checkpoint returns it.
const lookEvery = time.Second

// extend keeps the lease, during a shutdown too: calls in flight are left to
// finish then, and a worker that took their batch over would repeat them.
func (r *run) extend(ctx context.Context) (stop string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.LeaseFor/3)
	defer cancel()
	asked := r.uptime()
	if stop, err = r.lease.Extend(ctx); err == nil {
		r.term.renewed(asked, r.LeaseFor)
	}
	return stop, err
}
