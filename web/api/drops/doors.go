package drops

import (
	"context"
	"errors"
	"net/http"
	"time"

	"dropbell/domain/claim"
	"dropbell/domain/door"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// OwnDoor is the door through which the caller comes.
type OwnDoor struct {
	Eligible bool              `json:"eligible" doc:"Whether the drop opens for the user at all; if not, the fields after code_needed are absent." example:"true"`
	Code     bool              `json:"code_needed,omitempty" doc:"The drop opens for the user once the user enters an access code, with POST /access-codes." example:"false"`
	Name     string            `json:"name,omitempty" example:"Members"`
	OpensAt  *time.Time        `json:"opens_at,omitempty" doc:"When the user can claim from." example:"2027-01-01T11:00:00Z"`
	Limit    int               `json:"per_user_limit,omitempty" example:"1"`
	Weight   int               `json:"weight,omitempty" doc:"In a draw: how many chances the user's entry has." example:"1"`
	Texts    map[string]string `json:"texts,omitempty" doc:"A sentence for users, by language." example:"{\"en\":\"Members come first.\"}"`
}

// DoorWish is one door of a drop.
type DoorWish struct {
	Name        string            `json:"name" maxLength:"60" doc:"At most 60 characters; users see it." example:"Members"`
	Who         string            `json:"who" enum:"all,segment,list,codes" doc:"Who comes through it. A door for all is the last one. codes: users who enter an access code, which POST /admin/templates/{id}/codes makes." example:"segment"`
	SegmentID   string            `json:"segment_id,omitempty" pattern:"^[1-9][0-9]{0,18}$" doc:"The segment or list." example:"3"`
	LeadMinutes int               `json:"lead_minutes,omitempty" minimum:"0" maximum:"1440" doc:"How long before the drop it opens. The last door opens with the drop; no door opens before the door above it." example:"60"`
	Share       int64             `json:"share,omitempty" minimum:"0" doc:"How many coupons can be issued until the next door opens, besides those of the doors above; absent = all. Coupons left then go to the next door." example:"20"`
	UserLimit   int               `json:"user_limit,omitempty" minimum:"0" doc:"The limit per user; absent = the drop's, which it cannot exceed." example:"1"`
	Weight      int               `json:"weight,omitempty" minimum:"0" maximum:"10" doc:"In a draw: how many chances an entry through this door has; absent = 1. It is on the card of the draw." example:"1"`
	Texts       map[string]string `json:"texts,omitempty" doc:"A sentence for users, by language (en, zh-CN); at most 200 characters each." example:"{\"en\":\"Members come first.\"}"`
}

// DoorTestWish names a user to try the doors with.
type DoorTestWish struct {
	UserID string `json:"user_id" pattern:"^[1-9][0-9]{0,18}$" example:"1001"`
	Note   string `json:"note,omitempty" maxLength:"60" doc:"Who the user is." example:"Wang, gold"`
	Wants  int    `json:"wants,omitempty" minimum:"0" maximum:"4" doc:"The door that must let the user in, from 1; 0 = none may." example:"1"`
}

// DoorsWish are the doors of a drop in the order in which they are tried.
type DoorsWish struct {
	Doors  []DoorWish     `json:"doors" maxItems:"4" nullable:"false" doc:"None = all users can claim from the opening on."`
	Tests  []DoorTestWish `json:"tests,omitempty" maxItems:"10" nullable:"false" doc:"A drop with doors needs 3 to 10 to be published, all of them treated as wanted."`
	Reason string         `json:"reason,omitempty" maxLength:"500" doc:"Why, for the audit log."`
}

// Door is a door as staff see it.
type Door struct {
	DoorWish
	OpensAt  time.Time     `json:"opens_at" example:"2027-01-01T11:00:00Z"`
	FrozenAt *time.Time    `json:"frozen_at,omitempty" doc:"When its members were frozen: within a minute before it opened."`
	Frozen   int64         `json:"frozen_members,omitempty" doc:"How many members it had then." example:"1204"`
	Size     *DoorSize     `json:"size,omitempty" doc:"About how many users it is for now; absent if that could not be found out quickly."`
	Refused  []DoorRefusal `json:"refused" nullable:"false" doc:"Refused claims of its users, the most frequent refusal first. A refused claim that is repeated counts again."`
}

// DoorRefusal counts refused claims of users of a door.
type DoorRefusal struct {
	Code   string `json:"code" doc:"The code of the refusal." example:"sold_out"`
	Claims int64  `json:"claims" example:"1204"`
}

// DoorSize is about how many users a door is for.
type DoorSize struct {
	Members int64 `json:"members" doc:"Users of the group." example:"1204"`
	Come    int64 `json:"come" doc:"Of these, the users who come through this door and not through one above." example:"1204"`
	Exact   bool  `json:"exact" example:"true"`
}

// DoorTest is a user to try the doors with, and what came of it.
type DoorTest struct {
	DoorTestWish
	Gets  int  `json:"gets" doc:"The door that lets the user in now, from 1; 0 = none." example:"1"`
	Right bool `json:"right" doc:"Whether that is what was wanted." example:"true"`
}

// DoorPlan is the doors of a drop.
type DoorPlan struct {
	Doors []Door     `json:"doors" nullable:"false"`
	Tests []DoorTest `json:"tests" nullable:"false"`
	// Refused are those of users without a door.
	Refused []DoorRefusal `json:"refused" nullable:"false" doc:"Refused claims of users without a door, or whose door was not known."`
}

type doorAnswer = pipeline.Versioned[DoorPlan]

func (h *handlers) doorRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/doors", "get-doors", "Show the doors of a drop",
		pipeline.Route{Description: "Groups of users with openings of their own, tried in order, with their sizes and test persons.", Codes: []string{"template_not_found", "segment_not_found"}}), pipeline.ByID(h.doors))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodPut, "/admin/templates/{id}/doors", "put-doors", "Set the doors of a drop",
		pipeline.Route{Description: "Until the drop is published everything can change. Afterwards only the openings and texts of doors whose members are not frozen. One minute before a door opens its members are frozen; " +
			"users who are added later are judged one by one.",
			Codes:   []string{"template_not_found", "segment_not_found", "precondition_required", "stale_version", "invalid_transition", "doors_fixed"},
			Example: `{"doors":[{"name":"Everybody","who":"all"}]}`}), pipeline.Patching(h.putDoors))
}

