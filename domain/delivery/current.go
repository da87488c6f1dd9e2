package delivery

import (
	"context"
	"slices"
	"sync"
	"time"

	"dropbell/domain/user"
)

const (
	// refusalsFor is the greatest age of the opt-outs and suppressions that a call uses. Calls
	// that begin within this time after the lease use the refusals that were read with the lease.
	refusalsFor = 500 * time.Millisecond
	// runFor is how long after its start a run begins further calls. Then it releases its batch,
	// and the next run reads contacts, the screen and the other inputs of a run anew.
	runFor = 30 * time.Second
)

// Refusals maps recipients who may no longer be sent to, to the reason.
type Refusals map[user.ID]string

// refusals caches the refusals of a run's recipients. All calls of the run share it.
type refusals struct {
	mu sync.Mutex
	// among are the recipients of the run. at is the instant, by the database's clock, as of
	// which known was read.
	among []user.ID
	at    time.Time
	known Refusals
}

// currentRefusals returns the refusals among the recipients of the run, at most [refusalsFor]
// old. Calls that need newer refusals share one query.
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

// keepBack removes the recipients of a chunk who have opted out, or whose address was suppressed,
// since the lease. It returns false if the refusals cannot be read: no message is sent on old
// refusals, and the batch is released for a second.
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

// A term is the instant until which a lease certainly lasts, by [Service.Uptime]. It is checked
// right before each call: a halted process may continue at any point of the code, and another
// worker may hold the batch by then.
type term struct {
	mu  sync.Mutex
	end time.Duration
}

// renewed records that the lease lasts at least for lasting after asked. asked is an instant
// before the renewal was requested.
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

// holds reports whether a call may begin: the lease must last for at least another quarter of its
// length, within which the next renewal is due. If the lease may end earlier, holds renews it
// first. If the renewal fails, the batch is released.
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

// lookEvery is how often a batch's stop reason is read while calls are in flight or wait for
// admission and no checkpoint returns the stop reason.
const lookEvery = time.Second

// extend renews the lease, during a shutdown too: calls in flight are left to finish then, and a
// worker that took their batch over would repeat them.
func (r *run) extend(ctx context.Context) (stop string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.LeaseFor/3)
	defer cancel()
	asked := r.uptime()
	if stop, err = r.lease.Extend(ctx); err == nil {
		r.term.renewed(asked, r.LeaseFor)
	}
	return stop, err
}
