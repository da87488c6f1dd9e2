package delivery

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

func TestNothingIsSentOnceItIsWorthless(t *testing.T) {
	for _, late := range []time.Duration{0, time.Nanosecond, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 10, -late), newProvider(SMS, 5, 0))
			r.depot.exceptions[3] = Exception{UserID: 3, Outcome: Failed, Reason: ReasonProvider, Detail: "502", Attempts: 2}
			r.must()
			r.want(map[Outcome]int{Expired: 10})
			if len(r.provider.calls) != 0 || r.depot.restReason != ReasonDeadline || !r.depot.done {
				t.Errorf("%v late: %d calls, because %q", late, len(r.provider.calls), r.depot.restReason)
			}
			if e := r.depot.exceptions[3]; e.Reason != ReasonProvider || e.Detail != "502" || e.Attempts != 2 {
				t.Errorf("the cause was overwritten: %+v", e)
			}
		})
	}
}

func TestTheDeadlineComesInsideTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, 2500*time.Millisecond), newProvider(SMS, 1, time.Second))
		r.finish()
		r.once()
		r.want(map[Outcome]int{Sent: 2, Expired: 8})
		for _, at := range r.provider.calls {
			if r.depot.worthless.Sub(at) < lastCall {
				t.Errorf("a call began %v before the opening", r.depot.worthless.Sub(at))
			}
		}
		if over := time.Since(r.depot.worthless); over > time.Millisecond {
			t.Errorf("went on for %v after the opening", over)
		}
	})
}

func TestTheLastMomentBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, lastCall), newProvider(SMS, 5, 0))
		r.finish()
		r.want(map[Outcome]int{Expired: 10})
		if len(r.provider.calls) != 0 {
			t.Errorf("%d calls began too late to arrive", len(r.provider.calls))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, lastCall+time.Millisecond), newProvider(SMS, 5, 0))
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
	})
}

// A late reminder, for example after a moved opening or a provider's outage, contains the time
// that is left until the opening.
func TestLateRemindersTellTheTimeThatIsLeft(t *testing.T) {
	for left, title := range map[time.Duration]string{
		5*time.Minute - 20*time.Second: "Opens in 5 minutes: Half price",
		3*time.Minute + 20*time.Second: "Opens in 3 minutes: Half price",
		30 * time.Second:               "Opens soon: Half price",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(Webhook, 10, left), newProvider(Webhook, 5, 0))
			r.must()
			if r.provider.titles[title] != 10 {
				t.Errorf("%v before the opening: %v", left, r.provider.titles)
			}
		})
	}
}

// TestClockDrift: decisions follow the database's clock, not this machine's. Only the instant of
// the task follows this machine's clock, as its queue does.
func TestClockDrift(t *testing.T) {
	results := map[time.Duration]string{}
	for _, drift := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 40, 2*time.Minute), newProvider(SMS, 10, time.Second))
			r.Now = func() time.Time { return time.Now().Add(drift) }
			r.provider.answer = func(id user.ID, n int) Result {
				switch {
				case id == 40:
					return Result{Detail: "502"}
				case id > 30 && n == 1:
					return Result{Status: Throttled, After: 20 * time.Second}
				}
				return Result{Status: Delivered}
			}
			late := time.Duration(0)
			r.Observe = func(_ Channel, _ int, l time.Duration) { late = max(late, l) }
			start := time.Now()
			r.must()
			if at, want := r.bell.tasks[0].At, r.depot.readyAt.Add(drift); !at.Equal(want) {
				t.Errorf("drift %v: queued for %v of this machine's clock, want %v", drift, at, want)
			}
			r.finish()
			r.once()
			e := r.depot.exceptions[40]
			results[drift] = fmt.Sprint(r.depot.outcomes(), e.Outcome, e.Attempts, e.LastAt.Sub(start), e.FirstAt.Sub(start), len(r.provider.calls), late, time.Since(start))
		})
	}
	if results[0] == "" || results[0] != results[10*time.Minute] || results[0] != results[-10*time.Minute] {
		t.Errorf("results differ by the worker's clock:\n%v", results)
	}
}

func TestOnlyTheUnfinishedAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 10, 0))
		start := time.Now()
		r.provider.answer = func(id user.ID, n int) Result {
			if id%10 == 0 && n < 3 {
				return Result{Detail: "502 from host 7"}
			}
			return Result{Status: Delivered}
		}
		r.must()
		r.want(map[Outcome]int{Sent: 90, Failed: 10})
		if e := r.depot.exceptions[10]; !e.NextRetryAt.Equal(start.Add(time.Second)) || !r.depot.readyAt.Equal(e.NextRetryAt) || e.Attempts != 1 {
			t.Errorf("%+v, ready %v", e, r.depot.readyAt.Sub(start))
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 100})
		r.once()
		for id, n := range r.provider.tried {
			if want := map[bool]int{true: 3, false: 1}[id%10 == 0]; n != want {
				t.Errorf("user %d was tried %d times, want %d", id, n, want)
			}
		}
		if e := r.depot.exceptions[10]; e.Outcome != Recovered || e.Attempts != 2 || !e.NextRetryAt.IsZero() || !e.LastAt.Equal(start.Add(3*time.Second)) {
			t.Errorf("%+v", e)
		}
	})
}

func TestProvidersAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 4, time.Hour), newProvider(SMS, 1, 0))
		start := time.Now()
		r.provider.answer = func(id user.ID, n int) Result {
			switch {
			case id == 1:
				return Result{Status: Permanent, Detail: "no such number"}
			case id == 2:
				return Result{Detail: "502"}
			case id == 3 && n <= 20:
				return Result{Status: Throttled, After: 30 * time.Second}
			}
			return Result{Status: Delivered}
		}
		r.finish()
		r.want(map[Outcome]int{Dead: 2, Sent: 2})
		for id, want := range map[user.ID]Exception{1: {Reason: ReasonRefused, Attempts: 1}, 2: {Reason: ReasonTooManyTries, Attempts: 8}} {
			if e := r.depot.exceptions[id]; e.Reason != want.Reason || e.Attempts != want.Attempts || e.Outcome != Dead {
				t.Errorf("user %d: %+v", id, e)
			}
		}
		if r.provider.tried[1] != 1 || r.provider.tried[2] != 8 || r.provider.tried[3] != 21 || time.Since(start) < 10*time.Minute {
			t.Errorf("tried %v in %v", r.provider.tried, time.Since(start))
		}
	})
}

// TestTheBreakerHearsOnlyOfTheProvidersOwnFailures: bad addresses and throttling are not reported
// to the circuit breaker as failures.
func TestTheBreakerHearsOnlyOfTheProvidersOwnFailures(t *testing.T) {
	for status, good := range map[Status]bool{Delivered: true, Permanent: true, Throttled: true, Transient: false} {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t, newFakeStore(SMS, 3, time.Hour), newProvider(SMS, 10, 0))
			r.provider.answer = func(user.ID, int) Result { return Result{Status: status, Detail: "x"} }
			r.must()
			if (r.gate.good == 1) != good || (len(r.gate.bad) == 1) != !good {
				t.Errorf("status %d: %d good, bad %q", status, r.gate.good, r.gate.bad)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) { // trouble of one recipient's own service
		r := newFixture(t, newFakeStore(SMS, 3, time.Hour), newProvider(SMS, 10, 0))
		r.provider.answer = func(user.ID, int) Result { return Result{Status: Transient, Apart: true, Detail: "x"} }
		r.must()
		if r.gate.good != 1 || len(r.gate.bad) != 0 || r.depot.outcomes()[Failed] != 3 {
			t.Errorf("%d good, bad %q, %v", r.gate.good, r.gate.bad, r.depot.outcomes())
		}
	})
	synctest.Test(t, func(t *testing.T) { // one of many got through
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 10, 0))
		r.provider.answer = func(id user.ID, _ int) Result { return Result{Status: Status(1 - min(id/10, 1))} }
		r.must()
		if r.gate.good != 1 {
			t.Errorf("%d good, bad %q", r.gate.good, r.gate.bad)
		}
	})
}

func TestBatchRecordsItsProgress(t *testing.T) {
	b := Batch{Left: []user.ID{1, 2, 3}, Exceptions: map[user.ID]Exception{}}
	b.record(Progress{Sent: []user.ID{1, 3}, Exceptions: []Exception{{UserID: 2, Outcome: Dead}}})
	if !reflect.DeepEqual(b.Left, []user.ID{2}) || b.Exceptions[2].Outcome != Dead || !b.Settled() {
		t.Errorf("%+v", b)
	}
}
