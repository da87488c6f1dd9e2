package network

import (
	"slices"
	"sync"
	"time"
)

// A Wait is a round trip on one connection: the client has sent data and waits for an answer.
// Data that the client sends before the answer comes, such as the statements of a batch, belongs
// to the same Wait.
type Wait struct{ Begin, End time.Time }

// Record forgets the recorded waits and records those that begin from now on.
func (p *Proxy) Record() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record, p.waits = true, nil
}

// Recorded ends recording and returns the waits that have ended.
func (p *Proxy) Recorded() []Wait {
	p.mu.Lock()
	defer p.mu.Unlock()
	waits := p.waits
	p.record, p.waits = false, nil
	return waits
}

// InSequence returns how many of the waits follow each other: the length of the longest list in
// which each wait begins after the end of the wait before it. Waits at the same time on several
// connections count as one.
func InSequence(waits []Wait) (n int) {
	byEnd := slices.SortedFunc(slices.Values(waits), func(a, b Wait) int { return a.End.Compare(b.End) })
	var last time.Time
	for _, w := range byEnd {
		if !w.Begin.Before(last) {
			n, last = n+1, w.End
		}
	}
	return n
}

// waiting is the present wait of one connection.
type waiting struct {
	mu    sync.Mutex
	begin time.Time // zero = the client waits for nothing
}

// begins is called for data from the client.
func (w *waiting) begins(p *Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begin.IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.record {
		w.begin = time.Now()
	}
}

// ends is called before data goes on to the client.
func (w *waiting) ends(p *Proxy) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begin.IsZero() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.record {
		p.waits = append(p.waits, Wait{w.begin, time.Now()})
	}
	w.begin = time.Time{}
}
