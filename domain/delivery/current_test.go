package delivery

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// TestASlowBatchFollowsOptOuts: while a batch is being delivered, which takes a minute, users opt
// out or their addresses are suppressed. Users who have not been sent to by then are skipped for
// that reason.
func TestASlowBatchFollowsOptOuts(t *testing.T) {
	for _, reason := range []string{ReasonOptedOut, ReasonSuppressed} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(Email, 60, time.Hour), newProvider(Email, 1, time.Second))
			defer time.AfterFunc(8*time.Second+refusalsFor, func() {
				for id := user.ID(20); id <= 60; id++ {
					r.depot.refuseNow(id, reason)
				}
				r.depot.refuseNow(1, reason) // has got it
			}).Stop()
			r.finish()
			r.want(map[Outcome]int{Sent: 19, Skipped: 41})
			r.once()
			if e := r.depot.exceptions[31]; e.Reason != reason || e.Attempts != 0 {
				t.Errorf("%+v", e)
			}
			if r.gate.people != 19 || len(r.gate.bad) != 0 {
				t.Errorf("%d messages were admitted, failures %q", r.gate.people, r.gate.bad)
			}
		})
	}
}

// TestNothingIsSentOnAnOldOptOut: while opt-outs cannot be read the batch waits.
func TestNothingIsSentOnAnOldOptOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 1, time.Second))
		r.depot.refusalsErr = errAway
		r.must()
		r.want(map[Outcome]int{Sent: 1, InFlight: 9})
		r.depot.refusalsErr = nil
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
		r.once()
		if r.gate.people != 10 {
			t.Errorf("%d messages were admitted", r.gate.people)
		}
	})
}

// TestOptOutsWhileARefusedMessageIsLookedFor: one message makes the provider refuse each call
// that contains it. Other recipients opt out while that message is being found.
func TestOptOutsWhileARefusedMessageIsLookedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 64, time.Hour), newProvider(SMS, 64, time.Second))
		poisoned := poison{r.provider, 5}
		r.Senders[SMS] = poisoned
		defer time.AfterFunc(1500*time.Millisecond, func() {
			for id := user.ID(6); id <= 20; id++ {
				r.depot.refuseNow(id, ReasonOptedOut)
			}
		}).Stop()
		r.finish()
		r.want(map[Outcome]int{Sent: 48, Skipped: 15, Dead: 1})
		r.once()
		seen := map[user.ID]int{}
		for _, p := range r.depot.checkpoints {
			once := map[user.ID]bool{}
			for _, e := range p.Exceptions {
				if once[e.UserID] {
					t.Errorf("user %d is in one checkpoint twice", e.UserID)
				}
				once[e.UserID] = true
				seen[e.UserID]++
			}
		}
		if seen[6] == 0 || r.depot.exceptions[5].Outcome != Dead {
			t.Errorf("%+v, %+v", r.depot.exceptions[5], r.depot.exceptions[6])
		}
	})
}

// poison is a provider that refuses calls with a message to bad as a whole.
type poison struct {
	*provider
	bad user.ID
}

func (p poison) Send(ctx context.Context, ms []Message) []Result {
	for _, m := range ms {
		if m.To.ID == p.bad {
			<-time.After(p.takes)
			return Repeat(Result{Status: Permanent, Whole: true, Detail: "400"}, len(ms))
		}
	}
	return p.provider.Send(ctx, ms)
}

// TestARunEndsAfterHalfAMinute: a batch that takes ten minutes is given back and leased
// anew twice a minute, and no user is missed or sent to twice.
func TestARunEndsAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 600, time.Hour), newProvider(SMS, 1, time.Second))
		runs, longest := 0, time.Duration(0)
		for !r.depot.done {
			<-time.After(time.Until(r.depot.readyAt))
			start := time.Now()
			r.must()
			runs++
			longest = max(longest, time.Since(start))
		}
		r.want(map[Outcome]int{Sent: 600})
		r.once()
		if runs < 20 || runs > 21 || longest > runFor+time.Second {
			t.Errorf("%d runs, the longest took %v", runs, longest)
		}
		if n := len(r.bell.tasks); n != runs-1 {
			t.Errorf("%d tasks for %d runs", n, runs)
		}
	})
}

