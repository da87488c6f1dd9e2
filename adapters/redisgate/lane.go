package redisgate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/claim/gate"
	"dropbell/domain/fault"
	"dropbell/domain/user"
	"dropbell/killpoint"
)

// lane groups the claims of one shard: while one call is in flight, the next group queues,
// without a timer. A lane makes one call at a time and has no goroutine while idle.
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
	// state is set once, by the caller that stops waiting or by the lane that takes the claim
	// into a group, whichever comes first.
	state atomic.Int32
}

// The states of a waiting claim after it was queued, which is 0.
const (
	taken int32 = iota + 1
	left
)

type laneAnswer struct {
	word string
	err  error
}

// do returns the script's word about the claim. If ctx ends while the claim is queued, the claim
// is never decided. If ctx ends later, the claim may be accepted, and the error is
// [fault.ErrOutcomeUnknown].
func (l *lane) do(ctx context.Context, r claim.Request) (string, error) {
	w := l.gate.waiter(r)
	l.mu.Lock()
	if len(l.queue) >= maxQueue {
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
		if w.state.CompareAndSwap(0, left) { // the lane reuses it
			return "", overloaded("it takes too long")
		}
		return "", fmt.Errorf("%w (%w)", fault.ErrOutcomeUnknown, ctx.Err())
	}
}

func (g *Gate) waiter(r claim.Request) *waiting {
	w, ok := g.waited.Get().(*waiting)
	if !ok {
		w = &waiting{word: make(chan laneAnswer, 1)}
	}
	w.request, w.rounds = r, 0
	w.state.Store(0)
	return w
}

// run decides groups until the queue is empty.
func (l *lane) run() {
	for {
		group := l.next()
		if group == nil {
			return
		}
		l.decide(group)
	}
}

// next takes the next group out of the queue and skips claims whose callers have left; nil if
// there is no such group.
func (l *lane) next() []*waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	var group []*waiting
	for len(l.queue) > 0 && len(group) == 0 {
		n := min(len(l.queue), l.gate.options.MaxGroup)
		group = l.queue[:0:n]
		for _, w := range l.queue[:n] {
			// A claim that found nothing at first comes back as taken.
			if w.state.CompareAndSwap(0, taken) || w.state.Load() == taken {
				group = append(group, w)
			} else {
				l.gate.waited.Put(w)
			}
		}
		l.queue = l.queue[n:]
	}
	if len(group) == 0 {
		l.running, l.queue = false, nil
		return nil
	}
	return group
}

// back puts claims that found no stock at the head of the queue again, so that the earliest
// claim is served first.
func (l *lane) back(group []*waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(group, l.queue...)
}

func (l *lane) decide(group []*waiting) {
	started := time.Now()
	words, err := l.call(context.Background(), group)
	if l.gate.options.Observe != nil {
		l.gate.options.Observe(len(group), time.Since(started))
	}
	if err != nil {
		for _, w := range group {
			w.word <- laneAnswer{err: fmt.Errorf("%w (%w)", fault.ErrOutcomeUnknown, err)}
		}
		return
	}
	var dry, unknown []*waiting
	limited := map[*waiting]string{}
	for i, w := range group {
		switch words[i] {
		case wordDry:
			dry = append(dry, w)
		case wordDryLimit:
			limited[w] = wordLimit
		case wordDryHousehold:
			limited[w] = wordHousehold
		case wordAsk:
			unknown = append(unknown, w)
		default:
			w.word <- laneAnswer{word: words[i]}
		}
	}
	if len(unknown) > 0 {
		l.introduce(unknown)
	}
	if len(dry)+len(limited) > 0 {
		ctx, cancel := context.WithTimeout(context.Background(), restockTimeout)
		defer cancel()
		l.restock(ctx, dry, limited)
	}
}

// introduce loads the counts and idempotency records of these claims' users into the shard,
// which is being filled, and has the claims decided again. A user's idempotency records are
// loaded before the user's count, because a user with a count is known to the shard. The epoch
// is read before the database: claims of earlier epochs are then in the database, and claims of
// this epoch are on the shard, which keeps its own values.
func (l *lane) introduce(group []*waiting) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	err := l.tellOf(ctx, group)
	var again []*waiting
	for _, w := range group {
		w.rounds++
		switch {
		case err != nil:
			w.word <- laneAnswer{err: overloaded("its shards are being filled")}
		case w.rounds > lookRounds:
			w.word <- laneAnswer{err: overloaded("its shards are being built anew")}
		default:
			again = append(again, w)
		}
	}
	if len(again) > 0 {
		l.back(again)
	}
}

