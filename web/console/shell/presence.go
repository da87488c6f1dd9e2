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
	// maxPresent bounds the memory; one console has far fewer users.
	maxPresent = 10_000
)

// accessCache caches the member of a sign-in for a short time, so that a page with several requests
// causes one query.
type accessCache struct {
	ask func(ctx context.Context, signInID string) (staff.Presence, error)
	now func() time.Time

	mu    sync.Mutex
	known map[string]seen
}

type seen struct {
	who staff.Presence
	at  time.Time
}

func newAccessCache(ask func(context.Context, string) (staff.Presence, error), now func() time.Time) *accessCache {
	return &accessCache{ask: ask, now: now, known: map[string]seen{}}
}

// of returns the member of the sign-in, or [staff.ErrUnauthenticated].
func (p *accessCache) of(ctx context.Context, id string) (staff.Presence, error) {
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

func (p *accessCache) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.known, id)
}

func (p *accessCache) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.known)
}
