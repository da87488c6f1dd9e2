// Package door is about the doors of drops: which users come through which door, the freezing of their
// members before the rush, and what staff decide about them. What a door is, is in [template.Door].
package door

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A Set is a set of users. It is never changed.
type Set interface{ Contains(user.ID) bool }

// MemberStore reads the members of doors.
type MemberStore interface {
	// Judge returns the place of the first door whose group the user belongs to, 0 = none. A door that
	// is frozen is judged by its frozen members, or anew for users who were added later, or who entered
	// their access code later. It reads a few rows by their keys.
	Judge(ctx context.Context, templateID int64, by user.ID) (int, error)
	// Frozen returns the members of a frozen door.
	Frozen(ctx context.Context, templateID int64, place int) (Set, error)
}

const (
	// maxDrops is how many drops have their members in memory.
	maxDrops = 64
	// maxJudged is how many judged users of a drop are remembered.
	maxJudged = 50_000
	// judgedFor is how long it is remembered how a user was judged while a door is not frozen.
	judgedFor = 5 * time.Second
	// loadFor bounds the reading of the members of a door, loadAgain the time until the next attempt.
	loadFor   = 30 * time.Second
	loadAgain = time.Second
)

// Members know which door each user comes through. The members of frozen doors are kept in memory: about
// them nothing is read. It implements [claim.Members].
type Members struct {
	Store MemberStore
	Now   func() time.Time

	mu    sync.RWMutex
	drops map[int64]*drop
}

// drop is the memory of one drop.
type drop struct {
	frozen [template.MaxDoors]int64 // when, in microseconds; 0 = not yet
	sets   [template.MaxDoors]atomic.Pointer[loaded]
	mu     sync.RWMutex
	judged map[user.ID]uint8
	until  time.Time // judged is forgotten then; zero = never
	used   atomic.Int64
}

// loaded is the members of a door; set is nil while they are being read, or could not be read at that time.
type loaded struct {
	set Set
	at  time.Time
}

// Door implements [claim.Members]: it returns the place of the door through which the user comes, or
// [claim.ErrNotEligible] or [claim.ErrCodeNeeded].
func (m *Members) Door(ctx context.Context, t *template.Template, by user.ID) (int, error) {
	d := m.of(t)
	for i, door := range t.Doors {
		if door.Who == template.ToAll {
			// A user who was added later may belong to a door above. That matters until this one is open.
			if i == 0 || !m.Now().Before(t.OpensFor(i+1)) {
				return i + 1, nil
			}
			break
		}
		set := m.set(ctx, d, t.ID, i)
		if set == nil {
			return m.judge(ctx, d, t, by)
		}
		if set.Contains(by) {
			return i + 1, nil
		}
	}
	return m.judge(ctx, d, t, by) // the user may have been added later
}

// Known implements [claim.KnownMembers]: it returns the place of the user's door if the members in memory tell it, otherwise 0.
func (m *Members) Known(ctx context.Context, t *template.Template, by user.ID) int {
	d := m.of(t)
	for i, door := range t.Doors {
		if door.Who == template.ToAll {
			return i + 1
		}
		set := m.set(ctx, d, t.ID, i)
		if set == nil {
			return 0
		}
		if set.Contains(by) {
			return i + 1
		}
	}
	return 0
}

// of returns the memory of the drop, with what is valid for its present doors.
func (m *Members) of(t *template.Template) *drop {
	var frozen [template.MaxDoors]int64
	for i, door := range t.Doors {
		if door.FrozenAt != nil {
			frozen[i] = door.FrozenAt.UnixMicro()
		}
	}
	now := m.Now()
	m.mu.RLock()
	d := m.drops[t.ID]
	m.mu.RUnlock()
	if d == nil || d.frozen != frozen {
		d = m.renew(t, frozen)
	}
	d.used.Store(now.UnixNano())
	return d
}

func (m *Members) renew(t *template.Template, frozen [template.MaxDoors]int64) *drop {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.drops[t.ID]
	if before != nil && before.frozen == frozen {
		return before
	}
	d := &drop{frozen: frozen, judged: map[user.ID]uint8{}}
	for i := range t.Doors {
		if before != nil && frozen[i] != 0 && before.frozen[i] == frozen[i] {
			d.sets[i].Store(before.sets[i].Load())
		}
	}
	if m.drops == nil {
		m.drops = map[int64]*drop{}
	}
	for len(m.drops) >= maxDrops && m.drops[t.ID] == nil {
		m.evict()
	}
	m.drops[t.ID] = d
	return d
}

