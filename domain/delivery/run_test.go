package delivery

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/task"
	"dropbell/domain/user"
)

func TestEverybodyIsSentOnceAndRecorded(t *testing.T) {
	for _, c := range []struct{ users, chunk, parallel int }{{1, 100, 1}, {100, 100, 4}, {1000, 100, 4}, {1000, 1, 8}, {7, 3, 2}} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, c.users, time.Hour), newProvider(SMS, c.chunk, 10*time.Millisecond))
			r.Parallel[SMS] = c.parallel
			observed := 0
			r.Observe = func(_ Channel, sent int, _ time.Duration) { observed += sent }
			r.must()
			r.want(map[Outcome]int{Sent: c.users})
			r.once()
			if !r.depot.done || observed != c.users || r.gate.people != c.users || len(r.bell.tasks) != 0 {
				t.Errorf("%+v: done %v, observed %d, admitted %d, queued %d", c, r.depot.done, observed, r.gate.people, len(r.bell.tasks))
			}
			if err := r.run(); !errors.Is(err, ErrNoWork) {
				t.Errorf("%+v: again %v", c, err)
			}
		})
	}
}

func TestParallelCallsAreBounded(t *testing.T) {
	for parallel, want := range map[int]int{0: 1, 1: 1, 3: 3, 50: 20} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 200, time.Hour), newProvider(SMS, 10, time.Second))
			r.Parallel[SMS] = parallel
			start := time.Now()
			r.must()
			r.once()
			took := time.Duration((20+want-1)/want) * time.Second
			if r.provider.most != want || time.Since(start) != took {
				t.Errorf("parallel %d: %d calls at once, took %v, want %d and %v", parallel, r.provider.most, time.Since(start), want, took)
			}
		})
	}
}

func TestAStopThatAppearsInMidRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 1, 100*time.Millisecond))
		stopped := time.AfterFunc(350*time.Millisecond, func() { r.depot.setStop(ReasonCancelled) })
		defer stopped.Stop()
		r.must()
		r.once()
		// Three calls before the stop, one that learns of the stop, and one that had begun.
		sent := r.depot.outcomes()[Sent]
		if sent < 4 || sent > 5 {
			t.Errorf("%d were sent", sent)
		}
		r.want(map[Outcome]int{Sent: sent, Skipped: 100 - sent})
		if !r.depot.done || r.depot.restReason != ReasonCancelled {
			t.Errorf("done %v, because %q", r.depot.done, r.depot.restReason)
		}
	})
}

func TestAStoppedBatchIsSkippedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.depot.stop = ReasonMoved
		r.depot.exceptions[3] = Exception{UserID: 3, Outcome: Failed, Reason: ReasonProvider, Attempts: 2, NextRetryAt: time.Now().Add(time.Minute)}
		r.depot.exceptions[4] = Exception{UserID: 4, Outcome: Dead, Reason: ReasonRefused, Attempts: 1}
		r.must()
		r.want(map[Outcome]int{Skipped: 9, Dead: 1})
		if e := r.depot.exceptions[3]; e.Reason != ReasonMoved || !e.NextRetryAt.IsZero() || e.Attempts != 2 {
			t.Errorf("one who waited for a retry: %+v", e)
		}
		if len(r.provider.calls) != 0 || !r.depot.done {
			t.Errorf("%d calls, done %v", len(r.provider.calls), r.depot.done)
		}
	})
}

// TestAStopIsNoticedWithoutACheckpoint: a run that waits for admission makes no checkpoint. It
// must still notice the stop, and send nothing after the wait.
func TestAStopIsNoticedWithoutACheckpoint(t *testing.T) {
	for stop, want := range map[string]map[Outcome]int{ReasonCancelled: {Sent: 5, Skipped: 5}, Held: {Sent: 5, InFlight: 5}} {
		t.Run(stop, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
				over := time.Now().Add(10*time.Second + time.Millisecond)
				r.gate.admit = func(call int) time.Duration {
					if call == 1 || time.Now().After(over.Add(lookEvery)) {
						return 0
					}
					return 250 * time.Millisecond
				}
				defer time.AfterFunc(time.Until(over), func() { r.depot.setStop(stop) }).Stop()
				r.must()
				r.want(want)
				if took := time.Since(over); took > lookEvery || len(r.provider.calls) != 1 {
					t.Errorf("noticed after %v, and %d calls", took, len(r.provider.calls))
				}
			})
		})
	}
}

