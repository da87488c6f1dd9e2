package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"dropbell/domain/detach"
	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// A dress rehearsal is a door for a hundredth of the users, who come this many minutes before all others and share
// a hundredth of the stock: real providers and real phones.
const (
	DressLead  = 10
	dressParts = 100
	dressName  = "Early guests"
	// dressPage is how many users are read and stored at a time.
	dressPage = 10_000
)

// Refusals of dress rehearsals.
var (
	ErrDressState = fault.New(fault.Conflict, "dress_state", "a dress rehearsal is added to a draft whose coupons are claimed without a draw; plan it before you publish the drop")
	ErrDressed    = fault.New(fault.Conflict, "dress_there", "the drop has a dress rehearsal already; look at its doors")
	ErrDressDoors = fault.New(fault.Conflict, "dress_doors", "the drop has as many doors as it can have; remove one of them first")
	ErrDressUsers = fault.New(fault.Conflict, "dress_users", "there are too few customers for a dress rehearsal; it needs at least two in a hundredth of them")
)

// Guests reads the users of dress rehearsals.
type Guests interface {
	// Guests returns the next users after an id that belong to the hundredth of the drop, ascending.
	Guests(ctx context.Context, templateID int64, after user.ID, limit int) ([]user.ID, error)
	// Stranger returns a user who does not belong to it, 0 = there is none.
	Stranger(ctx context.Context, templateID int64) (user.ID, error)
}

// Lists makes lists of users.
type Lists interface {
	CreateSegment(ctx context.Context, s segment.Segment, requestKey string, e staff.Entry) (segment.Segment, error)
	// AddMembers adds ids, which are ascending.
	AddMembers(ctx context.Context, id int64, ids []user.ID) (added int64, err error)
}

// Dresses adds dress rehearsals to drops. All fields are required.
type Dresses struct {
	Doors  *door.Service
	Guests Guests
	Lists  Lists
}

// Add adds the door of a dress rehearsal to the draft, before its other doors, and test persons for it. A
// repetition makes no second list. It returns [ErrDressState], [ErrDressed], [ErrDressDoors], [ErrDressUsers], or a refusal of [door.Service.Save].
func (d *Dresses) Add(ctx context.Context, by staff.Actor, id int64) (door.Plan, error) {
	plan, err := d.Doors.Plan(ctx, by, id)
	if err != nil {
		return plan, err
	}
	t := plan.Template
	if err := by.May(staff.ManageTemplates, t.ShopNumber); err != nil {
		return plan, err
	}
	switch {
	case t.Stored != template.Draft || t.Obtain != template.ByClaim || t.OpeningMode.Drawn():
		return plan, ErrDressState
	case len(t.Doors) > 0 && t.Doors[0].Name == dressName:
		return plan, ErrDressed
	case len(t.Doors) == template.MaxDoors:
		return plan, ErrDressDoors
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	list, first, err := d.invite(ctx, by, t)
	if err != nil {
		return plan, err
	}
	doors, tests, err := d.withGuests(ctx, plan, list, first)
	if err != nil {
		return plan, err
	}
	return d.Doors.Save(ctx, by, id, t.Version, doors, tests, "dress rehearsal")
}

// invite stores the list of the guests, and returns its first two.
func (d *Dresses) invite(ctx context.Context, by staff.Actor, t template.Template) (list segment.Segment, first []user.ID, err error) {
	ids, err := d.Guests.Guests(ctx, t.ID, 0, dressPage)
	if err != nil {
		return list, nil, err
	}
	if len(ids) < 2 {
		return list, nil, ErrDressUsers
	}
	name := fmt.Sprintf("%s #%d", dressName, t.ID)
	list, err = d.Lists.CreateSegment(ctx, segment.Segment{Name: name, Kind: segment.ByList, Rule: segment.Everybody(), CreatedBy: by.Label + " " + by.Name}, "dress:"+strconv.FormatInt(t.ID, 10), staff.Entry{Actor: by, Action: "segment.create", ObjectKind: "segment", After: map[string]any{"name": name}})
	first = ids[:2]
	for err == nil && len(ids) > 0 {
		if _, err = d.Lists.AddMembers(ctx, list.ID, ids); err == nil {
			ids, err = d.Guests.Guests(ctx, t.ID, ids[len(ids)-1], dressPage)
		}
	}
	return list, first, err
}

// withGuests returns the doors of the plan behind that of the guests, with two guests and a stranger among the test persons.
func (d *Dresses) withGuests(ctx context.Context, plan door.Plan, list segment.Segment, first []user.ID) ([]template.Door, []door.Test, error) {
	t := plan.Template
	guests := template.Door{Name: dressName, Who: template.ToList, SegmentID: list.ID, LeadMinutes: min(template.MaxDoorLead, DressLead+int(t.OpensAt.Sub(t.FirstOpening()).Minutes())),
		Share: max(1, t.Stock/dressParts), Texts: map[string]string{"en": "You come ten minutes before everybody.", "zh-CN": "您可以提前十分钟进入。"}}
	doors := append([]template.Door{guests}, slices.Clone(t.Doors)...)
	var tests []door.Test
	for _, test := range plan.Tests {
		if test.Wants > 0 {
			test.Wants++
		}
		if !slices.Contains(first, test.UserID) {
			tests = append(tests, test)
		}
	}
	for _, id := range first {
		tests = append(tests, door.Test{UserID: id, Note: dressName, Wants: 1})
	}
	if len(t.Doors) == 0 {
		doors = append(doors, template.Door{Name: "Everybody", Who: template.ToAll})
		stranger, err := d.Guests.Stranger(ctx, t.ID)
		if err != nil {
			return nil, nil, err
		}
		if stranger != 0 {
			tests = append(tests, door.Test{UserID: stranger, Wants: 2})
		}
	}
	return doors, tests[max(0, len(tests)-door.MaxTests):], nil
}
