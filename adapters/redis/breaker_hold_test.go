package redis

import (
	"context"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/musttest"
)

// breaker is a Breaker or a CachedBreaker.
type breaker interface {
	Admit(ctx context.Context, channel delivery.Channel) (time.Duration, string, error)
	Report(ctx context.Context, channel delivery.Channel, ok bool, detail string) error
	Throttled(ctx context.Context, channel delivery.Channel, after time.Duration) error
	Unused(ctx context.Context, channel delivery.Channel) error
}

// holding tests both kinds of breakers with pauses that providers request. b and other are the
// breakers of two workers.
func holding(t *testing.T, config BreakerConfig, test func(t *testing.T, b, other held)) {
	for name, kind := range map[string]func(*Breaker) breaker{
		"asking always": func(b *Breaker) breaker { return b },
		"cached":        func(b *Breaker) breaker { return NewCachedBreaker(b, aloneFor(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startRedis(t)
			one, two := NewBreaker(open(t, s), config), NewBreaker(open(t, s), config)
			test(t, held{t, kind(one), one}, held{t, kind(two), two})
		})
	}
}

type held struct {
	t *testing.T
	breaker
	bare *Breaker
}

func (h held) wait() time.Duration {
	h.t.Helper()
	wait, state, err := h.Admit(h.t.Context(), delivery.SMS)
	if err != nil || (wait > 0) != (state == StateHeld) {
		h.t.Fatalf("%v %s %v", wait, state, err)
	}
	return wait
}

func (h held) throttled(after time.Duration) {
	h.t.Helper()
	if err := h.Throttled(h.t.Context(), delivery.SMS, after); err != nil {
		h.t.Fatal(err)
	}
}

func (h held) ok() {
	h.t.Helper()
	if err := h.Report(h.t.Context(), delivery.SMS, true, ""); err != nil {
		h.t.Fatal(err)
	}
}

// waits fails unless the wait is the pause less the time that has passed since it began.
func (h held) waits(what string, began time.Time, pause time.Duration) {
	h.t.Helper()
	if wait, passed := h.wait(), time.Since(began); wait < pause-passed-rounding || wait > pause {
		h.t.Fatalf("%s: wait %v, want %v but for %v", what, wait, pause, passed)
	}
}

func TestAPauseThatAProviderAsksForHoldsEverybody(t *testing.T) {
	holding(t, BreakerConfig{LookEvery: time.Hour}, func(t *testing.T, b, other held) {
		began := time.Now()
		b.waits("at first", began, 0)
		b.throttled(30 * time.Second)
		b.waits("the one who was told", began, 30*time.Second)
		other.waits("another worker", began, 30*time.Second)
		if wait, _, err := b.Admit(t.Context(), delivery.Email); wait != 0 || err != nil {
			t.Errorf("another channel waits %v %v", wait, err)
		}
		other.ok() // began before
		other.waits("all the same", began, 30*time.Second)
		b.throttled(10 * time.Second)
		b.throttled(0)
		b.waits("a shorter pause, and none, asked for meanwhile", began, 30*time.Second)
		began = time.Now()
		b.throttled(time.Hour)
		b.waits("far too long a pause", began, 300*time.Second)
		states, err := b.bare.States(t.Context())
		if s := states[delivery.SMS]; err != nil || s.State != StateClosed || time.Until(s.HeldUntil) < 4*time.Minute {
			t.Errorf("%+v %v", s, err)
		}
	})
}

func TestAPauseWithoutATimeDoublesUntilACallGoesWell(t *testing.T) {
	config := BreakerConfig{Hold: 300 * time.Millisecond, LongestHold: 1200 * time.Millisecond}
	holding(t, config, func(t *testing.T, b, other held) {
		over := func(h held) {
			t.Helper()
			eventually(t, "the pause is over", func() bool { return h.wait() == 0 })
		}
		for _, want := range []time.Duration{300, 600, 1200, 1200} {
			want *= time.Millisecond
			over(b)
			began := time.Now()
			b.throttled(0)
			b.throttled(0) // calls that were made side by side
			other.ok()     // and one that went well before it
			b.waits("the pause", began, want)
			over(other)
		}
		over(b)
		eventually(t, "the good news is told", func() bool { // which may wait for a moment
			other.ok()
			hold, err := other.bare.client.HGet(t.Context(), breakerKey(delivery.SMS), "hold").Result()
			return err == nil && hold == "0"
		})
		began := time.Now()
		b.throttled(0)
		b.waits("after a call that went well", began, config.Hold)
	})
}

// TestInAPauseOneCallAtATimeLooks: one call at a time checks whether the provider still
// throttles, so that a refusal of one call does not delay all messages.
func TestInAPauseOneCallAtATimeLooks(t *testing.T) {
	const every = 800 * time.Millisecond
	holding(t, BreakerConfig{LookEvery: every}, func(t *testing.T, b, other held) {
		looks := func(h held) {
			t.Helper()
			eventually(t, "one call goes", func() bool {
				wait, state, err := h.Admit(t.Context(), delivery.SMS)
				if err != nil || state != StateHeld || wait > every {
					t.Fatalf("%v %s %v", wait, state, err)
				}
				return wait == 0
			})
		}
		b.throttled(time.Minute)
		began := time.Now()
		looks(b)
		other.waits("a second call", began, every)
		b.throttled(time.Minute) // it was turned away
		other.waits("until the next one", began, every)
		looks(other)
		musttest.OK(t, other.Unused(t.Context(), delivery.SMS))
		if wait, state, err := b.Admit(t.Context(), delivery.SMS); wait != 0 || state != StateHeld || err != nil {
			t.Fatalf("the call that was not made is not given to another: %v %s %v", wait, state, err)
		}
		b.ok()
		eventually(t, "the pause is over for all", func() bool { return b.wait() == 0 && other.wait() == 0 })
		states, err := b.bare.States(t.Context())
		if s := states[delivery.SMS]; err != nil || s.HeldUntil.After(time.Now().Add(time.Second)) {
			t.Errorf("%+v %v", s, err)
		}
	})
}

// TestAProbeThatIsThrottledClosesTheCircuit: a provider that throttles a probe works. The
// circuit closes, and calls wait for the requested pause.
func TestAProbeThatIsThrottledClosesTheCircuit(t *testing.T) {
	holding(t, BreakerConfig{Failures: 1, OpenFor: 10 * time.Millisecond}, func(t *testing.T, b, other held) {
		musttest.OK(t, b.Report(t.Context(), delivery.SMS, false, "503"))
		eventually(t, "a probe is admitted", func() bool { wait, _, err := b.Admit(t.Context(), delivery.SMS); return wait == 0 && err == nil })
		began := time.Now()
		b.throttled(200 * time.Millisecond)
		other.waits("while it is held", began, 200*time.Millisecond)
		eventually(t, "the pause is over", func() bool { return other.wait() == 0 })
		if _, state, err := other.Admit(t.Context(), delivery.SMS); state != StateClosed || err != nil {
			t.Errorf("%s %v", state, err)
		}
	})
}