// TestAStopSeenBeforeTheFirstCall: the record of opted-out users is a checkpoint too, and a stop
// reason that it returns is obeyed.
func TestAStopSeenBeforeTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.depot.optedOut[2] = true
		r.depot.refuse = func(int) error { r.depot.stop = ReasonCancelled; return nil }
		r.must()
		r.want(map[Outcome]int{Skipped: 10})
		if len(r.provider.calls) != 0 || r.depot.exceptions[2].Reason != ReasonOptedOut {
			t.Errorf("%d calls, %+v", len(r.provider.calls), r.depot.exceptions[2])
		}
	})
}

func TestAdmission(t *testing.T) {
	const long = patience + time.Millisecond
	for name, c := range map[string]struct {
		admit  func(call int) time.Duration
		took   time.Duration
		sent   int
		backIn time.Duration // 0 = done
	}{
		"at once":            {func(int) time.Duration { return 0 }, 3 * time.Second, 30, 0},
		"short wait":         {func(n int) time.Duration { return map[int]time.Duration{1: patience}[n] }, 3*time.Second + patience, 30, 0},
		"several short":      {func(n int) time.Duration { return time.Duration(n%2) * time.Second }, 6 * time.Second, 30, 0},
		"long wait at first": {func(int) time.Duration { return long }, 0, 0, long},
		"long wait later":    {func(n int) time.Duration { return time.Duration(n/3) * time.Minute }, 2 * time.Second, 20, time.Minute},
		"paused for hours":   {func(int) time.Duration { return 5 * time.Hour }, 0, 0, time.Hour},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 30, time.Hour), newProvider(SMS, 10, time.Second))
			r.gate.admit = c.admit
			start := time.Now()
			r.must()
			r.once()
			if took := time.Since(start); took != c.took || r.depot.outcomes()[Sent] != c.sent || r.depot.done != (c.backIn == 0) {
				t.Errorf("%s: took %v, sent %d, done %v", name, took, r.depot.outcomes()[Sent], r.depot.done)
			}
			if len(r.depot.exceptions) != 0 {
				t.Errorf("%s: waiting cost attempts: %v", name, r.depot.exceptions)
			}
			if c.backIn == 0 {
				return
			}
			at := time.Now().Add(c.backIn)
			if c.backIn == time.Hour {
				at = r.depot.worthless // not later than its deadline
			}
			if !r.depot.readyAt.Equal(at) || len(r.bell.tasks) != 1 || !r.bell.tasks[0].At.Equal(at) || r.bell.tasks[0].Name != task.Deliver {
				t.Errorf("%s: ready in %v, queued %+v", name, time.Until(r.depot.readyAt), r.bell.tasks)
			}
		})
	}
}

// TestAChannelPausedUntilTheOpening: the waiting recipients expire on time, and no message is
// sent.
func TestAChannelPausedUntilTheOpening(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 30, 5*time.Minute), newProvider(SMS, 10, time.Second))
		r.gate.admit = func(int) time.Duration { return 10 * time.Second }
		r.finish()
		r.want(map[Outcome]int{Expired: 30})
		if len(r.provider.calls) != 0 || r.depot.restReason != ReasonDeadline || !time.Now().Equal(r.depot.worthless) {
			t.Errorf("%d calls, because %q, %v after the opening", len(r.provider.calls), r.depot.restReason, time.Since(r.depot.worthless))
		}
	})
}

func TestContactsThatCannotBeReadLoseNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 10, 10*time.Millisecond))
		r.depot.contactsErr = errAway
		r.must()
		r.want(map[Outcome]int{InFlight: 100})
		if r.depot.done || r.depot.holder != nil || len(r.bell.tasks) != 1 || len(r.provider.calls) != 0 {
			t.Errorf("done %v, held %v, queued %d", r.depot.done, r.depot.holder != nil, len(r.bell.tasks))
		}
		back := time.AfterFunc(3*time.Second, func() {
			r.depot.mu.Lock()
			defer r.depot.mu.Unlock()
			r.depot.contactsErr = nil
		})
		defer back.Stop()
		r.finish()
		r.want(map[Outcome]int{Sent: 100})
		r.once()
	})
}

