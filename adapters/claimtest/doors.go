package claimtest

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// doors: a tap is judged by the opening, the share and the limit of the user's door. What a door does not sell goes
// to the next door when that opens, and doors that are moved open earlier.
func doors(t *testing.T, h Harness) {
	opens := time.Now().UTC().Truncate(time.Second).Add(10 * time.Minute)
	drop := h.Open(10, 2, func(s *template.Spec) { s.OpensAt, s.ClosesAt = opens, opens.Add(time.Hour) })
	set := func(partners, everybody int) {
		h.Doors(drop.ID, []template.Door{
			{Name: "Members", Who: template.ToSegment, LeadMinutes: 20, Share: 4, Limit: 1},
			{Name: "Partners", Who: template.ToList, LeadMinutes: partners, Share: 2},
			{Name: "Everybody", Who: template.ToAll, LeadMinutes: everybody},
		})
	}
	through := func(door int, by user.ID, want error) {
		t.Helper()
		r := Tap(drop, by, "")
		r.Door = door
		claims(t, h, r, want)
	}
	set(5, 0)
	through(1, 1, nil)
	through(1, 1, claim.ErrLimit) // of the door, not of the drop
	through(2, 2, claim.ErrNotStarted)
	through(3, 3, claim.ErrNotStarted)
	through(1, 4, nil)
	set(20, 0) // the second door is open now, with what the first did not sell
	for by := range user.ID(2) {
		through(2, 10+by, nil)
		through(2, 10+by, nil)
	}
	through(1, 5, claim.ErrSoldOut)
	through(2, 12, claim.ErrSoldOut)
	through(3, 3, claim.ErrNotStarted)
	set(20, 20)
	for by := range user.ID(4) {
		through(3, 20+by, nil)
	}
	through(1, 5, claim.ErrSoldOut)
	Holds(t, h, drop.ID, 10, 2)
}

// households: the users of a household get as many coupons as one household may have, in any interleaving. A coupon counts
// for the household of its user's first coupon of the drop.
func households(t *testing.T, h Harness) {
	const crowd, most = 12, 3
	drop := h.Open(1000, 2, func(s *template.Spec) { s.HouseholdLimit = most })
	free := h.Open(1000, 2, nil)
	for by := range user.ID(crowd) {
		h.Household(1+by, "aaaaaaaaaaaaaaaa")
	}
	h.Household(50, "bbbbbbbbbbbbbbbb")
	won, claimed := 0, map[user.ID]int{}
	for _, r := range rush(t, h, 4*crowd, func(i int) claim.Request { return Tap(drop, user.ID(1+i%crowd), "") }) {
		switch {
		case r.err == nil:
			won++
			claimed[r.asked.UserID]++
		case !errors.Is(r.err, claim.ErrHousehold) && !errors.Is(r.err, claim.ErrLimit):
			t.Errorf("user %d: %v", r.asked.UserID, r.err)
		}
	}
	if won != most {
		t.Errorf("the household got %d coupons, want %d", won, most)
	}
	Holds(t, h, drop.ID, most, 2)
	owner, other := user.ID(0), user.ID(0)
	for by := range user.ID(crowd) {
		if claimed[1+by] == 1 {
			owner = 1 + by
		} else if claimed[1+by] == 0 {
			other = 1 + by
		}
	}
	claims(t, h, Tap(drop, other, ""), claim.ErrHousehold)
	claims(t, h, Tap(drop, 50, ""), nil) // of another household
	claims(t, h, Tap(drop, 60, ""), nil) // of none
	claims(t, h, Tap(drop, 60, ""), nil)
	claims(t, h, Tap(drop, 60, ""), claim.ErrLimit)
	claims(t, h, Tap(free, other, ""), nil) // another drop counts no households
	Holds(t, h, drop.ID, most+3, 2)
	if owner != 0 {
		h.Household(owner, "bbbbbbbbbbbbbbbb")
		claims(t, h, Tap(drop, owner, ""), claim.ErrHousehold)
	}
	h.Household(other, "bbbbbbbbbbbbbbbb")
	claims(t, h, Tap(drop, other, ""), nil)
	Holds(t, h, drop.ID, most+4, 2)
}
