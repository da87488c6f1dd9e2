package work

import (
	"sync"
	"time"
)

// wholeEvery is how often a relay looks at the outbox from its first number on.
const wholeEvery = 5 * time.Second

// A place is how far the events of the outbox have left. Looks begin behind it: while a
// transaction keeps an old snapshot open, a backup for instance, PostgreSQL keeps each
// event that was relayed since, and an index scan from the first number on visits them
// all, many times a second.
//
// The place only says where to look first. An event draws its number before it is
// committed, so one can appear before the place: the next look at the whole outbox, after
// [wholeEvery] at the latest, finds it and moves the place back. To make that rare the
// place stays behind numbers that were drawn since the look at the whole before: only a
// transaction that takes longer than that can commit such an event, which then leaves up
// to [wholeEvery] later, and perhaps after events that were committed later than it.
type place struct {
	now func() time.Time

	mu    sync.Mutex
	id    int64     // no event up to this number was waiting at the last look at the whole
	drawn int64     // the last number drawn at that look
	whole time.Time // when it began; zero = never
}

type placeStart struct {
	id    int64
	whole bool
	at    time.Time
}

// start returns where a look begins.
func (p *place) start() placeStart {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if since := now.Sub(p.whole); p.whole.IsZero() || since >= wholeEvery || since < 0 {
		return placeStart{whole: true, at: now}
	}
	return placeStart{id: p.id, at: now}
}

// behind returns the number behind which events wait.
func (p *place) behind() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// looked records a look at the whole outbox: oldest is the first number that waits, 0 =
// none does, and drawn the last number that was drawn by then.
func (p *place) looked(at time.Time, oldest, drawn int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Numbers can begin anew with a restored database.
	p.id = min(p.drawn, drawn)
	if oldest != 0 {
		p.id = min(p.id, oldest-1)
	}
	p.drawn, p.whole = drawn, at
}
