package redis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"dropbell/domain/claim"
	"dropbell/killpoint"
)

// lane gathers the claims of one shelf: while one call is on its way the next
// group queues, and nobody waits for a timer. There is one call at a time and
// no goroutine while there is nothing to do.
type lane struct {
	gate  *Gate
	drop  *drop
	shard int

	mu      sync.Mutex
	queue   []*waiting
	running bool
}

type waiting struct {
	request claim.Request
	word    chan laneAnswer
	rounds  int
}

type laneAnswer struct {
	word string
	err  error
}

// do returns the word about the claim. If ctx ends first the claim may still
// be accepted.
func (l *lane) do(ctx context.Context, r claim.Request) (string, error) {
	w := l.gate.waiter(r)
	l.mu.Lock()
	if len(l.queue) >= maxGateQueue {
		l.mu.Unlock()
		return "", overloaded("too many wait")
	}
	l.queue = append(l.queue, w)
	if !l.running {
		l.running = true
		go l.run()
	}
	l.mu.Unlock()
	select {
	case a := <-w.word: // the last that is done with w
		l.gate.waited.Put(w)
		return a.word, a.err
	case <-ctx.Done():
		return "", overloaded("it takes too long")
	}
}

func (g *Gate) waiter(r claim.Request) *waiting {
	w, ok := g.waited.Get().(*waiting)
	if !ok {
		w = &waiting{word: make(chan laneAnswer, 1)}
	}
	w.request, w.rounds = r, 0
	return w
}

// run decides groups until nobody waits.
func (l *lane) run() {
	for {
		group := l.next()
		if group == nil {
			return
		}
		l.decide(group)
	}
}

func (l *lane) next() []*waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), l.gate.options.MaxGroup)
	if n == 0 {
		l.running, l.queue = false, nil
		return nil
	}
	group := l.queue[:n:n]
	l.queue = l.queue[n:]
	return group
}

// back puts those who found nothing at the head of the queue again: who came
// first is served first.
func (l *lane) back(group []*waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(group, l.queue...)
}

func (l *lane) decide(group []*waiting) {
	ctx, cancel := context.WithTimeout(context.Background(), gateTimeout)
	defer cancel()
	started := time.Now()
	words, err := l.call(ctx, group)
	if l.gate.options.Observe != nil {
		l.gate.options.Observe(len(group), time.Since(started))
	}
	if err != nil {
		for _, w := range group {
			w.word <- laneAnswer{err: overloaded("its shelves do not answer")}
		}
		return
	}
	var dry, limited []*waiting
	for i, w := range group {
		switch words[i] {
		case wordDry:
			dry = append(dry, w)
		case wordDryLimit:
			limited = append(limited, w)
		default:
			w.word <- laneAnswer{word: words[i]}
		}
	}
	if len(dry)+len(limited) > 0 {
		l.restock(ctx, dry, limited)
	}
}

// restock finds out whether anything is left elsewhere. Those who may have
// one are decided again; "sold out" goes before "limit reached".
func (l *lane) restock(ctx context.Context, dry, limited []*waiting) {
	found, err := l.gate.restock(ctx, l.drop, l.shard, len(dry))
	for _, w := range limited {
		switch {
		case err != nil:
			w.word <- laneAnswer{err: err}
		case found == nothingLeft:
			w.word <- laneAnswer{word: wordSoldOut}
		default:
			w.word <- laneAnswer{word: wordLimit}
		}
	}
	again := dry[:0]
	for _, w := range dry {
		w.rounds++
		switch {
		case err != nil:
			w.word <- laneAnswer{err: err}
		case found == nothingLeft:
			w.word <- laneAnswer{word: wordSoldOut}
		case w.rounds > lookRounds:
			w.word <- laneAnswer{err: overloaded("the last coupons are on their way between its shelves")}
		default:
			again = append(again, w)
		}
	}
	if len(again) > 0 {
		l.back(again)
	}
}

// call runs the script for the group and returns a word for each.
func (l *lane) call(ctx context.Context, group []*waiting) ([]string, error) {
	k := shelfOf(l.drop.id, l.shard)
	args := make([]any, 0, 4*len(group))
	for _, w := range group {
		r := w.request
		args = append(args, int64(r.ID), int64(r.UserID), string(r.Origin), r.Key)
	}
	var reply []any
	err := killpoint.Around("gate.accept", func() (err error) {
		reply, err = l.gate.scripts.claim.Run(ctx, l.gate.client, []string{k.shelf, k.users, k.keys, k.claims, k.stream, k.pace}, args...).Slice()
		return err
	})
	if err != nil {
		return nil, err
	}
	words := make([]string, len(group))
	state, _ := reply[0].(string)
	if state == wordMissing || state == wordSealed {
		for i := range words {
			words[i] = state
		}
		return words, nil
	}
	if len(reply) != len(group)+2 {
		return nil, fmt.Errorf("gate: %d words about %d claims", len(reply)-2, len(group))
	}
	for i := range words {
		words[i], _ = reply[i+2].(string)
	}
	return words, nil
}
