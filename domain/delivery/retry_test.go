package delivery

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func durations(least, most time.Duration) *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(int64(least), int64(most)), func(n int64) time.Duration { return time.Duration(n) })
}

func TestTheNextTryKeepsItsBounds(t *testing.T) {
	p := DefaultPolicy()
	rapid.Check(t, func(t *rapid.T) {
		failures := rapid.IntRange(1, 100).Draw(t, "failures")
		asked := rapid.OneOf(rapid.Just(time.Duration(0)), durations(0, 2*time.Hour)).Draw(t, "asked")
		jitter := rapid.Float64Range(0, 0.999).Draw(t, "jitter")
		window := rapid.OneOf(durations(-time.Minute, 10*time.Second), durations(0, 2*time.Hour)).Draw(t, "window")
		end := noon.Add(window)

		plain := p.Max
		if failures < 7 {
			plain = p.Base << (failures - 1)
		}
		low, high := time.Duration(0.75*float64(plain)), time.Duration(1.25*float64(plain))
		next, ok := p.Next(failures, asked, jitter, noon, end)
		pause := next.Sub(noon)
		half := window / 2
		asked = min(asked, longestAsked)
		switch {
		case !ok && max(low, asked) < window && max(high, asked) < window:
			t.Fatalf("gave up although a pause of %v fits %v", max(high, asked), window)
		case !ok && half >= time.Second:
			t.Fatalf("gave up although a try half-way through %v is left", window)
		case !ok:
			return
		case !next.Before(end):
			t.Fatalf("tries at %v, the end is %v", pause, window)
		case pause == half && half >= time.Second && max(high, asked) >= window: // nothing else fits
		case pause < asked:
			t.Fatalf("tries after %v, the provider asked for %v", pause, asked)
		case pause < low || pause > max(high, asked):
			t.Fatalf("tries after %v, want %v to %v", pause, max(low, asked), max(high, asked))
		}
	})
}

func TestPausesDouble(t *testing.T) {
	p := DefaultPolicy()
	for failures, want := range map[int]time.Duration{1: 1, 2: 2, 3: 4, 4: 8, 5: 16, 6: 32, 7: 60, 8: 60, 19: 60, 20: 60, 64: 60, 1000: 60} {
		next, ok := p.Next(failures, 0, 0.5, noon, noon.Add(time.Hour))
		if pause := next.Sub(noon); !ok || pause != want*time.Second {
			t.Errorf("after %d failures: %v, want %v", failures, pause, want*time.Second)
		}
	}
	early, _ := p.Next(3, 0, 0, noon, noon.Add(time.Hour))
	late, _ := p.Next(3, 0, 0.999, noon, noon.Add(time.Hour))
	if early.Sub(noon) != 3*time.Second || late.Sub(noon) < 4990*time.Millisecond || late.Sub(noon) >= 5*time.Second {
		t.Errorf("jitter spreads 4 s from %v to %v", early.Sub(noon), late.Sub(noon))
	}
}