func (h *handlers) doors(ctx context.Context, id int64) (*doorAnswer, error) {
	p, err := h.Doors.Plan(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return doorsJSON(p), nil
}

func (h *handlers) putDoors(ctx context.Context, id, version int64, in DoorsWish) (*doorAnswer, error) {
	doors, tests := make([]template.Door, len(in.Doors)), make([]door.Test, len(in.Tests))
	for i, d := range in.Doors {
		segmentID, err := pipeline.OptionalID("body.doors.segment_id", d.SegmentID)
		if err != nil {
			return nil, err
		}
		doors[i] = template.Door{Name: d.Name, Who: template.Who(d.Who), SegmentID: segmentID, LeadMinutes: d.LeadMinutes, Share: d.Share, Limit: d.UserLimit, Weight: d.Weight, Texts: d.Texts}
	}
	for i, test := range in.Tests {
		id, err := pipeline.ParseID("body.tests.user_id", test.UserID)
		if err != nil {
			return nil, err
		}
		tests[i] = door.Test{UserID: user.ID(id), Note: test.Note, Wants: test.Wants}
	}
	p, err := h.Doors.Save(ctx, pipeline.ActorOf(ctx), id, version, doors, tests, in.Reason)
	if err != nil {
		return nil, err
	}
	return doorsJSON(p), nil
}

func doorsJSON(p door.Plan) *doorAnswer {
	plan := DoorPlan{Doors: make([]Door, len(p.Template.Doors)), Tests: make([]DoorTest, len(p.Tests)), Refused: refusedJSON(p.Refused, 0)}
	for i, d := range p.Template.Doors {
		j := Door{DoorWish: DoorWish{Name: d.Name, Who: string(d.Who), LeadMinutes: d.LeadMinutes, Share: d.Share, UserLimit: d.Limit, Weight: d.Weight, Texts: d.Texts},
			OpensAt: p.Template.OpensFor(i + 1).UTC(), FrozenAt: pipeline.UTC(d.FrozenAt), Frozen: d.Members, Refused: refusedJSON(p.Refused, i+1)}
		if d.SegmentID != 0 {
			j.SegmentID = pipeline.Decimal(d.SegmentID)
		}
		if s := p.Sizes[i]; s.Known {
			j.Size = &DoorSize{s.Members, s.Come, s.Exact}
		}
		plan.Doors[i] = j
	}
	for i, test := range p.Tests {
		plan.Tests[i] = DoorTest{DoorTestWish{test.UserID.String(), test.Note, test.Wants}, test.Gets, test.Right()}
	}
	return pipeline.AtVersion(p.Template.Version, plan)
}

func refusedJSON(all []door.Refusal, place int) []DoorRefusal {
	list := []DoorRefusal{}
	for _, r := range all {
		if r.Door == place {
			list = append(list, DoorRefusal{r.Code, r.Claims})
		}
	}
	return list
}

// ownDoor returns the door of the caller; nil if the drop has no doors, or the caller is no user.
func (h *handlers) ownDoor(ctx context.Context, t template.Template) (*OwnDoor, error) {
	by := pipeline.UserOf(ctx)
	if by == 0 || len(t.Doors) == 0 {
		return nil, nil
	}
	place, err := h.DoorMembers.Door(ctx, &t, by)
	if needed := errors.Is(err, claim.ErrCodeNeeded); needed || errors.Is(err, claim.ErrNotEligible) {
		return &OwnDoor{Code: needed}, nil
	}
	if err != nil {
		return nil, err
	}
	at := t.OpensFor(place).UTC()
	own := &OwnDoor{Eligible: true, Name: t.Doors[place-1].Name, OpensAt: &at, Limit: t.LimitFor(place), Texts: t.Doors[place-1].Texts}
	if t.OpeningMode.Drawn() {
		own.Weight = t.Doors[place-1].Chances()
	}
	return own, nil
}
