package work

import (
	"sync"
	"time"
)

// wholeEvery is how often a relay looks at the outbox from its first number on.
const wholeEvery = 5 * time.Second

// A place is the position up to which the events of the outbox have left. Reads begin after it.
// Without a place an index scan would begin at the first number. While a transaction, a backup
// for instance, keeps an old snapshot open, PostgreSQL keeps each event that was relayed since,
// and the scan would visit all of them, many times a second.
//
// The place only says where to read first. An event draws its number before it is committed, so
// an event can appear before the place. The next read of the whole outbox, after [wholeEvery] at
// the latest, finds that event and moves the place back. To make that rare, the place stays
// behind numbers that were drawn since the previous read of the whole outbox. Only a transaction
// that lasts longer than the time between these reads can commit such an event. The event then
// leaves up to [wholeEvery] later, perhaps after events that were committed after it.
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

// looked records a read of the whole outbox. oldest is the first waiting number (0 = no event
// waits); drawn is the last number that was drawn by then.
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
