package chaos_test

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
)

// A fault is one way in which a provider lets us down.
type fault string

const (
	none       fault = ""
	refuse     fault = "answers 500 (SMTP 451)"
	throttle   fault = "answers 429 (SMTP 451 4.7.1)"
	hang       fault = "hangs and takes nothing"
	dropBefore fault = "closes the connection and takes nothing"
	dropAfter  fault = "takes it and closes the connection"
	late       fault = "takes it and answers after the client gave up"
)

// A faultDeck returns a provider's faults in random order, until none is left.
type faultDeck struct {
	mu    sync.Mutex
	rng   *rand.Rand
	cards []fault
	gap   int // calls until the next card
	every int // a card at the latest after so many calls
	dealt map[fault]int
	open  atomic.Bool
	// down makes every call fail, as long as it is set.
	down atomic.Bool
}

func newDeck(rng *rand.Rand, every int, cards map[fault]int) *faultDeck {
	d := &faultDeck{rng: rng, every: every, dealt: map[fault]int{}}
	for _, f := range []fault{refuse, throttle, dropBefore, dropAfter, hang, late} { // a map has no order to repeat
		for range cards[f] {
			d.cards = append(d.cards, f)
		}
	}
	rng.Shuffle(len(d.cards), func(i, j int) { d.cards[i], d.cards[j] = d.cards[j], d.cards[i] })
	return d
}

// deal returns the fault of the next call.
func (d *faultDeck) deal() fault {
	if !d.open.Load() {
		return none
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gap > 0 || len(d.cards) == 0 {
		d.gap--
		return none
	}
	d.gap = d.rng.IntN(d.every)
	card := d.cards[0]
	d.cards = d.cards[1:]
	d.dealt[card]++
	return card
}

// left returns the faults that did not happen.
func (d *faultDeck) left() []fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cards
}

// between returns a random number in [from, to).
func (d *faultDeck) between(from, to int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return from + d.rng.Int64N(to-from)
}

// turnAway handles a call that the fault keeps from being taken; it returns false if the call is
// to be taken. fails answers with the provider's failure, pauses with the provider's request to
// wait.
func (f fault) turnAway(r *http.Request, over <-chan struct{}, fails, pauses func()) bool {
	switch f {
	case refuse:
		fails()
	case throttle:
		pauses()
	case hang:
		leave(r, over)
	case dropBefore:
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	return true
}

// pass passes on the answer to a call that was taken, unless the fault conceals the answer.
// settle is told whether the caller can know the answer.
func (f fault) pass(w http.ResponseWriter, r *http.Request, over <-chan struct{}, given *httptest.ResponseRecorder, settle func(answer)) {
	switch f {
	case dropAfter:
		settle(concealed)
		panic(http.ErrAbortHandler)
	case late:
		settle(concealed)
		leave(r, over)
		return
	}
	if r.Context().Err() == nil {
		settle(answered)
	}
	maps.Copy(w.Header(), given.Header())
	w.WriteHeader(given.Code)
	_, _ = w.Write(given.Body.Bytes())
}

// leave returns once the caller has given up.
func leave(r *http.Request, over <-chan struct{}) {
	select {
	case <-r.Context().Done():
	case <-over:
	}
}
