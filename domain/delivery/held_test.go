package delivery

import (
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// Messages that the sender keeps back wait with a reason of their own, delay no other messages,
// and say nothing about the provider: a half-open circuit is closed by the first message that is
// handed over. A message that still waits at the deadline expires and is never sent.
func TestMessagesThatAreKeptBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(Email, 30, time.Minute), newProvider(Email, 10, 0))
		circuit := &halfOpenCircuit{}
		r.Admission = circuit
		start, closedBefore := time.Now(), false
		last := map[user.ID]time.Time{}
		r.provider.answer = func(id user.ID, tries int) Result {
			held := Result{Status: Throttled, Apart: true, Held: true, Unsent: true, After: 4 * time.Second, Reason: ReasonDomain}
			switch {
			case id <= 10 && tries == 1: // a call of which nothing is handed over
				closedBefore = closedBefore || circuit.closed
				return held
			case id > 28: // never in time
				held.Reason, held.After = ReasonWarmUp, time.Hour
				return held
			}
			last[id] = time.Now()
			return Result{Status: Delivered}
		}
		r.finish()
		if closedBefore {
			t.Error("a call that was not made closed the circuit")
		}
		if !circuit.closed {
			t.Error("the circuit stayed open")
		}
		r.want(map[Outcome]int{Sent: 28, Expired: 2})
		for id, at := range last {
			if waited := at.Sub(start); (id <= 10) != (waited >= 4*time.Second) || waited >= time.Minute {
				t.Errorf("user %d was sent to after %s", id, waited)
			}
		}
		for id := user.ID(29); id <= 30; id++ {
			if e := r.depot.exceptions[id]; e.Reason != ReasonWarmUp || e.Outcome != Expired || e.Attempts != 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

// A message is kept back for one of the recipient's devices. The answer of the push service of
// another device is reported to the circuit.
func TestAMessageThatIsKeptBackForOneDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(Email, 1, time.Minute), newProvider(Email, 10, 0))
		circuit, closed := &halfOpenCircuit{}, false
		r.Admission = circuit
		r.provider.answer = func(_ user.ID, tries int) Result {
			if tries == 1 {
				return Result{Status: Throttled, Apart: true, Held: true, Unsent: true, After: time.Second, Beside: &Result{Status: Permanent}}
			}
			closed = circuit.closed
			return Result{Status: Delivered}
		}
		r.finish()
		if !closed {
			t.Error("the answer about the other device did not close the circuit")
		}
		r.want(map[Outcome]int{Sent: 1})
	})
}
