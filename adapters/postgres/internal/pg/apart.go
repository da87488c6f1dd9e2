package pg

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A group that waits too long for a lock is divided by template. Templates whose rows another
// session has locked are isolated: their operations wait in lanes of their own, and one extra
// worker (workApart) serves these lanes, one template at a time. An isolated template shares
// no group with other templates. It blocks neither the ordinary workers nor more than one
// connection. A template stays isolated until its groups are stored again.
//
// After refusedAfter failed attempts, operations of an isolated template are refused with
// errLocked. Each further attempt is made with at most attemptGroup operations.

// errLocked is returned for operations on rows that another session keeps locked.
var errLocked = ErrUnavailable.Because("rows that this changes are locked by another session; nothing was stored, try again").Told("fault.rows_locked")

const (
	// sharedPart divides LockWait for a group of several templates. Such a group only finds
	// out which template is locked; the locked template then waits in its own lane.
	sharedPart = 3
	// refusedAfter is the number of failed attempts after which a template's operations are
	// refused.
	refusedAfter = 2
	// attemptGroup is the number of operations that wait, and are attempted, for a refused
	// template.
	attemptGroup = 16
	// apartFor is how long a template stays isolated after its last group that met a lock. The
	// lock may be on the rows of one user, and further requests of this user would meet the
	// lock again.
	apartFor = 3 * time.Second
	// maxApart bounds the number of isolated templates. With more locked templates the whole
	// database is locked, and groups fail without being divided.
	maxApart = 1000
)

// apartLane holds the operations of an isolated template.
type apartLane[Op, Res any] struct {
	lane[Op, Res]
	// attempts counts the groups of this template that met a lock since a group was last
	// stored.
	attempts int
	until    time.Time // apart until then, also if groups are stored
	tried    time.Time // when the last group was taken
}

func (a *apartLane[Op, Res]) refused() bool { return a.attempts >= refusedAfter }

// apartQueue is the part of a [fairQueue] that holds the lanes of isolated templates. The
// queue's mutex guards apartQueue.
type apartQueue[Op, Res any] struct {
	lanes   map[int64]*apartLane[Op, Res]
	size    int
	arrived sync.Cond // signalled for each operation
	closed  bool
}

// isolate moves the template to a lane of its own. ops were taken from the template's lane and
// go before the operations that still wait there. isolate returns false if maxApart templates
// are isolated already.
func (q *fairQueue[Op, Res]) isolate(key int64, ops []*pending[Op, Res]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.apart.lanes[key]
	if a == nil {
		if len(q.apart.lanes) >= maxApart {
			return false
		}
		a = &apartLane[Op, Res]{lane: lane[Op, Res]{key: key}}
		q.apart.lanes[key] = a
		q.anyApart.Store(true)
		if l := q.lanes[key]; l != nil {
			q.apart.size += l.n
			q.size.Add(-int64(l.n))
			a.first, a.last, a.n = l.first, l.last, l.n
			q.remove(slices.Index(q.turns, l))
		}
	}
	q.putBack(a, ops)
	return true
}

// putBack puts operations that were taken from the lane back at its front.
func (q *fairQueue[Op, Res]) putBack(a *apartLane[Op, Res], ops []*pending[Op, Res]) {
	for _, p := range slices.Backward(ops) {
		p.state.CompareAndSwap(taken, 0) // its caller may leave again
		p.next, a.first = a.first, p
		if a.last == nil {
			a.last = p
		}
	}
	a.n += len(ops)
	q.apart.size += len(ops)
	q.apart.arrived.Signal()
}

// pushApart adds p if its template is isolated.
func (q *fairQueue[Op, Res]) pushApart(key int64, p *pending[Op, Res]) (apart bool, err error) {
	a := q.apart.lanes[key]
	if a == nil {
		return false, nil
	}
	if a.refused() && a.n >= attemptGroup {
		return true, errLocked
	}
	if q.apart.size >= q.most {
		return true, ErrQueueFull
	}
	a.push(p)
	q.apart.size++
	q.apart.arrived.Signal()
	return true, nil
}

// deferApart adds p, which was taken from the queue before, if its template is isolated by
// now.
func (q *fairQueue[Op, Res]) deferApart(key int64, p *pending[Op, Res]) bool {
	if !q.anyApart.Load() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.apart.lanes[key]
	if a == nil {
		return false
	}
	a.push(p)
	q.apart.size++
	q.apart.arrived.Signal()
	return true
}

// takeApart waits for operations of isolated templates and returns the next operations of one
// template: the template with the fewest failed attempts, and among equals the template that
// has waited longest. takeApart returns no operations once the queue is closed and empty.
func (q *fairQueue[Op, Res]) takeApart(most int) (key int64, refused bool, ops []*pending[Op, Res]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next := q.nextApart()
	for ; next == nil && !q.apart.closed; next = q.nextApart() {
		q.apart.arrived.Wait()
	}
	if next == nil {
		return 0, false, nil
	}
	if next.refused() {
		most = attemptGroup
	}
	for ; next.n > 0 && len(ops) < most; q.apart.size-- {
		ops = append(ops, next.pop())
	}
	next.tried = time.Now()
	return next.key, next.refused(), ops
}

func (q *fairQueue[Op, Res]) nextApart() (next *apartLane[Op, Res]) {
	for _, a := range q.apart.lanes {
		if a.n > 0 && (next == nil || a.attempts < next.attempts || a.attempts == next.attempts && a.tried.Before(next.tried)) {
			next = a
		}
	}
	return next
}

