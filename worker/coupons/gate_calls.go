package coupons

import (
	"context"
	"sync"
)

// callQueue holds each template whose gate was called about, once. A template that is called
// about while it is processed is queued again.
type callQueue struct {
	mu    sync.Mutex
	ready []int64
	state map[int64]callState
	ping  chan struct{} // holds one while templates are ready
}

type callState int

const (
	callReady callState = iota + 1
	callWorkedOn
	callAgain
)

func newCallQueue() *callQueue {
	return &callQueue{state: map[int64]callState{}, ping: make(chan struct{}, 1)}
}

// add calls about the gate of a template.
func (q *callQueue) add(templateID int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch q.state[templateID] {
	case 0:
		q.push(templateID)
	case callWorkedOn:
		q.state[templateID] = callAgain
	}
}

func (q *callQueue) push(templateID int64) {
	q.state[templateID] = callReady
	q.ready = append(q.ready, templateID)
	q.wake()
}

func (q *callQueue) wake() {
	select {
	case q.ping <- struct{}{}:
	default:
	}
}

// next waits for a template and marks it as being processed until [callQueue.done]. ok is false
// if ctx ended first.
func (q *callQueue) next(ctx context.Context) (templateID int64, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return 0, false
		case <-q.ping:
		}
		if templateID, ok = q.take(); ok {
			return templateID, true
		}
	}
}

func (q *callQueue) take() (templateID int64, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		return 0, false
	}
	templateID, q.ready = q.ready[0], q.ready[1:]
	q.state[templateID] = callWorkedOn
	if len(q.ready) > 0 {
		q.wake()
	}
	return templateID, true
}

// done gives a template back; again says that there is more to do.
func (q *callQueue) done(templateID int64, again bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if again || q.state[templateID] == callAgain {
		q.push(templateID)
		return
	}
	delete(q.state, templateID)
}
