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

// A WarmUpDay is one day of a plan.
type WarmUpDay struct {
	// Day is its midnight (UTC).
	Day time.Time
	// Most are the mails that may be sent on it, Sent those that were.
	Most, Sent int64
	Today      bool
}

// Days returns the days of the plan from so many before that of now to so many behind it,
// without those before the first and those on which the plan is over.
func (w WarmUp) Days(now time.Time, before, behind int) (list []WarmUpDay) {
	today := now.UTC().Truncate(24 * time.Hour)
	for i := -before; i <= behind; i++ {
		day := today.AddDate(0, 0, i)
		if most := w.Most(day); most > 0 && (!day.Before(w.Start) || i == 0) {
			list = append(list, WarmUpDay{Day: day, Most: most, Today: i == 0})
		}
	}
	return list
}

// A DomainPace is what limits mails to one domain of recipients.
type DomainPace struct {
	Domain string
	// PerSecond is the limit, 0 = none.
	PerSecond int
	// Today are the mails that went on this day (UTC), Waiting those that wait for their
	// turn. Both are of limited domains only.
	Today, Waiting int64
	// PausedUntil is until when mails wait since the domain asked for fewer; zero = they
	// do not.
	PausedUntil time.Time
}

// A MailPace is what limits mails beside the rate of their channel.
type MailPace struct {
	Domains []DomainPace
	// Unknown says that the workers' counts could not be read.
	Unknown bool
	Plan    []WarmUpDay
}

// None reports whether nothing limits mails.
func (p MailPace) None() bool { return len(p.Domains) == 0 && len(p.Plan) == 0 }