// stillLocked records that a group of the isolated template met a lock. Before the template
// has failed refusedAfter times, stillLocked puts the operations back. From then on it returns
// them and all waiting operations of the template, to be refused. begins reports whether this
// failure is the first after which operations are refused.
func (q *fairQueue[Op, Res]) stillLocked(key int64, ops []*pending[Op, Res]) (refused []*pending[Op, Res], begins bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.apart.lanes[key]
	a.until = time.Now().Add(apartFor)
	a.attempts++
	if !a.refused() {
		q.putBack(a, ops)
		return nil, false
	}
	for ; a.n > 0; q.apart.size-- {
		ops = append(ops, a.pop())
	}
	return ops, a.attempts == refusedAfter
}

// stored records that a group of the isolated template was stored. It reports whether
// operations of the template were being refused.
func (q *fairQueue[Op, Res]) stored(key int64) (wasRefused bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.apart.lanes[key]
	wasRefused = a.refused()
	a.attempts = min(a.attempts, 1)
	if time.Now().Before(a.until) {
		return wasRefused
	}
	delete(q.apart.lanes, key)
	q.anyApart.Store(len(q.apart.lanes) > 0)
	if a.n == 0 {
		return wasRefused
	}
	l := q.open(key)
	l.first, l.last, l.n = a.first, a.last, a.n
	q.apart.size -= a.n
	q.size.Add(int64(a.n))
	q.arrived.Signal()
	return wasRefused
}

// closeApart makes takeApart return no operations once its lanes are empty.
func (q *fairQueue[Op, Res]) closeApart() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.apart.closed = true
	q.apart.arrived.Broadcast()
}

// divide handles a group that met a lock. Operations of locked templates are isolated, and the
// other operations are stored without them.
func (c *Committer[K, Op, Res]) divide(group []*pending[Op, Res]) {
	of := map[int64][]*pending[Op, Res]{}
	for _, p := range group {
		key := c.template(p.op)
		of[key] = append(of[key], p)
	}
	locked := c.lockedOf(of)
	others := slices.DeleteFunc(slices.Clone(group), func(p *pending[Op, Res]) bool {
		_, apart := slices.BinarySearch(locked, c.template(p.op))
		return apart
	})
	for _, key := range locked { // from here on their callers may be answered
		if !c.queue.isolate(key, of[key]) {
			c.refuse(of[key])
		}
	}
	if len(others) > 0 {
		c.commit(others)
	}
}

// lockedOf returns the templates whose rows are locked, in ascending order. If the locked
// templates cannot be determined, lockedOf returns half of all templates: this half is
// isolated, and the other half is attempted at once.
func (c *Committer[K, Op, Res]) lockedOf(of map[int64][]*pending[Op, Res]) []int64 {
	all := make([]int64, 0, len(of))
	for key := range of {
		all = append(all, key)
	}
	slices.Sort(all)
	if len(all) == 1 {
		return all
	}
	if c.cfg.Locked != nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.cfg.LockWait)
		defer cancel()
		if locked, err := c.cfg.Locked(ctx, all); err == nil && len(locked) > 0 {
			slices.Sort(locked)
			return locked
		}
	}
	return all[:(len(all)+1)/2]
}

// workApart serves the isolated templates.
func (c *Committer[K, Op, Res]) workApart() {
	for {
		key, refused, ops := c.queue.takeApart(c.cfg.MaxGroup)
		if ops == nil {
			return
		}
		wait := c.cfg.LockWait
		if refused {
			wait /= sharedPart
		}
		if !c.storeApart(key, c.withoutEqualKeys(ops), wait) {
			continue
		}
		if c.queue.stored(key) {
			c.cfg.Log.Info("rows are no longer locked; operations on them are stored again", "operation", c.cfg.Name, "of", key)
		}
	}
}

// storeApart stores the groups one after the other, up to the first that meets a lock.
func (c *Committer[K, Op, Res]) storeApart(key int64, groups [][]*pending[Op, Res], wait time.Duration) (stored bool) {
	for i, group := range groups {
		var locked []*pending[Op, Res]
		c.store(group, wait, func(part []*pending[Op, Res]) { locked = append(locked, part...) })
		if len(locked) > 0 {
			c.queue.isolate(key, slices.Concat(groups[i+1:]...))
			c.meet(key, locked)
			return false
		}
	}
	return true
}

// meet handles operations of one isolated template that met a lock.
func (c *Committer[K, Op, Res]) meet(key int64, ops []*pending[Op, Res]) {
	refused, begins := c.queue.stillLocked(key, ops)
	if begins {
		c.cfg.Log.Warn("rows are locked by another session; operations on them are refused until the lock ends, others are stored",
			"operation", c.cfg.Name, "of", key)
	}
	c.refuse(refused)
}

func (c *Committer[K, Op, Res]) refuse(ops []*pending[Op, Res]) {
	for _, p := range ops {
		p.answer <- answer[Res]{err: errLocked}
	}
}

// withoutEqualKeys divides the operations into groups to be stored one after the other. No
// group has two operations with the same key. Operations whose callers have left are dropped.
func (c *Committer[K, Op, Res]) withoutEqualKeys(ops []*pending[Op, Res]) (groups [][]*pending[Op, Res]) {
	var group []*pending[Op, Res]
	keys := map[K]bool{}
	for _, p := range ops {
		if !p.state.CompareAndSwap(0, taken) {
			p.reset()
			c.spent.Put(p)
			continue
		}
		if c.key != nil {
			k := c.key(p.op)
			if keys[k] {
				groups, group = append(groups, group), nil
				clear(keys)
			}
			keys[k] = true
		}
		group = append(group, p)
	}
	if len(group) > 0 {
		groups = append(groups, group)
	}
	return groups
}
