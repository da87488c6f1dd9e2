package gate

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// gateState is a keeper's state of one gate that it looks after.
type gateState struct {
	busy sync.Mutex
	off  int     // looks in a row with a difference
	last []Shard // of the look before

	filling filling

	// Guarded by the keeper's lock.
	next   time.Time // when it is to be looked at again; zero = by the next sweep
	called bool      // while it was looked at
}

func (k *Keeper) gate(id int64) *gateState {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gates == nil {
		k.gates = map[int64]*gateState{}
	}
	g := k.gates[id]
	if g == nil {
		g = &gateState{}
		k.gates[id] = g
	}
	return g
}

func (k *Keeper) forget(id int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.gates, id)
}

// Sweep reconciles every gate of this process that is due and that this process is
// not reconciling right now. After a failure it continues with the next gate; it
// returns all errors. Building a large gate may take minutes; a concurrent sweep
// skips that gate.
func (k *Keeper) Sweep(ctx context.Context) error {
	const page = 200
	var errs []error
	for after := int64(0); ; {
		ids, err := k.Store.Unreconciled(ctx, after, page)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for _, id := range ids {
			after = id
			if !k.mine(id) {
				k.release(id)
				continue
			}
			if err := k.sweepOne(ctx, id); err != nil {
				errs = append(errs, err)
			}
		}
		if len(ids) < page || ctx.Err() != nil {
			return errors.Join(errs...)
		}
	}
}

func (k *Keeper) mine(id int64) bool { return k.Mine == nil || k.Mine(id) }

// sweepOne reconciles a gate that is due, unless this process does already.
func (k *Keeper) sweepOne(ctx context.Context, id int64) error {
	g := k.gate(id)
	if !k.due(g) || !g.busy.TryLock() {
		return nil
	}
	defer g.busy.Unlock()
	err := k.reconcile(ctx, id, g)
	if errors.Is(err, ErrStaleEpoch) || errors.Is(err, ErrOverAllotted) {
		return nil
	}
	return err
}

func (k *Keeper) due(g *gateState) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.Now().Before(g.next)
}

// Call makes the next sweep look at a gate, however long it was to rest.
func (k *Keeper) Call(templateID int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if g := k.gates[templateID]; g != nil {
		g.next, g.called = time.Time{}, true
	}
}

// CallAll is [Keeper.Call] for every gate.
func (k *Keeper) CallAll() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, g := range k.gates {
		g.next, g.called = time.Time{}, true
	}
}

// Kept returns the gates that this process looks after.
func (k *Keeper) Kept() []int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.gates))
}

// Rescue reconciles a gate at once if this process looks after it. It is called
// when a claim found a shard missing.
func (k *Keeper) Rescue(ctx context.Context, templateID int64) error {
	if !k.mine(templateID) {
		return nil
	}
	k.gate(templateID)
	k.Call(templateID)
	return k.sweepOne(ctx, templateID)
}

// release forgets a gate that another process looks after.
func (k *Keeper) release(id int64) {
	k.mu.Lock()
	_, known := k.gates[id]
	delete(k.gates, id)
	k.mu.Unlock()
	if known && k.Released != nil {
		k.Released(id)
	}
}

// rest leaves a gate alone for d, unless it was called about meanwhile.
func (k *Keeper) rest(g *gateState, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !g.called {
		g.next = k.Now().Add(d)
	}
}
