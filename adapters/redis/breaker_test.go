package redis

import (
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/musttest"

	goredis "github.com/redis/go-redis/v9"
)

// A worker holds one of several breakers that share a Redis.
type worker struct {
	*Breaker
	t *testing.T
}

func newWorker(t *testing.T, client goredis.UniversalClient, config BreakerConfig) worker {
	return worker{NewBreaker(client, config), t}
}

func (w worker) admit() (time.Duration, string) {
	w.t.Helper()
	wait, state, err := w.Admit(w.t.Context(), delivery.SMS)
	if err != nil {
		w.t.Fatal(err)
	}
	return wait, state
}

func (w worker) report(ok bool) {
	w.t.Helper()
	if err := w.Report(w.t.Context(), delivery.SMS, ok, "503 busy"); err != nil {
		w.t.Fatal(err)
	}
}

func (w worker) wantState(want string) {
	w.t.Helper()
	states, err := w.States(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	if got := states[delivery.SMS].State; got != want {
		w.t.Fatalf("state %q, want %q", got, want)
	}
}

func TestBreakerOpensForEverybodyAfterFailuresInARow(t *testing.T) {
	s := startRedis(t)
	a, b := newWorker(t, open(t, s), BreakerConfig{}), newWorker(t, open(t, s), BreakerConfig{})
	for range 4 {
		a.report(false)
	}
	b.report(true)
	for range 4 {
		b.report(false)
	}
	if wait, state := a.admit(); wait != 0 || state != StateClosed {
		t.Fatalf("four in a row closed the way: %v %s", wait, state)
	}
	began := time.Now()
	a.report(false)
	wait, state := b.admit()
	if passed := time.Since(began); state != StateOpen || wait < 5*time.Second-passed-rounding || wait > 5*time.Second {
		t.Fatalf("after five in a row: %s for %v, want open for 5s but for %v", state, wait, passed)
	}
	if wait, _, err := b.Admit(t.Context(), delivery.Email); err != nil || wait != 0 {
		t.Fatalf("another channel waits %v, %v", wait, err)
	}
}

func TestBreakerOpensWhenHalfOfManyCallsFail(t *testing.T) {
	client := open(t, startRedis(t))
	w := newWorker(t, client, BreakerConfig{})
	for i := range 19 {
		w.report(i%2 == 0)
	}
	w.wantState(StateClosed)
	w.report(false)
	w.wantState(StateOpen)
}

func TestBreakerForgetsAFormerWindow(t *testing.T) {
	client := open(t, startRedis(t))
	w := newWorker(t, client, BreakerConfig{Window: 50 * time.Millisecond, Failures: 100})
	for range 19 {
		w.report(false)
	}
	started := time.Now()
	eventually(t, "the window passes", func() bool { return time.Since(started) > 60*time.Millisecond })
	w.report(false)
	w.wantState(StateClosed)
}

func TestHalfOpenAdmitsOneProbeAndFailureDoublesThePause(t *testing.T) {
	s := startRedis(t)
	config := BreakerConfig{Failures: 1, OpenFor: 180 * time.Millisecond, MaxOpen: 600 * time.Millisecond}
	a, b := newWorker(t, open(t, s), config), newWorker(t, open(t, s), config)
	began := time.Now()
	a.report(false)
	for _, pause := range []time.Duration{180, 360, 600, 600} {
		pause *= time.Millisecond
		wait, state := a.admit()
		if passed := time.Since(began); wait > pause || wait < pause-passed-rounding || state != StateOpen && passed < pause {
			t.Fatalf("%s for %v, want open for %v but for %v", state, wait, pause, passed)
		}
		eventually(t, "a probe is admitted", func() bool {
			if wait > 0 {
				wait, _ = a.admit()
			}
			return wait == 0
		})
		if wait, state := b.admit(); wait <= 0 || wait > time.Second || state != StateHalfOpen {
			t.Fatalf("beside the probe: %v %s", wait, state)
		}
		began = time.Now()
		a.report(false)
	}
	eventually(t, "a probe is admitted", func() bool { wait, _ := b.admit(); return wait == 0 })
	b.report(true)
	for _, w := range []worker{a, b} {
		if wait, state := w.admit(); wait != 0 || state != StateClosed {
			t.Fatalf("after a good probe: %v %s", wait, state)
		}
	}
	a.report(false)
	if wait, _ := b.admit(); wait > config.OpenFor {
		t.Fatalf("the pause starts at %v after a good time, want %v", wait, config.OpenFor)
	}
}

func TestADeadProberIsReplacedAfterItsLease(t *testing.T) {
	s := startRedis(t)
	config := BreakerConfig{Failures: 1, OpenFor: time.Millisecond, ProbeLease: 100 * time.Millisecond}
	a, b := newWorker(t, open(t, s), config), newWorker(t, open(t, s), config)
	a.report(false)
	eventually(t, "a probes", func() bool { wait, state := a.admit(); return wait == 0 && state == StateHalfOpen })
	probed := time.Now()
	eventually(t, "b probes", func() bool { wait, _ := b.admit(); return wait == 0 })
	if since := time.Since(probed); since < 90*time.Millisecond {
		t.Fatalf("second probe after %v, the lease is 100ms", since)
	}
}

// TestAProbeThatIsGivenBackIsTakenAtOnce: the next Admit takes the probe that was given back. A
// circuit in another state is not changed.
func TestAProbeThatIsGivenBackIsTakenAtOnce(t *testing.T) {
	s := startRedis(t)
	config := BreakerConfig{Failures: 1, OpenFor: 50 * time.Millisecond, ProbeLease: time.Hour}
	a, b := NewCachedBreaker(NewBreaker(open(t, s), config), aloneFor(1)), newWorker(t, open(t, s), config)
	unused := func() {
		t.Helper()
		musttest.OK(t, a.Unused(t.Context(), delivery.SMS))
	}
	unused()
	b.wantState(StateClosed)
	b.report(false)
	unused()
	b.wantState(StateOpen)
	for range 3 {
		eventually(t, "a probes", func() bool { wait, _, err := a.Admit(t.Context(), delivery.SMS); return wait == 0 && err == nil })
		if wait, state := b.admit(); wait <= 0 || state != StateHalfOpen {
			t.Fatalf("beside the probe: %v %s", wait, state)
		}
		unused()
		if wait, state := b.admit(); wait != 0 || state != StateHalfOpen {
			t.Fatalf("the probe was given back: %v %s", wait, state)
		}
		b.report(false)
	}
}

func TestLateReportsDoNotTouchAnOpenBreaker(t *testing.T) {
	w := newWorker(t, open(t, startRedis(t)), BreakerConfig{Failures: 1})
	w.report(false)
	before, _ := w.admit()
	w.report(true)
	w.report(false)
	after, state := w.admit()
	if state != StateOpen || after > before {
		t.Fatalf("%s, pause %v then %v", state, before, after)
	}
}

func TestStatesShowEveryChannel(t *testing.T) {
	client := open(t, startRedis(t))
	b := NewBreaker(client, BreakerConfig{Failures: 2})
	long := strings.Repeat("é", 150)
	for range 2 {
		musttest.OK(t, b.Report(t.Context(), delivery.Webhook, false, long))
	}
	states, err := b.States(t.Context())
	if err != nil || len(states) != delivery.Channels {
		t.Fatalf("%v %v", states, err)
	}
	if s := states[delivery.App]; s.State != StateClosed || !s.Since.IsZero() || !s.Until.IsZero() {
		t.Errorf("unused channel: %+v", s)
	}
	s := states[delivery.Webhook]
	if s.Channel != delivery.Webhook || s.State != StateOpen || s.Failures != 2 || len(s.Detail) != 200 {
		t.Errorf("open channel: %+v", s)
	}
	if pause := s.Until.Sub(s.Since); pause != 5*time.Second {
		t.Errorf("open for %v", pause)
	}
}

// TestStatesEndByThemselves: an alert must not go on because no call is made that would close
// the circuit.
func TestStatesEndByThemselves(t *testing.T) {
	client := open(t, startRedis(t))
	w := newWorker(t, client, BreakerConfig{Failures: 1, OpenFor: 300 * time.Millisecond})
	w.report(false)
	w.wantState(StateOpen)
	eventually(t, "the pause is over and nobody asked", func() bool {
		states, err := w.States(t.Context())
		return err == nil && states[delivery.SMS].State == StateHalfOpen && states[delivery.SMS].Until.IsZero()
	})
	until := time.Now().Add(-quietFor).UnixMilli()
	musttest.OK(t, client.HSet(t.Context(), breakerKey(delivery.SMS), "until", until).Err())
	w.wantState(StateClosed)
	if _, state := w.admit(); state != StateHalfOpen { // the next call is a probe all the same
		t.Errorf("the next call is admitted as %s", state)
	}
}

func TestAnEmptiedRedisClosesTheBreaker(t *testing.T) {
	client := open(t, startRedis(t))
	w := newWorker(t, client, BreakerConfig{Failures: 1})
	w.report(false)
	musttest.OK(t, client.FlushAll(t.Context()).Err())
	// The script is gone as well and must come back by itself.
	musttest.OK(t, client.ScriptFlush(t.Context()).Err())
	if wait, state := w.admit(); wait != 0 || state != StateClosed {
		t.Fatalf("%v %s", wait, state)
	}
}
