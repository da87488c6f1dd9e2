package shell

import (
	"context"
	"sync"
	"time"

	"dropbell/domain/staff"
)

const (
	// PresenceLife is how long a revoked sign-in may still be believed.
	PresenceLife = 2 * time.Second
	// maxPresent bounds the memory; far fewer people use one console.
	maxPresent = 10_000
)

// presence remembers for a moment who is behind a sign-in, so that a page
// with several requests asks the database once.
type presence struct {
	ask func(ctx context.Context, signInID string) (staff.Presence, error)
	now func() time.Time

	mu    sync.Mutex
	known map[string]seen
}

type seen struct {
	who staff.Presence
	at  time.Time
}

func newPresence(ask func(context.Context, string) (staff.Presence, error), now func() time.Time) *presence {
	return &presence{ask: ask, now: now, known: map[string]seen{}}
}

// of returns who is behind the sign-in, or [staff.ErrUnauthenticated].
func (p *presence) of(ctx context.Context, id string) (staff.Presence, error) {
	now := p.now()
	p.mu.Lock()
	s, ok := p.known[id]
	p.mu.Unlock()
	if ok && now.Sub(s.at) < PresenceLife {
		return s.who, nil
	}
	who, err := p.ask(ctx, id)
	if err != nil {
		p.forget(id)
		return staff.Presence{}, err
	}
	who.PasswordHash = "" // nothing here needs it
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) >= maxPresent {
		clear(p.known)
	}
	p.known[id] = seen{who, now}
	return who, nil
}

func (p *presence) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, id)
}

func (p *presence) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}
