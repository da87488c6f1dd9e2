package claimtest

import (
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
