package delivery

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/user"
)

// halfOpenCircuit is a half-open circuit. It admits one call; all others wait until that call is
// reported or given back, or for 15 seconds.
type halfOpenCircuit struct {
	mu     sync.Mutex
	closed bool
	until  time.Time // of the probe
	asked  int
}

func (f *halfOpenCircuit) Admit(context.Context, Load) (time.Duration, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if left := time.Until(f.until); !f.closed && left > 0 {
		return min(left, time.Second), ReasonProvider
	}
	f.until = time.Now().Add(15 * time.Second)
	return 0, ""
}

func (f *halfOpenCircuit) Unused(context.Context, Load) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until = time.Time{}
}

func (f *halfOpenCircuit) Report(_ context.Context, _ Channel, c Call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = f.closed || c.OK
}

// fakeScreen is a guard and its screen.
type fakeScreen struct {
	before func(ids []user.ID) ([]Screening, error)
}

func (k fakeScreen) Screen(context.Context, *Batch) (Screen, error) { return k, nil }
func (k fakeScreen) Check([]user.ID, time.Time) []Screening         { return nil }
func (k fakeScreen) Before(_ context.Context, ids []user.ID, _ time.Time) ([]Screening, error) {
	return k.before(ids)
}

// TestAProbeIsNotLostOnACallThatIsNotMade: if the recipients of a chunk are all unreachable, or
// all kept back, the next chunk gets the only probe of a half-open circuit.
func TestAProbeIsNotLostOnACallThatIsNotMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 30, time.Hour), newProvider(SMS, 10, 0))
		f := &halfOpenCircuit{}
		r.Admission = f
		for id := range user.ID(10) {
			delete(r.depot.known, id+1)
		}
		r.Guards = map[Kind]Guard{KindReminder: fakeScreen{func(ids []user.ID) (kept []Screening, err error) {
			for _, id := range ids {
				if id <= 20 {
					kept = append(kept, Screening{UserID: id, Reason: ReasonNoGrant})
				}
			}
			return kept, nil
		}}}
		start := time.Now()
		r.must()
		r.want(map[Outcome]int{Sent: 10, Skipped: 20})
		if took := time.Since(start); took != 0 || f.asked != 2 {
			t.Errorf("took %v, asked %d times", took, f.asked)
		}
	})
}

// TestAProbeIsGivenBackWhenTheScreenFails: the probe is also given back when the worker shuts
// down while the screen is called.
func TestAProbeIsGivenBackWhenTheScreenFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 10, 0))
		f, asked := &halfOpenCircuit{}, 0
		r.Admission = f
		r.Guards = map[Kind]Guard{KindReminder: fakeScreen{func([]user.ID) ([]Screening, error) {
			if asked++; asked == 1 {
				return nil, errAway
			}
			return nil, nil
		}}}
		start := time.Now()
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("took %v", took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Hour), newProvider(SMS, 10, 0))
		ctx, cancel := context.WithCancel(t.Context())
		r.gate.admit = func(int) time.Duration { cancel(); return 0 }
		if err := r.RunNext(ctx, SMS); err != nil || len(r.provider.calls) != 0 || r.gate.unused != 1 || r.gate.dead || r.gate.people != 0 {
			t.Errorf("%v, %d calls; given back %d times in a dead context %v, %d messages left", err, len(r.provider.calls), r.gate.unused, r.gate.dead, r.gate.people)
		}
	})
}

// TestAdmissionIsAskedForMessagesOnly: recipients without a contact use none of the channel's
// rate.
func TestAdmissionIsAskedForMessagesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 10, 0))
		for id := range user.ID(55) {
			delete(r.depot.known, id+1)
		}
		r.must()
		r.want(map[Outcome]int{Sent: 45, Skipped: 55})
		if r.gate.people != 45 || r.gate.asked != 5 || r.gate.unused != 0 {
			t.Errorf("%d messages in %d questions, %d given back", r.gate.people, r.gate.asked, r.gate.unused)
		}
	})
}