func TestTheLastTryHalfWay(t *testing.T) {
	p := DefaultPolicy()
	for _, c := range []struct {
		window, asked time.Duration
		want          time.Duration // 0 = gives up
	}{
		{8*time.Second + 1, 0, 8 * time.Second},             // fits exactly
		{8 * time.Second, 0, 4 * time.Second},               // would fall on the end
		{8 * time.Second, 4 * time.Second, 4 * time.Second}, // the provider can wait as well
		{8 * time.Second, 4*time.Second + 1, 4 * time.Second},
		{8 * time.Second, 24 * time.Hour, 4 * time.Second}, // far beyond the end
		{2 * time.Second, 0, time.Second},
		{2*time.Second - 1, 0, 0},
		{0, 0, 0},
		{-time.Second, 0, 0},
		{time.Minute, time.Minute, 30 * time.Second},
		{time.Minute, time.Hour, 30 * time.Second},
		{time.Hour, 10 * time.Minute, 10 * time.Minute}, // longer than our own pause
		{24 * time.Hour, 12 * time.Hour, 15 * time.Minute},
	} {
		next, ok := p.Next(4, c.asked, 0.5, noon, noon.Add(c.window))
		if ok != (c.want > 0) || ok && next.Sub(noon) != c.want {
			t.Errorf("%v left, %v asked for: %v %v, want %v", c.window, c.asked, next.Sub(noon), ok, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	p := DefaultPolicy()
	end, first := noon.Add(time.Hour), noon.Add(-time.Minute)
	had := func(n int) Exception {
		return Exception{UserID: 7, Outcome: Failed, Reason: ReasonProvider, Detail: "old", Fingerprint: "old", Attempts: n,
			FirstAt: first, LastAt: first, NextRetryAt: noon}
	}
	for _, c := range []struct {
		name     string
		before   Exception
		result   Result
		end      time.Time
		outcome  Outcome
		reason   string
		attempts int
		next     time.Duration // 0 = none
	}{
		{"first failure", Exception{UserID: 7}, Result{Detail: "502"}, end, Failed, ReasonProvider, 1, time.Second},
		{"second failure", had(1), Result{Detail: "502"}, end, Failed, ReasonProvider, 2, 2 * time.Second},
		{"last failure but one", had(6), Result{Detail: "502"}, end, Failed, ReasonProvider, 7, time.Minute},
		{"last failure", had(7), Result{Detail: "502"}, end, Dead, ReasonTooManyTries, 8, 0},
		{"the window closes", had(1), Result{Detail: "502"}, noon.Add(time.Second), Expired, ReasonProvider, 2, 0},
		{"after the window", had(1), Result{Detail: "502"}, noon, Expired, ReasonProvider, 2, 0},
		{"bad address", Exception{UserID: 7}, Result{Status: Permanent, Detail: "550"}, end, Dead, ReasonRefused, 1, 0},
		{"bad address after failures", had(3), Result{Status: Permanent, Detail: "550"}, end, Dead, ReasonRefused, 4, 0},
		{"throttled", Exception{UserID: 7}, Result{Status: Throttled, After: 5 * time.Second}, end, Failed, ReasonThrottled, 0, 5 * time.Second},
		{"throttled without a time", Exception{UserID: 7}, Result{Status: Throttled}, end, Failed, ReasonThrottled, 0, time.Second},
		{"throttled after failures", had(7), Result{Status: Throttled, After: 5 * time.Second}, end, Failed, ReasonThrottled, 7, time.Minute},
		{"throttled beyond the window", had(1), Result{Status: Throttled, After: 2 * time.Hour}, noon.Add(time.Minute), Failed, ReasonThrottled, 1, 30 * time.Second},
		{"throttled, and no time left", had(1), Result{Status: Throttled, After: 2 * time.Hour}, noon.Add(time.Second), Expired, ReasonThrottled, 1, 0},
		{"throttled again and again", Exception{UserID: 7, Outcome: Failed, Reason: ReasonThrottled, FirstAt: first, LastAt: first, NextRetryAt: first.Add(20 * time.Second)},
			Result{Status: Throttled, Apart: true, Growing: true, After: 5 * time.Second}, end, Failed, ReasonThrottled, 0, 30 * time.Second},
		{"throttled for the first time, long after a failure", had(0), Result{Status: Throttled, Apart: true, Growing: true, After: 5 * time.Second}, end, Failed, ReasonThrottled, 0, 5 * time.Second},
		{"throttled alone", had(0), Result{Status: Throttled, Apart: true, After: 5 * time.Second}, end, Failed, ReasonThrottled, 0, 5 * time.Second},
		{"a forgotten answer", Exception{UserID: 7}, Result{}, end, Failed, ReasonProvider, 1, time.Second},
	} {
		got := p.judge(c.before, c.result, 0.5, noon, c.end)
		want := got
		want.Outcome, want.Reason, want.Attempts, want.UserID = c.outcome, c.reason, c.attempts, 7
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if want := noon.Add(c.next); c.next == 0 && !got.NextRetryAt.IsZero() || c.next != 0 && !got.NextRetryAt.Equal(want) {
			t.Errorf("%s: next %v", c.name, got.NextRetryAt)
		}
		wantFirst := first
		if c.before.FirstAt.IsZero() {
			wantFirst = noon
		}
		if !got.FirstAt.Equal(wantFirst) || !got.LastAt.Equal(noon) || got.Detail != c.result.Detail || got.Fingerprint != Fingerprint(c.result.Detail) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestThrottlingUsesUpNoAttempt: a provider that requests pauses for hours must not cause dead
// letters.
func TestThrottlingUsesUpNoAttempt(t *testing.T) {
	p, now, e := DefaultPolicy(), noon, Exception{UserID: 7}
	for range 1000 {
		e = p.judge(e, Result{Status: Throttled, After: time.Second}, 0.5, now, noon.Add(time.Hour))
		if e.Outcome != Failed || e.Attempts != 0 || e.NextRetryAt.Before(now.Add(time.Second)) {
			t.Fatalf("%+v", e)
		}
		now = e.NextRetryAt
	}
}

func TestFingerprint(t *testing.T) {
	equal := [][]string{
		{"550 5.1.1 <ann@example.com>: no such user", "550 5.1.1 <bob@test.org>: no such user"},
		{"timeout after 3001 ms", "timeout  after\n17 ms"},
		{"request 7f3a9c2e failed", "request 01be77aa failed"},
		{"host 10.0.0.1:25 refused", "host 192.168.17.4:2525 refused"},
	}
	for _, texts := range equal {
		if a, b := Fingerprint(texts[0]), Fingerprint(texts[1]); a != b || a == "" {
			t.Errorf("%q and %q are %q and %q", texts[0], texts[1], a, b)
		}
	}
	if Fingerprint("connection refused") == Fingerprint("connection reset") {
		t.Error("different errors share a fingerprint")
	}
	if got := Fingerprint("connection refused"); got != "connection refused" {
		t.Errorf("%q", got)
	}
	long := Fingerprint(strings.Repeat("券x ", 10_000))
	if n := utf8.RuneCountInString(long); n != 120 || !utf8.ValidString(long) {
		t.Errorf("a fingerprint of %d characters, valid %v", n, utf8.ValidString(long))
	}
	if Fingerprint("") != "" {
		t.Error("no answer has a fingerprint")
	}
}

// An answer may have a reason of its own, and may be that the message is skipped.
func TestReasonsOfAnswers(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	p := DefaultPolicy()
	for _, c := range []struct {
		r        Result
		outcome  Outcome
		reason   string
		attempts int
	}{
		{Result{Status: Permanent}, Dead, ReasonRefused, 1},
		{Result{Status: Permanent, Reason: ReasonCountry}, Dead, ReasonCountry, 1},
		{Result{Status: Permanent, Reason: ReasonBudget, Skip: true}, Skipped, ReasonBudget, 0},
	} {
		if e := p.judge(Exception{}, c.r, 0, now, now.Add(time.Hour)); e.Outcome != c.outcome || e.Reason != c.reason || e.Attempts != c.attempts || !e.NextRetryAt.IsZero() {
			t.Errorf("%+v: got %+v", c.r, e)
		}
	}
}