// evict forgets the drop that was asked for longest ago.
func (m *Members) evict() {
	oldest := int64(0)
	for id, d := range m.drops {
		if oldest == 0 || d.used.Load() < m.drops[oldest].used.Load() {
			oldest = id
		}
	}
	delete(m.drops, oldest)
}

// set returns the members of the door, or nil if they are not frozen or not read yet. The first caller starts
// reading them; until they are read, users are judged one by one.
func (m *Members) set(ctx context.Context, d *drop, templateID int64, i int) Set {
	if d.frozen[i] == 0 {
		return nil
	}
	known := d.sets[i].Load()
	if known != nil && (known.set != nil || m.Now().Before(known.at.Add(loadAgain))) {
		return known.set
	}
	reading := &loaded{at: m.Now().Add(loadFor)}
	if d.sets[i].CompareAndSwap(known, reading) {
		go m.load(ctx, d, templateID, i)
	}
	return nil
}

func (m *Members) load(ctx context.Context, d *drop, templateID int64, i int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	set, err := m.Store.Frozen(ctx, templateID, i+1)
	if err != nil {
		set = nil
	}
	d.sets[i].Store(&loaded{set, m.Now()})
}

// judge asks the store, and remembers the answer.
func (m *Members) judge(ctx context.Context, d *drop, t *template.Template, by user.ID) (int, error) {
	now := m.Now()
	d.mu.RLock()
	place, known := d.judged[by]
	known = known && (d.until.IsZero() || now.Before(d.until))
	d.mu.RUnlock()
	if !known {
		found, err := m.Store.Judge(ctx, t.ID, by)
		if err != nil {
			return 0, err
		}
		place = uint8(found)
		d.remember(t, by, place, now)
	}
	switch {
	case place == 0 && t.TakesAccessCodes():
		return 0, claim.ErrCodeNeeded
	case place == 0:
		return 0, claim.ErrNotEligible
	}
	return int(place), nil
}

// Forget makes the next answer about the user's door come from the store, since the user has an access code now.
func (m *Members) Forget(templateID int64, by user.ID) {
	m.mu.RLock()
	d := m.drops[templateID]
	m.mu.RUnlock()
	if d != nil {
		d.mu.Lock()
		delete(d.judged, by)
		d.mu.Unlock()
	}
}

func (d *drop) remember(t *template.Template, by user.ID, place uint8, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.judged) >= maxJudged || !d.until.IsZero() && !now.Before(d.until) {
		clear(d.judged)
		d.until = time.Time{}
	}
	// Another process may bind an access code at any time.
	if d.until.IsZero() && (!allFrozen(t) || t.TakesAccessCodes()) {
		d.until = now.Add(judgedFor)
	}
	d.judged[by] = place
}

func allFrozen(t *template.Template) bool {
	for _, door := range t.Doors {
		if door.Who != template.ToAll && door.FrozenAt == nil {
			return false
		}
	}
	return true
}

// A FreezeStore freezes the members of doors.
type FreezeStore interface {
	// FreezeNext freezes the next part of the members of a door that opens within [template.FreezeBefore]
	// and that no other process is freezing. more is false if there is no such door.
	FreezeNext(ctx context.Context) (more bool, err error)
	// CountNext estimates, for a drop with doors, which parts of the users with a reservation and with a
	// coupon come through each door, every five minutes. more is false if no drop is to be estimated.
	CountNext(ctx context.Context) (more bool, err error)
}

// Freezer freezes the members of doors before they open, and estimates how many users come through each.
type Freezer struct {
	Store FreezeStore
	Now   func() time.Time
}

// freezeFor is how long one sweep freezes; the next one goes on.
const freezeFor = 5 * time.Second

// Sweep freezes what is due, and then estimates. Any process may call it, any number of times at once: each part is stored in one
// transaction, and a part that was lost with its process is frozen again.
func (f Freezer) Sweep(ctx context.Context) error {
	end := f.Now().Add(freezeFor)
	for _, next := range []func(context.Context) (bool, error){f.Store.FreezeNext, f.Store.CountNext} {
		for more := true; more && f.Now().Before(end); {
			var err error
			if more, err = next(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
