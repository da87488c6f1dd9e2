package claim

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Refusals of drops with doors.
var (
	ErrNotEligible = fault.New(fault.Conflict, "not_eligible", "this drop is for other users; GET /templates/{id} says for whom")
	// ErrCodeNeeded is for users who come through no door of a drop that takes access codes.
	ErrCodeNeeded = fault.New(fault.Conflict, "code_needed", "this drop opens with an access code; enter your code first")
	// ErrDoorNotOpen names the instant in its text.
	ErrDoorNotOpen = fault.New(fault.Conflict, "door_not_open", "this drop has not opened for you yet; claim at the opens_at of your door")
	// errNoDoor is the answer to a tap of a drop with doors that did not pass [Doors].
	errNoDoor = fault.Distinct(ErrOverloaded.Because("the door of this user is not known yet; try again"))
)

// Members know the members of doors.
type Members interface {
	// Door returns the place of the door that the user comes through, from 1. It returns
	// [ErrNotEligible] or [ErrCodeNeeded] if there is none.
	Door(ctx context.Context, t *template.Template, by user.ID) (int, error)
}

// Doors is a [Gate] in front of another gate. It finds the door through which the user of a tap comes
// and refuses taps of users who come through none. The gate behind it judges the opening, the share and
// the limit of the door by its place. Claims of drops without doors pass.
type Doors struct {
	Gate      Gate
	Templates TemplateCache
	Members   Members
	Now       func() time.Time
}

// Claim is part of [Gate].
func (d Doors) Claim(ctx context.Context, r Request) (Claim, error) {
	if r.Origin != ByTap {
		return d.Gate.Claim(ctx, r)
	}
	t, err := d.Templates.Shared(ctx, r.TemplateID)
	if err != nil || len(t.Doors) == 0 {
		return d.Gate.Claim(ctx, r)
	}
	if t.ClaimMode != template.Gate && d.over(t) { // refused without knowing the door
		if c, err := d.Gate.Claim(ctx, r); !errors.Is(err, errNoDoor) {
			return c, err
		}
	}
	if r.Door, err = d.Members.Door(ctx, t, r.UserID); err != nil {
		return Claim{}, err
	}
	c, err := d.Gate.Claim(ctx, r)
	if errors.Is(err, ErrNotStarted) {
		err = ErrDoorNotOpen.Because("this drop opens for you at %s", t.OpensFor(r.Door).UTC().Format(time.RFC3339))
	}
	return c, err
}

// over reports whether nobody gets a coupon.
func (d Doors) over(t *template.Template) bool {
	switch t.State(d.Now()) {
	case template.Draft, template.SoldOut, template.Closed, template.Cancelled:
		return true
	}
	return false
}
