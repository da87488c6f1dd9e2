package delivery

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/figure"
	"dropbell/domain/user"
)

const (
	// HeldOut is the variant of recipients who get no message.
	HeldOut = -1
	// Remaining is the variant of recipients who are not in the test of a [Copy], before the test
	// is decided.
	Remaining = -2
)

// The measures by which a [Test] is decided.
const (
	ByOpened  = "opened"  // recipients who followed a link, of the recipients who were sent to
	ByClaimed = "claimed" // recipients who got a coupon of the drop, of all recipients
	ByRevenue = "revenue" // the amount of orders paid with a coupon of the drop, per recipient
)

// TestMeasures returns every measure.
func TestMeasures() []string { return []string{ByOpened, ByClaimed, ByRevenue} }

// Limits of a test.
const (
	MaxTestShare   = 90           // percent
	MinTestMinutes = 10           //
	MaxTestMinutes = 14 * 24 * 60 // two weeks
)

// A Test sends two variants to a share of the recipients. The variant that wins is sent to the
// remaining recipients.
type Test struct {
	// Share is the percentage of the recipients who are in the test; held-out users are in no
	// share.
	Share int `json:"share"`
	// By is the measure that decides.
	By string `json:"by"`
	// Minutes is the time from the start of the campaign until the decision.
	Minutes int `json:"minutes"`
	// Early allows one earlier look, at half of the time; see package campaign.
	Early bool `json:"early,omitempty"`
	// Winner is the variant that won; nil until the test is decided.
	Winner *int `json:"winner,omitempty"`
}

// Lasts returns the time from the start of the campaign until the decision.
func (t Test) Lasts() time.Duration { return time.Duration(t.Minutes) * time.Minute }

// Same reports whether t and o are the same test, decided or not.
func (t *Test) Same(o *Test) bool {
	if t == nil || o == nil {
		return t == o
	}
	a, b := *t, *o
	a.Winner, b.Winner = nil, nil
	return a == b
}

func (t *Test) check(e *fault.Fields, variants int) {
	if t == nil {
		return
	}
	if variants != 2 {
		e.Add("test", "rule.test_versions", "needs two versions of the message")
	}
	if t.Share < 1 || t.Share > MaxTestShare {
		e.Add("test_share", "rule.share", "must be between %d and %d percent", 1, MaxTestShare)
	}
	if !slices.Contains(TestMeasures(), t.By) {
		e.Add("test_by", "rule.kind", "must be one of the choices")
	}
	if t.Minutes < MinTestMinutes || t.Minutes > MaxTestMinutes {
		e.Add("test_minutes", "rule.test_minutes", "must be between %d and %d minutes", MinTestMinutes, MaxTestMinutes)
	}
}

// Divided reports whether recipients may get different contents.
func (c Copy) Divided() bool { return len(c.Variants) > 1 || c.HoldOut > 0 }

// Groups returns the groups into which [Copy.Group] divides recipients. Groups that get no variant
// of the test come last.
func (c Copy) Groups() []int {
	var list []int
	for i := range c.Variants {
		list = append(list, i)
	}
	if c.Test != nil {
		list = append(list, Remaining)
	}
	if c.HoldOut > 0 {
		list = append(list, HeldOut)
	}
	return list
}

// Shares returns the intended share of each of [Copy.Groups] among all recipients, rounded as by
// [figure.Shares]. The percentages of variants apply to the recipients who are in the test, or to
// all who are not held out if there is no test.
func (c Copy) Shares() []int64 {
	var parts []int64
	tested := 100
	if c.Test != nil {
		tested = c.Test.Share
	}
	for _, v := range c.Variants {
		parts = append(parts, int64(v.Percent*tested*(100-c.HoldOut)))
	}
	if c.Test != nil {
		parts = append(parts, int64(100*(100-tested)*(100-c.HoldOut)))
	}
	if c.HoldOut > 0 {
		parts = append(parts, int64(10_000*c.HoldOut))
	}
	return figure.Shares(parts)
}

// Pick returns the index of the variant that user id gets in the message of owner, or [HeldOut].
// For users who are not in the test it is the variant that won, and [Remaining] before the decision.
// The variants of users who are in the test never change.
func (c Copy) Pick(owner int64, id user.ID) int {
	group := c.Group(owner, id)
	if group == Remaining && c.Test != nil && c.Test.Winner != nil {
		return *c.Test.Winner
	}
	return group
}

// MaxHoldOut is the greatest percentage of users who can be held out.
const MaxHoldOut = 90

// pointOf returns a number from 0 to 9999 for the user under the key. It is the same every time, and
// independent of the user's points under other keys.
func pointOf(key string, id user.ID) int {
	h := fnv.New64a()
	_, _ = h.Write([]byte(key + ":" + id.String())) // a hash never fails
	// FNV's low bits follow the last byte; folding the high half in spreads them.
	sum := h.Sum64()
	return int((sum ^ sum>>32) % 10000)
}

// heldOut reports whether a user with the point is among the held-out percentage.
func heldOut(point, percent int) bool { return point < percent*100 }

// HeldOutOfDrop reports whether the user is held out of the reminders of a drop that holds out this
// percentage. The answer is the same for all slots, channels and openings of the drop.
func HeldOutOfDrop(templateID int64, percent int, id user.ID) bool {
	return percent > 0 && heldOut(pointOf("drop:"+strconv.FormatInt(templateID, 10), id), percent)
}

// Group returns the group of user id in the message of owner: the index of a variant, [HeldOut], or
// [Remaining]. The result is the same every time, and independent of the user's groups in messages
// of other owners.
func (c Copy) Group(owner int64, id user.ID) int {
	if !c.Divided() {
		return 0
	}
	point := pointOf(strconv.FormatInt(owner, 10), id)
	if heldOut(point, c.HoldOut) {
		return HeldOut
	}
	point = (point - c.HoldOut*100) * 100 / (100 - c.HoldOut) // among the users who are not held out
	if c.Test != nil {
		// Of the share in the test as many points as of all users.
		if point = point * 100 / max(1, c.Test.Share); point >= 10000 {
			return Remaining
		}
	}
	for i, v := range c.Variants {
		if point -= v.Percent * 100; point < 0 {
			return i
		}
	}
	return len(c.Variants) - 1
}
