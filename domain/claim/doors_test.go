package claim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// placed are the doors of users; the door of user 9 is known to a read alone.
type placed map[user.ID]int

func (p placed) Door(_ context.Context, _ *template.Template, by user.ID) (int, error) {
	if p[by] == 0 {
		return 0, claim.ErrNotEligible
	}
	return p[by], nil
}

func (p placed) Known(_ context.Context, _ *template.Template, by user.ID) int {
	if by == 9 {
		return 0
	}
	return p[by]
}

type one struct{ *template.Template }

func (o one) Shared(context.Context, int64) (*template.Template, error)  { return o.Template, nil }
func (o one) Current(context.Context, int64) (*template.Template, error) { return o.Template, nil }
func (one) Forget(int64)                                                 {}

// answers refuses with the error.
type answers struct{ err error }

func (a answers) Claim(context.Context, claim.Request) (claim.Claim, error) {
	return claim.Claim{}, a.err
}

// TestRefusedClaimsAreCountedByDoor: a refused tap counts for the door of its user, also where a sold-out drop is refused
// before the door is looked up. Failures and drops without doors do not count.
func TestRefusedClaimsAreCountedByDoor(t *testing.T) {
	now := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	drop := template.Template{ID: 1, Stored: template.Published, Spec: template.Spec{Stock: 10, OpensAt: now, ClosesAt: now.Add(time.Hour)},
		Doors: []template.Door{{Name: "Members", Who: template.ToList}, {Name: "All", Who: template.ToAll}}}
	var told []string
	ask := func(by user.ID, answer error) {
		d := claim.Doors{Gate: answers{answer}, Templates: one{&drop}, Members: placed{1: 1, 2: 2, 9: 1}, Now: func() time.Time { return now },
			Refused: func(id int64, door int, code string) { told = append(told, fmt.Sprintf("%d %d %s", id, door, code)) }}
		if _, err := d.Claim(t.Context(), claim.Request{TemplateID: 1, UserID: by, Origin: claim.ByTap}); (err == nil) != (answer == nil) && !errors.Is(err, claim.ErrNotEligible) {
			t.Errorf("user %d: %v", by, err)
		}
	}
	ask(1, claim.ErrLimit)
	ask(2, claim.ErrNotStarted)
	ask(3, nil)
	ask(1, nil)
	ask(1, claim.ErrOverloaded)
	drop.Issued = 10
	ask(2, claim.ErrSoldOut)
	ask(9, claim.ErrSoldOut)
	drop.Doors = nil
	ask(1, claim.ErrSoldOut)
	if want := []string{"1 1 limit_reached", "1 2 door_not_open", "1 0 not_eligible", "1 2 sold_out", "1 0 sold_out"}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}
