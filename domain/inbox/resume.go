package inbox

import (
	"context"
	"sync"
	"time"

	"dropbell/domain/user"
)

// A Span says that users from From to To may have got an in-app message at the instant At.
type Span struct {
	From, To user.ID
	At       time.Time
}

const (
	// maxSpans bounds the spans of one answer: some five million recipients.
	maxSpans = 5000
	// resumeWithin is the longest disconnection of a client for which the store is asked.
	resumeWithin = 10 * time.Minute
	// recentTimeout bounds one query.
	recentTimeout = 5 * time.Second
)

// resumes groups the queries of clients that reconnect. After a restart thousands reconnect
// within seconds, and most have missed nothing. Clients that ask at the same time share one
// query, which begins after the last of them has asked.
type resumes struct {
	mu      sync.Mutex
	next    *look
	looking sync.Mutex // held during a look
}

// look is one query to the store, for all clients that have joined it.
type look struct {
	since    time.Time
	done     chan struct{}
	spans    []Span
	complete bool
	err      error
}

// MayHaveMissed reports whether the user may have got a message at or after since. The caller
// must subscribe first: messages that arrive after the call are not in the answer.
func (s *Service) MayHaveMissed(ctx context.Context, by user.ID, now, since time.Time) (bool, error) {
	if now.Sub(since) > resumeWithin {
		return true, nil
	}
	l := s.resumes.join(since, s.Store.Recent)
	select {
	case <-l.done:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if l.err != nil || !l.complete {
		return true, l.err
	}
	for _, span := range l.spans {
		if span.From <= by && by <= span.To && !span.At.Before(since) {
			return true, nil
		}
	}
	return false, nil
}

type recentFunc func(ctx context.Context, since time.Time, limit int) ([]Span, bool, error)

// join returns the look that begins next.
func (r *resumes) join(since time.Time, recent recentFunc) *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &look{since: since, done: make(chan struct{})}
		go r.run(r.next, recent)
	}
	if since.Before(r.next.since) {
		r.next.since = since
	}
	return r.next
}

func (r *resumes) run(l *look, recent recentFunc) {
	defer close(l.done)
	r.looking.Lock()
	defer r.looking.Unlock()
	r.mu.Lock()
	r.next = nil // later calls join the next look
	since := l.since
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), recentTimeout)
	defer cancel()
	l.spans, l.complete, l.err = recent(ctx, since, maxSpans)
}