func (l *lane) tellOf(ctx context.Context, group []*waiting) error {
	shards := Shards{client: l.gate.client, scripts: l.gate.scripts}
	opened, err := shards.openEpochs(ctx, l.drop.id, l.shard)
	if err != nil || opened[0] == 0 {
		return err // of a shard that is closed the claims get to know
	}
	homes := make(map[user.ID]int64, len(group))
	var households []int64
	for _, w := range group {
		if homes[w.request.UserID] = w.request.Household; w.request.Household != 0 {
			households = append(households, w.request.Household)
		}
	}
	held, records, err := l.gate.info.Held(ctx, l.drop.id, slices.Collect(maps.Keys(homes)), households)
	if err != nil {
		return err
	}
	had, together := make(map[user.ID]int, len(held)), map[int64]int{}
	for _, c := range held {
		if c.UserID == 0 {
			together[c.Household] = c.HouseholdCount
		} else {
			had[c.UserID] = c.Count
		}
	}
	counts := make([]gate.UserCount, 0, len(homes))
	for by, home := range homes {
		counts = append(counts, gate.UserCount{UserID: by, Count: had[by], Household: home, HouseholdCount: together[home]})
	}
	for i := range records {
		records[i].Household = homes[records[i].UserID]
	}
	epochs := make([]int64, l.drop.shards)
	epochs[l.shard] = opened[0]
	if err := shards.LoadIdempotencyRecords(ctx, l.drop.id, epochs, records); err != nil && !errors.Is(err, gate.ErrStaleEpoch) {
		return err
	}
	if err := shards.LoadUserCounts(ctx, l.drop.id, epochs, counts); err != nil && !errors.Is(err, gate.ErrStaleEpoch) {
		return err
	}
	return nil
}

// restock looks for stock on other shards. Claims that found no stock (dry) are decided again if
// there may be stock. Limited claims get "sold out" if nothing is left, otherwise "limit
// reached", of the user or of the household.
func (l *lane) restock(ctx context.Context, dry []*waiting, limited map[*waiting]string) {
	found, err := l.gate.restock(ctx, l.drop, l.shard, len(dry))
	for w, reached := range limited {
		switch {
		case err != nil:
			w.word <- laneAnswer{err: err}
		case found == nothingLeft:
			w.word <- laneAnswer{word: wordSoldOut}
		default:
			w.word <- laneAnswer{word: reached}
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
			w.word <- laneAnswer{err: overloaded("the last coupons are on their way between its shards")}
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
	k := keysOf(l.drop.id, l.shard)
	args := make([]any, 0, 4*len(group)+1)
	doors := false
	for _, w := range group {
		r := w.request
		args = append(args, int64(r.ID), int64(r.UserID), string(r.Origin), r.Key)
		doors = doors || r.Door > 0 || r.Household != 0
	}
	if doors {
		terms, err := l.doorTerms(ctx, group)
		if err != nil {
			return nil, err
		}
		args = append(args, terms)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var reply []any
	err := killpoint.Around("gate.accept", func() (err error) {
		reply, err = l.gate.scripts.claim.Run(ctx, l.gate.client, []string{k.shard, k.users, k.keys, k.claims, k.stream, k.pace}, args...).Slice()
		return err
	})
	if err != nil {
		return nil, err
	}
	words := make([]string, len(group))
	state, _ := reply[0].(string)
	if state == wordMissing || state == wordSealed || state == wordMoved {
		for i := range words {
			words[i] = state
		}
		return words, nil
	}
	if state == wordFirst {
		l.gate.caller.call(callUnwritten, l.drop.id)
	}
	if len(reply) != len(group)+2 {
		return nil, fmt.Errorf("gate: %d words about %d claims", len(reply)-2, len(group))
	}
	for i := range words {
		words[i], _ = reply[i+2].(string)
	}
	return words, nil
}

// doorTerms returns the last argument of claim.lua: for each claim the time by which its user's door opens
// before the drop, the limit of that door, and the household.
func (l *lane) doorTerms(ctx context.Context, group []*waiting) (string, error) {
	t, err := l.gate.info.Template(ctx, l.drop.id)
	if err != nil {
		return "", err
	}
	terms := make([]byte, 0, 16*len(group))
	for _, w := range group {
		lead, limit := int64(0), 0
		if door := w.request.Door; door > 0 {
			lead, limit = t.OpensAt.Sub(t.OpensFor(door)).Milliseconds(), t.LimitFor(door)
		}
		terms = fmt.Appendf(terms, "%d %d %d;", lead, limit, w.request.Household)
	}
	return string(terms), nil
}