func TestSkips(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.depot.optedOut = map[user.ID]bool{1: true, 2: true}
		r.depot.known[3] = user.User{ID: 3, Email: "only@example.com"}
		delete(r.depot.known, 4)
		r.must()
		r.want(map[Outcome]int{Sent: 6, Skipped: 4})
		for id, want := range map[user.ID]string{1: ReasonOptedOut, 2: ReasonOptedOut, 3: ReasonNoContact, 4: ReasonNoContact} {
			if e := r.depot.exceptions[id]; e.Reason != want || e.Attempts != 0 || e.FirstAt.IsZero() || r.provider.tried[id] != 0 {
				t.Errorf("user %d: %+v, tried %d times", id, e, r.provider.tried[id])
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // only verified numbers are sent to
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.VerifiedOnly = true
		for id, u := range r.depot.known {
			if id != 2 && id != 7 {
				u.PhoneVerifiedAt = time.Now()
			}
			r.depot.known[id] = u
		}
		r.must()
		r.want(map[Outcome]int{Sent: 8, Skipped: 2})
		for _, id := range []user.ID{2, 7} {
			if e := r.depot.exceptions[id]; e.Reason != ReasonUnverified || e.Attempts != 0 || r.provider.tried[id] != 0 {
				t.Errorf("user %d: %+v, tried %d times", id, e, r.provider.tried[id])
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // a suppressed address is not sent to
		r := newFixture(t, newFakeStore(Email, 10, time.Hour), newProvider(Email, 5, 0))
		for id, u := range r.depot.known {
			u.Email, u.Suppressed = "user@shop.example", id == 2 || id == 7
			r.depot.known[id] = u
		}
		r.must()
		r.want(map[Outcome]int{Sent: 8, Skipped: 2})
		for _, id := range []user.ID{2, 7} {
			if e := r.depot.exceptions[id]; e.Reason != ReasonSuppressed || e.Attempts != 0 || r.provider.tried[id] != 0 {
				t.Errorf("user %d: %+v, tried %d times", id, e, r.provider.tried[id])
			}
		}
	})
	synctest.Test(t, func(t *testing.T) { // the app needs no contact
		r := newFixture(t, newFakeStore(App, 10, time.Hour), newProvider(App, 5, 0))
		clear(r.depot.known)
		r.depot.contactsErr = errAway
		r.must()
		r.want(map[Outcome]int{Sent: 10})
	})
	synctest.Test(t, func(t *testing.T) { // all recipients opted out
		r := newFixture(t, newFakeStore(SMS, 3, time.Hour), newProvider(SMS, 5, 0))
		r.depot.optedOut = map[user.ID]bool{1: true, 2: true, 3: true}
		r.must()
		r.want(map[Outcome]int{Skipped: 3})
		if !r.depot.done {
			t.Error("not done")
		}
	})
	synctest.Test(t, func(t *testing.T) { // no sender
		r := newFixture(t, newFakeStore(SMS, 3, time.Hour), newProvider(Email, 5, 0))
		r.must()
		r.want(map[Outcome]int{Skipped: 3})
		if r.depot.restReason != ReasonNoSender || !r.depot.done {
			t.Errorf("because %q", r.depot.restReason)
		}
	})
}

// TestOptingOutChangesNoOutcome: opting out ends a retry, and does not change an outcome that is
// already recorded.
func TestOptingOutChangesNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 4, time.Hour), newProvider(SMS, 5, 0))
		r.depot.optedOut = map[user.ID]bool{1: true, 2: true, 3: true}
		r.depot.exceptions[1] = Exception{UserID: 1, Outcome: Dead, Reason: ReasonRefused, Attempts: 1}
		r.depot.exceptions[2] = Exception{UserID: 2, Outcome: Failed, Reason: ReasonProvider, Attempts: 2, NextRetryAt: time.Now().Add(time.Minute)}
		r.depot.exceptions[3] = Exception{UserID: 3, Outcome: Skipped, Reason: ReasonOptedOut}
		r.must()
		r.want(map[Outcome]int{Sent: 1, Dead: 1, Skipped: 2})
		if e := r.depot.exceptions[2]; e.Reason != ReasonOptedOut || e.Attempts != 2 || !e.NextRetryAt.IsZero() {
			t.Errorf("one who waited for a retry: %+v", e)
		}
		if first := r.depot.checkpoints[0].Exceptions; len(first) != 1 {
			t.Errorf("recorded again: %+v", first)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		if err := r.Drain(t.Context(), Email); err != nil || len(r.provider.calls) != 0 {
			t.Errorf("another channel: %v", err)
		}
		if err := r.Drain(t.Context(), SMS); err != nil || !r.depot.done {
			t.Errorf("%v, done %v", err, r.depot.done)
		}
	})
	synctest.Test(t, func(t *testing.T) { // after a lost lease another worker owns the batch
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.depot.refuse = func(int) error { return ErrLeaseLost }
		if err := r.Drain(t.Context(), SMS); err != nil {
			t.Errorf("%v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("disk full")
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 5, 0))
		r.depot.refuse = func(int) error { return broken }
		if err := r.Drain(t.Context(), SMS); !errors.Is(err, broken) {
			t.Errorf("%v", err)
		}
	})
}
