package pg

import (
	"sync"
	"sync/atomic"
)

// A fairQueue holds the operations that wait for a group. Each template has a
// lane. Lanes are served in turn, one operation at a time and in the order of
// arrival within a lane. So an operation of a quiet template waits for one
// operation of each busy template, not for all operations of the busy templates.
//
// When the queue holds as many operations as the field most says, a lane with its
// equal share or more accepts no further operation. Other lanes accept operations
// until the queue holds twice as many.
type fairQueue[Op, Res any] struct {
	most int

	mu      sync.Mutex
	arrived sync.Cond // signalled for each operation while waiting > 0
	waiting int
	closed  bool
	lanes   map[int64]*lane[Op, Res] // only lanes with operations
	turns   []*lane[Op, Res]         // the same, in the order in which they are served
	next    int                      // index in turns
	spare   []*lane[Op, Res]         // empty, to be used again
	size    atomic.Int64             // changed only under mu

	apart    apartQueue[Op, Res]
	anyApart atomic.Bool // changed only under mu
}

// A lane is the list of one template's operations, linked by [pending].next.
type lane[Op, Res any] struct {
	key         int64
	first, last *pending[Op, Res]
	n           int
}

func (l *lane[Op, Res]) push(p *pending[Op, Res]) {
	if l.last == nil {
		l.first = p
	} else {
		l.last.next = p
	}
	l.last = p
	l.n++
}

// pop removes the first operation; there is one.
func (l *lane[Op, Res]) pop() *pending[Op, Res] {
	p := l.first
	l.first, p.next = p.next, nil
	if l.n--; l.n == 0 {
		l.last = nil
	}
	return p
}

// maxSpareLanes bounds how many empty lanes are kept to be used again.
const maxSpareLanes = 64

func newFairQueue[Op, Res any](most int) *fairQueue[Op, Res] {
	q := &fairQueue[Op, Res]{most: most, lanes: map[int64]*lane[Op, Res]{}}
	q.apart.lanes = map[int64]*apartLane[Op, Res]{}
	q.arrived.L, q.apart.arrived.L = &q.mu, &q.mu
	return q
}

// len returns how many operations wait.
func (q *fairQueue[Op, Res]) len() int { return int(q.size.Load()) }

// push adds p to its lane. It returns [ErrQueueFull], or [ErrUnavailable] after close.
func (q *fairQueue[Op, Res]) push(key int64, p *pending[Op, Res]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrUnavailable
	}
	if apart, err := q.pushApart(key, p); apart {
		return err
	}
	l := q.lanes[key]
	if size := q.len(); size >= q.most && (size >= 2*q.most || l != nil && l.n*len(q.turns) >= size) {
		return ErrQueueFull
	}
	if l == nil {
		l = q.open(key)
	}
	l.push(p)
	q.size.Add(1)
	if q.waiting > 0 {
		q.arrived.Signal()
	}
	return nil
}

func (q *fairQueue[Op, Res]) open(key int64) *lane[Op, Res] {
	l := &lane[Op, Res]{}
	if n := len(q.spare); n > 0 {
		l, q.spare = q.spare[n-1], q.spare[:n-1]
	}
	l.key = key
	q.lanes[key] = l
	q.turns = append(q.turns, l)
	return l
}

// take appends operations to list, up to the number most. If wait is set, take
// blocks while the queue is empty. take returns false once the queue is closed
// and empty.
func (q *fairQueue[Op, Res]) take(list []*pending[Op, Res], most int, wait bool) ([]*pending[Op, Res], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for wait && q.len() == 0 && !q.closed {
		q.waiting++
		q.arrived.Wait()
		q.waiting--
	}
	for ; most > 0 && len(q.turns) > 0; most-- {
		list = append(list, q.pop())
	}
	return list, !q.closed || len(q.turns) > 0
}

// pop removes the operation whose turn it is; there is one.
func (q *fairQueue[Op, Res]) pop() *pending[Op, Res] {
	if q.next >= len(q.turns) {
		q.next = 0
	}
	l := q.turns[q.next]
	p := l.pop()
	q.size.Add(-1)
	if l.n > 0 {
		q.next++
		return p
	}
	q.remove(q.next)
	return p
}

// remove takes the lane out of the turns; it may be used again.
func (q *fairQueue[Op, Res]) remove(at int) {
	l := q.turns[at]
	delete(q.lanes, l.key)
	last := len(q.turns) - 1
	q.turns[at], q.turns[last] = q.turns[last], nil
	q.turns = q.turns[:last]
	if len(q.spare) < maxSpareLanes {
		*l = lane[Op, Res]{}
		q.spare = append(q.spare, l)
	}
}

// close makes push refuse; waiting operations can still be taken.
func (q *fairQueue[Op, Res]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.arrived.Broadcast()
}
