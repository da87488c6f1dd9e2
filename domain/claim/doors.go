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

// KnownMembers also tell what is in memory.
type KnownMembers interface {
	Members
	// Known returns the place of the user's door if it is known without reading anything, otherwise 0.
	Known(ctx context.Context, t *template.Template, by user.ID) int
}

// Doors is a [Gate] in front of another gate. It finds the door through which the user of a tap comes
// and refuses taps of users who come through none. The gate behind it judges the opening, the share and
// the limit of the door by its place. Claims of drops without doors pass.
type Doors struct {
	Gate      Gate
	Templates TemplateCache
	Members   KnownMembers
	Now       func() time.Time
	// Refused, if set, is called with each tap that was refused in a drop with doors: the place of the user's door, 0 =
	// the user comes through none or the door is not known, and the code of the refusal.
	Refused func(templateID int64, door int, code string)
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
	c, err := d.through(ctx, t, &r)
	if kind := fault.KindOf(err); d.Refused != nil && kind != 0 && kind != fault.Unavailable {
		place := r.Door
		if place == 0 && !errors.Is(err, ErrNotEligible) && !errors.Is(err, ErrCodeNeeded) {
			place = d.Members.Known(ctx, t, r.UserID)
		}
		d.Refused(t.ID, place, fault.CodeOf(err))
	}
	return c, err
}

// through finds the user's door and asks the gate.
func (d Doors) through(ctx context.Context, t *template.Template, r *Request) (c Claim, err error) {
	if t.ClaimMode != template.Gate && d.over(t) { // refused without knowing the door
		if c, err := d.Gate.Claim(ctx, *r); !errors.Is(err, errNoDoor) {
			return c, err
		}
	}
	if r.Door, err = d.Members.Door(ctx, t, r.UserID); err != nil {
		return Claim{}, err
	}
	c, err = d.Gate.Claim(ctx, *r)
	if errors.Is(err, ErrNotStarted) {
		err = ErrDoorNotOpen.Because("this drop opens for you at %s", t.OpensFor(r.Door).UTC().Format(time.RFC3339))
	}
	return c, err
}

// over reports whether no user gets a coupon.
func (d Doors) over(t *template.Template) bool {
	switch t.State(d.Now()) {
	case template.Draft, template.SoldOut, template.Closed, template.Cancelled:
		return true
	}
	return false
}