// TestAThrottledChannelIsLeftAlone: a pause of 30 seconds that a provider requests applies to all
// recipients of the channel, and no attempts are used up.
func TestAThrottledChannelIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 30 * time.Second
		r := newFixture(t, newFakeStore(SMS, 100, time.Hour), newProvider(SMS, 10, 100*time.Millisecond))
		r.provider.answer = func(id user.ID, n int) Result {
			if id <= 10 && n <= 3 {
				return Result{Status: Throttled, After: asked, Detail: "429"}
			}
			return Result{Status: Delivered}
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 100})
		r.once()
		told := time.Time{}
		for i, at := range r.provider.calls {
			if at.Before(told) {
				t.Errorf("call %d came %v too early", i, told.Sub(at))
			}
			if i < 3 {
				told = at.Add(100*time.Millisecond + asked)
			}
		}
		if e := r.depot.exceptions[1]; len(r.gate.throttled) != 3 || e.Attempts != 0 || len(r.gate.bad) != 0 {
			t.Errorf("throttled %v, %+v, bad %q", r.gate.throttled, e, r.gate.bad)
		}
	})
}

// TestAPauseBeyondTheDeadline: a provider requests a pause of a day when a minute is left. The
// channel is paused only until the deadline of the waiting recipients, and they are tried again.
func TestAPauseBeyondTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(SMS, 10, time.Minute), newProvider(SMS, 10, 0))
		r.provider.answer = func(_ user.ID, n int) Result {
			if n == 1 {
				return Result{Status: Throttled, After: 24 * time.Hour, Detail: "429"}
			}
			return Result{Status: Delivered}
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 10})
		r.once()
		if asked := r.gate.throttled; len(asked) != 1 || asked[0] != 30*time.Second {
			t.Errorf("the channel is held for %v", asked)
		}
	})
}

// TestAGreylistedRecipientHoldsNobodyElse, and is reached later.
func TestAGreylistedRecipientHoldsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, newFakeStore(Email, 200, time.Hour), newProvider(Email, 50, 0))
		r.provider.answer = func(id user.ID, n int) Result {
			if id == 1 && n < 4 {
				return Result{Apart: true, After: 45 * time.Second, Detail: "451 4.7.1 greylisted"}
			}
			return Result{Status: Delivered}
		}
		r.must()
		r.want(map[Outcome]int{Sent: 199, Failed: 1})
		if len(r.gate.throttled) != 0 || len(r.gate.bad) != 0 {
			t.Errorf("the channel is held %v, failures %v", r.gate.throttled, r.gate.bad)
		}
		r.finish()
		r.want(map[Outcome]int{Sent: 200})
		r.once()
	})
}

// TestWhatACallWas: one slow address, or one slow push service among several, does not delay
// other recipients.
func TestWhatACallWas(t *testing.T) {
	sent, slow, slower := Result{Status: Delivered}, Result{Status: Throttled, After: time.Second}, Result{Status: Throttled, After: time.Minute}
	vague, apart := Result{Status: Throttled}, Result{Status: Throttled, After: time.Hour, Apart: true}
	for name, c := range map[string]struct {
		results []Result
		want    Call
	}{
		"all well":                      {[]Result{sent, sent}, Call{OK: true}},
		"throttled":                     {[]Result{slow, slower, slow}, Call{OK: true, Throttled: true, After: time.Minute}},
		"throttled halfway":             {[]Result{sent, slow}, Call{OK: true, Throttled: true, After: time.Second}},
		"throttled without a time":      {[]Result{vague, vague}, Call{OK: true, Throttled: true}},
		"one slow address":              {[]Result{sent, vague}, Call{OK: true}},
		"one push service":              {[]Result{apart, apart}, Call{OK: true}},
		"one push service, and a limit": {[]Result{apart, slow}, Call{OK: true, Throttled: true, After: time.Second}},
		"bad address and a limit":       {[]Result{{Status: Permanent}, vague}, Call{OK: true, Throttled: true}},
		"greylisted, alone":             {[]Result{{Apart: true, After: time.Minute, Detail: "451"}}, Call{OK: true}},
		"gone":                          {[]Result{{Status: Permanent, Provider: true, Detail: "410"}}, Call{Detail: "410"}},
		"failed":                        {[]Result{{Detail: "502"}, {Detail: "502"}}, Call{Detail: "502"}},
		"failed for one":                {[]Result{{Detail: "502"}, sent}, Call{OK: true, Detail: "502"}},
	} {
		if got := CallOf(c.results); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