// TestARunThatWaitsForItsTurnEnds: more urgent work lets none of its messages pass.
func TestARunThatWaitsForItsTurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 1, time.Second))
		start := time.Now()
		r.gate.admit = func(int) time.Duration {
			if time.Since(start) < 70*time.Second {
				return 250 * time.Millisecond
			}
			return 0
		}
		r.must()
		if took := time.Since(start); took < runFor || took > runFor+time.Second || len(r.provider.calls) != 0 {
			t.Errorf("%d calls in a run of %v", len(r.provider.calls), took)
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
	})
}

// TestAHaltedProcessSendsNothingAfterItsLease: a worker is halted before its calls, as by
// SIGSTOP, for longer than its lease lasts. Another worker sends to all users. When the halted
// worker continues, it makes no further call, although nothing has told it that its lease is
// lost.
func TestAHaltedProcessSendsNothingAfterItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 40, time.Hour), newProvider(SMS, 1, 100*time.Millisecond))
		other := newFixture(t, r.depot, r.provider)
		r.Parallel[SMS] = 4
		process := &halt{others: 12, to: time.Now().Add(time.Minute)}
		r.Store, r.Admission = haltedStore{r.depot, process}, process
		ended := make(chan error, 1)
		go func() { ended <- r.run() }()
		<-time.After(time.Until(process.to) / 2)
		before := len(r.provider.calls)
		other.finish()
		after := len(r.provider.calls)
		if err := <-ended; err == nil || before == 0 || before == 40 {
			t.Errorf("%v after %d calls", err, before)
		}
		if n := len(r.provider.calls) - after; n != 0 || time.Now().Before(process.to) {
			t.Errorf("the process that was halted made %d further calls", n)
		}
		r.want(map[Outcome]int{Sent: 40})
	})
}

// halt halts one process until the instant to. The process halts before the message that follows
// others other messages, and before its next request about its lease.
type halt struct {
	mu     sync.Mutex
	others int
	to     time.Time
}

func (h *halt) pass() (halted bool) {
	h.mu.Lock()
	halted = h.others < 0 && time.Now().Before(h.to)
	h.mu.Unlock()
	if halted {
		<-time.After(time.Until(h.to))
	}
	return halted
}

// passLater lets the calls go on first.
func (h *halt) passLater() {
	if h.pass() {
		<-time.After(time.Millisecond)
	}
}

func (h *halt) Admit(context.Context, Load) (time.Duration, string) {
	h.mu.Lock()
	h.others--
	h.mu.Unlock()
	h.pass()
	return 0, ""
}
func (h *halt) Unused(context.Context, Load)          {}
func (h *halt) Report(context.Context, Channel, Call) {}

type haltedStore struct {
	*fakeStore
	process *halt
}

func (s haltedStore) LeaseNext(ctx context.Context, c Channel, lasting time.Duration) (Lease, error) {
	l, err := s.fakeStore.LeaseNext(ctx, c, lasting)
	return haltedLease{l, s.process}, err
}

type haltedLease struct {
	Lease
	process *halt
}

func (l haltedLease) Extend(ctx context.Context) (string, error) {
	l.process.passLater()
	return l.Lease.Extend(ctx)
}

func (l haltedLease) Checkpoint(ctx context.Context, p Progress) (string, error) {
	l.process.passLater()
	return l.Lease.Checkpoint(ctx, p)
}

// TestTheEndOfALease: a late answer to an older renewal does not shorten the lease that a newer
// renewal has given.
func TestTheEndOfALease(t *testing.T) {
	var l term
	l.renewed(time.Hour, 8*time.Second)
	l.renewed(time.Hour, 4*time.Second) // an older answer
	if left := l.left(time.Hour + 5*time.Second); left != 3*time.Second {
		t.Errorf("%v are left", left)
	}
	if left := l.left(time.Hour + 9*time.Second); left >= 0 {
		t.Errorf("%v are left of a lease that is over", left)
	}
}
