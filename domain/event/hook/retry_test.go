package hook_test

import (
	"testing"
	"time"

	"dropbell/domain/event/hook"
)

// TestSchedule: the schedule is the schedule of the specification, ten attempts in
// about three days. Each pause is spread by a tenth, and none is shorter than the
// endpoint asked for.
func TestSchedule(t *testing.T) {
	failed := hook.Answer{Status: 500}
	for i, want := range []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
		10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour} {
		for jitter, share := range map[float64]float64{0: 0.9, 0.5: 1, 0.999999: 1.1} {
			got, again := hook.Next(i+1, failed, jitter)
			if !again || (got-time.Duration(float64(want)*share)).Abs() > time.Second {
				t.Errorf("after attempt %d with jitter %v: %v, %v, want %v of %v", i+1, jitter, got, again, share, want)
			}
		}
	}
	if _, again := hook.Next(10, failed, 0); again {
		t.Error("an eleventh attempt")
	}
	for name, c := range map[string]struct {
		answer hook.Answer
		want   time.Duration
	}{
		"asked by 429":         {hook.Answer{Status: 429, RetryAfter: time.Hour}, time.Hour},
		"asked by 503":         {hook.Answer{Status: 503, RetryAfter: time.Hour}, time.Hour},
		"asked for a year":     {hook.Answer{Status: 503, RetryAfter: 8760 * time.Hour}, 24 * time.Hour},
		"asked for a moment":   {hook.Answer{Status: 429, RetryAfter: time.Second}, 4500 * time.Millisecond},
		"asked without a need": {hook.Answer{Status: 500, RetryAfter: time.Hour}, 4500 * time.Millisecond},
	} {
		if got, _ := hook.Next(1, c.answer, 0); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestHold opens the circuit after failures in a row and doubles up to a limit.
func TestHold(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 0, 1: 0, 4: 0, 5: 10 * time.Second, 6: 20 * time.Second, 8: 80 * time.Second, 40: 10 * time.Minute, 1 << 40: 10 * time.Minute} {
		if got := hook.Hold(failures, hook.Answer{Status: 500}); got != want {
			t.Errorf("%d failures: %v, want %v", failures, got, want)
		}
	}
	if got := hook.Hold(0, hook.Answer{Status: 429, RetryAfter: time.Minute}); got != time.Minute {
		t.Errorf("asked for a pause: %v", got)
	}
}

func TestCause(t *testing.T) {
	for want, a := range map[string]hook.Answer{
		"":                                     {Status: 204},
		"timed out":                            {Error: "timed out"},
		"HTTP 302: redirects are not followed": {Status: 302},
		"HTTP 500":                             {Status: 500},
		"HTTP 199":                             {Status: 199},
	} {
		if a.Cause() != want || a.OK() != (want == "") {
			t.Errorf("%+v: %q, %v", a, a.Cause(), a.OK())
		}
	}
}
