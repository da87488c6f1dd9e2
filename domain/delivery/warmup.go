package delivery

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"
)

// A WarmUp is a plan for a sender that receiving servers do not know yet: the number of mails on
// the first day, and the factor by which the number grows each day. The zero value limits
// nothing.
type WarmUp struct {
	// Start is the first day, at midnight UTC.
	Start  time.Time
	First  int64
	Factor float64
}

// warmUpMost is the number of mails per day from which a plan is over: receiving servers accept
// any number from then on.
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

// Most returns how many mails may be sent on the day (UTC) of now; 0 = any number, because there
// is no plan or the plan is over. Before the first day the number of the first day applies.
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
	// Most is how many mails may be sent on the day, Sent how many were sent.
	Most, Sent int64
	Today      bool
}

// Days returns the days of the plan, from before days before the day of now to behind days after
// it. Days before the first day, except today, and days on which the plan is over are left out.
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

// A DomainPace is the limit for mails to one domain of recipients.
type DomainPace struct {
	Domain string
	// PerSecond is the limit, 0 = none.
	PerSecond int
	// Today is the number of mails sent on this day (UTC), Waiting the number of mails that are
	// kept back. Both count mails to limited domains only.
	Today, Waiting int64
	// PausedUntil is the end of the pause that the domain requested; zero = there is no pause.
	PausedUntil time.Time
}

// A MailPace is all limits for mails other than the rate of their channel.
type MailPace struct {
	Domains []DomainPace
	// Unknown says that the workers' counts could not be read.
	Unknown bool
	Plan    []WarmUpDay
}

// None reports whether nothing limits mails.
func (p MailPace) None() bool { return len(p.Domains) == 0 && len(p.Plan) == 0 }
