package delivery

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A WarmUp is how many mails a sender that is new to receiving servers sends a day: the
// first day's number, and every day that many times more. The zero value limits nothing.
type WarmUp struct {
	// Start is the first day, at midnight UTC.
	Start  time.Time
	First  int64
	Factor float64
}

// warmUpMost is from where on a plan is over: no receiving server minds a sender then.
const warmUpMost = 10_000_000

var errWarmUp = errors.New("must be a day, the mails of that day and a factor above 1, such as 2026-12-01:200x1.5")

// ParseWarmUp reads "2026-12-01:200x1.5"; "" is no plan.
func ParseWarmUp(text string) (w WarmUp, err error) {
	if text == "" {
		return w, nil
	}
	day, plan, ok := strings.Cut(text, ":")
	first, factor, both := strings.Cut(strings.NewReplacer("×", "x", "*", "x").Replace(plan), "x")
	start, err1 := time.Parse(time.DateOnly, strings.TrimSpace(day))
	n, err2 := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	f, err3 := strconv.ParseFloat(strings.TrimSpace(factor), 64)
	if !ok || !both || errors.Join(err1, err2, err3) != nil || n < 1 || n > warmUpMost || !(f > 1 && f <= 10) {
		return WarmUp{}, errWarmUp
	}
	return WarmUp{start, n, f}, nil
}

// Most returns how many mails may be sent on the day (UTC) of now; 0 = any number, since
// there is no plan or it is over. Before the first day its number counts.
func (w WarmUp) Most(now time.Time) int64 {
	if w.First == 0 {
		return 0
	}
	days := max(0, math.Floor(now.UTC().Sub(w.Start).Hours()/24))
	if n := float64(w.First) * math.Pow(w.Factor, days); n < warmUpMost {
		return int64(n)
	}
	return 0
}
