package hook

import (
	"strconv"
	"time"
)

// Schedule is the time between each failed attempt and the next attempt. After the
// last attempt the delivery has failed, about three days after the first.
var Schedule = [...]time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour,
	10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

const (
	// DisableAfter is the time for which every attempt must have failed before an
	// endpoint is disabled.
	DisableAfter = 5 * 24 * time.Hour
	// Tolerated failures in a row open the circuit.
	Tolerated = 5
	// firstHold is how long the circuit stays open at first. The time doubles with
	// each failed probe, up to longestHold.
	firstHold, longestHold = 10 * time.Second, 10 * time.Minute
	// longestAsked is the longest pause that an endpoint can ask for.
	longestAsked = 24 * time.Hour
)

// An Answer is the result of one attempt.
type Answer struct {
	Status   int // of HTTP; 0 = there was none
	Error    string
	Response string // the beginning of the answer's body
	// RetryAfter is the pause that the endpoint asked for; 0 = none.
	RetryAfter time.Duration
	Took       time.Duration
}

// OK reports whether the endpoint accepted the event.
func (a Answer) OK() bool { return a.Error == "" && a.Status >= 200 && a.Status < 300 }

// Gone reports whether the endpoint wants no further calls.
func (a Answer) Gone() bool { return a.Status == 410 }

// Cause returns why the attempt failed, in one line; "" if it did not.
func (a Answer) Cause() string {
	switch {
	case a.OK():
		return ""
	case a.Error != "":
		return a.Error
	case a.Status >= 300 && a.Status < 400:
		return "HTTP " + strconv.Itoa(a.Status) + ": redirects are not followed"
	}
	return "HTTP " + strconv.Itoa(a.Status)
}

// asks returns how long the endpoint wants to be left alone.
func (a Answer) asks() time.Duration {
	if a.Status != 429 && a.Status != 503 {
		return 0
	}
	return min(a.RetryAfter, longestAsked)
}

// Next returns the time between a failed attempt, counted from 1, and the next
// attempt; false if there is no next attempt. jitter is random in [0, 1) and
// spreads the pause by ±10 %. A pause that the endpoint asked for is a lower bound.
func Next(attempt int, a Answer, jitter float64) (time.Duration, bool) {
	if attempt > len(Schedule) {
		return 0, false
	}
	pause := time.Duration(float64(Schedule[max(attempt, 1)-1]) * (0.9 + jitter/5))
	return max(pause, a.asks()), true
}

// Hold returns how long nothing is sent to an endpoint after this number of
// failures in a row, the last of which was a; 0 = sending goes on.
func Hold(failures int, a Answer) time.Duration {
	hold := time.Duration(0)
	if n := failures - Tolerated; n >= 0 {
		hold = min(longestHold, firstHold<<min(n, 20))
	}
	return max(hold, a.asks())
}
