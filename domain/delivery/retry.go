package delivery

import (
	"cmp"
	"regexp"
	"strings"
	"time"
)

// Policy says how often and how soon a recipient is tried again.
type Policy struct {
	// MaxAttempts is how many transient failures make a delivery dead.
	MaxAttempts int
	// Base is the pause after the first failure; it doubles up to Max.
	Base, Max time.Duration
}

// DefaultPolicy pauses about 1, 2, 4, 8, 16, 32, 60 seconds.
func DefaultPolicy() Policy {
	return Policy{MaxAttempts: 8, Base: time.Second, Max: time.Minute}
}

// longestAsked bounds the pause for one message that a provider can request.
const longestAsked = 15 * time.Minute

// Next returns when to try again after the given number of failures, or false if worthlessAfter
// comes first. jitter is random in [0, 1) and spreads the pause by ±25 %, so that a provider that
// recovers does not get all retries at once. asked is the pause that the provider requested; it
// is kept if it ends before worthlessAfter.
func (p Policy) Next(failures int, asked time.Duration, jitter float64, now, worthlessAfter time.Time) (time.Time, bool) {
	pause := p.Max
	if shift := failures - 1; shift < 20 {
		pause = min(p.Max, p.Base<<max(0, shift))
	}
	pause = time.Duration(float64(pause) * (0.75 + jitter/2))
	next := now.Add(max(pause, min(asked, longestAsked)))
	if next.Before(worthlessAfter) {
		return next, true
	}
	// The full pause would end after worthlessAfter: try again after half of the remaining time,
	// unless less than a second would be left.
	half := worthlessAfter.Sub(now) / 2
	if half < time.Second {
		return time.Time{}, false
	}
	return now.Add(half), true
}

var (
	numbers = regexp.MustCompile(`[0-9a-fA-F]*[0-9][0-9a-fA-F]*`)
	address = regexp.MustCompile(`\S+@\S+`)
)

// Fingerprint returns the part of a provider's answer that equal errors have in common: addresses
// and numbers are replaced by placeholders.
func Fingerprint(detail string) string {
	f := address.ReplaceAllString(detail, "@")
	f = numbers.ReplaceAllString(f, "#")
	f = strings.Join(strings.Fields(f), " ")
	if r := []rune(f); len(r) > 120 {
		f = string(r[:120])
	}
	return f
}

// judge returns the recipient's exception after an answer r other than Delivered. before is the
// recipient's exception so far.
func (p Policy) judge(before Exception, r Result, jitter float64, now, worthlessAfter time.Time) Exception {
	e := before
	e.LastAt, e.Detail, e.Fingerprint, e.Via = now, r.Detail, Fingerprint(r.Detail), r.Via
	if e.FirstAt.IsZero() {
		e.FirstAt = now
	}
	e.NextRetryAt = time.Time{}
	switch r.Status {
	case Permanent:
		e.Attempts++
		e.Outcome, e.Reason = Dead, cmp.Or(r.Reason, ReasonRefused)
		if r.Skip {
			e.Attempts--
			e.Outcome = Skipped
		}
		if r.Crash != nil {
			e.Reason = ReasonCrashed
		}
		return e
	case Throttled:
		e.Reason = cmp.Or(r.Reason, ReasonThrottled) // asked to wait: uses up no attempt
		if r.Growing && before.Outcome == Failed && before.Reason == e.Reason {
			last := before.NextRetryAt.Sub(before.LastAt)
			r.After = max(r.After, min(time.Duration(float64(last)*(1.25+jitter/2)), longestAsked))
		}
	default:
		e.Attempts++
		e.Reason = ReasonProvider
	}
	if e.Attempts >= p.MaxAttempts {
		e.Outcome, e.Reason = Dead, ReasonTooManyTries
		return e
	}
	next, ok := p.Next(max(1, e.Attempts), r.After, jitter, now, worthlessAfter)
	if !ok {
		e.Outcome = Expired
		return e
	}
	e.Outcome, e.NextRetryAt = Failed, next
	return e
}
