package template

import (
	"fmt"
	"slices"
	"time"

	"dropbell/domain/fault"
)

// Limits of doors.
const (
	MaxDoors    = 4
	MaxDoorName = 60
	MaxDoorText = 200
	MaxDoorLead = 24 * 60 // minutes
	// MaxDoorWeight is the greatest weight of an entry in a draw.
	MaxDoorWeight = 10
	// FreezeBefore is how long before a door opens its members are frozen.
	FreezeBefore = time.Minute
)

// Who is the rule that selects the users of a door.
type Who string

// The groups of users.
const (
	ToAll     Who = "all"
	ToSegment Who = "segment" // by the rules of a segment
	ToList    Who = "list"    // by a list of ids
	ToCodes   Who = "codes"   // users who have entered an access code of the drop
)

// A Door is a group of users with an opening of its own. The doors of a drop are tried in order: a
// user comes through the first door whose group the user belongs to.
type Door struct {
	Name string `json:"name"`
	Who  Who    `json:"who"`
	// SegmentID is the segment or list; 0 = all users, or users with an access code.
	SegmentID int64 `json:"segment_id,omitempty"`
	// LeadMinutes is how long before the drop the door opens.
	LeadMinutes int `json:"lead_minutes"`
	// Share is how many coupons may be issued through this door and those before it, in addition to
	// their shares, until the next door opens; 0 = all coupons left. Coupons not issued by then go
	// to the next door.
	Share int64 `json:"share,omitempty"`
	// Limit is the limit per user, 0 = the drop's.
	Limit int `json:"user_limit,omitempty"`
	// Weight is the weight in a draw of entries through this door, 1 to [MaxDoorWeight]; 0 = 1.
	Weight int `json:"weight,omitempty"`
	// Texts is a sentence for users, by language.
	Texts map[string]string `json:"texts,omitempty"`
	// FrozenAt is when the members were frozen, nil = not yet. Members is their number then.
	FrozenAt *time.Time `json:"frozen_at,omitempty"`
	Members  int64      `json:"members,omitempty"`
	// Booked and Claimed are about how many thousandths of the users with a reservation, and of those with
	// a coupon that was claimed, come through the door; nil = not estimated yet.
	Booked  *int `json:"booked_share,omitempty"`
	Claimed *int `json:"claimed_share,omitempty"`
}

// ErrDoorsFixed is the refusal to change the groups of doors that were announced.
var ErrDoorsFixed = fault.New(fault.Conflict, "doors_fixed", "the drop is published: only the openings and sentences of doors that are not frozen can be changed").Told("fault.doors_fixed")

// A DoorSet is a set of doors of a drop by their places.
type DoorSet uint8

// AllDoors stands for all users of a drop, with or without doors.
const AllDoors DoorSet = 0

// Has reports whether users of the door with this place belong to s; see [Template.OpensFor].
func (s DoorSet) Has(place int) bool { return s == AllDoors || place > 0 && s&(1<<(place-1)) != 0 }

// A DoorOpening is an instant at which a drop opens, and the doors that open then.
type DoorOpening struct {
	At    time.Time
	Doors DoorSet
}

// Openings returns the instants at which the drop opens, earliest first. It is a single one, with
// [AllDoors], for drops without doors, and for drops whose doors open together and let all users in.
func (t *Template) Openings() []DoorOpening {
	var list []DoorOpening
	for i := range t.Doors {
		at := t.OpensFor(i + 1)
		if len(list) == 0 || !list[len(list)-1].At.Equal(at) {
			list = append(list, DoorOpening{At: at})
		}
		list[len(list)-1].Doors |= 1 << i
	}
	if len(list) == 0 || len(list) == 1 && t.Doors[len(t.Doors)-1].Who == ToAll {
		return []DoorOpening{{t.OpensAt, AllDoors}}
	}
	return list
}

// OpensOn reports whether the drop or one of its doors opens at the instant.
func (t *Template) OpensOn(at time.Time) bool {
	return slices.ContainsFunc(t.Openings(), func(o DoorOpening) bool { return o.At.Equal(at) })
}

// CheckDoors returns a [fault.Fields] that names every rule that doors of a drop with the spec break,
// by places such as doors[0].name; nil if there is none.
func CheckDoors(s Spec, doors []Door) error {
	e := &fault.Fields{}
	if len(doors) > MaxDoors {
		e.Add("doors", "rule.doors_many", "must be at most %d", MaxDoors)
		return e
	}
	if len(doors) > 0 && s.Obtain != ByClaim {
		e.Add("doors", "rule.doors_obtain", "need a drop whose coupons are obtained by claim: redeem codes are given to users one by one already")
	}
	shares := int64(0)
	for i, d := range doors {
		at := func(name string) string { return fmt.Sprintf("doors[%d].%s", i, name) }
		last := i == len(doors)-1
		checkText(e, at("name"), d.Name, 1, MaxDoorName)
		for other := range i {
			if doors[other].Name == d.Name && d.Name != "" {
				e.Add(at("name"), "rule.door_name_taken", "is the name of another door of the drop")
			}
		}
		d.checkWho(e, at, last)
		if d.Who == ToCodes && slices.ContainsFunc(doors[:i], func(o Door) bool { return o.Who == ToCodes }) {
			e.Add(at("who"), "rule.door_codes_twice", "must be another group: one door of a drop takes access codes")
		}
		switch {
		case d.LeadMinutes < 0 || d.LeadMinutes > MaxDoorLead:
			e.Add(at("lead_minutes"), "rule.door_lead", "must be between %d and %d minutes", 0, MaxDoorLead)
		case last && d.LeadMinutes != 0:
			e.Add(at("lead_minutes"), "rule.door_last_lead", "must be 0: the last door opens with the drop")
		case i > 0 && d.LeadMinutes > doors[i-1].LeadMinutes:
			e.Add(at("lead_minutes"), "rule.door_order", "must not open before the door above it")
		}
		switch shares += max(0, d.Share); {
		case d.Share < 0 || d.Share > MaxStock:
			e.Add(at("share"), "rule.door_share", "must be between %d and %d coupons", 0, MaxStock)
		case last && d.Share != 0:
			e.Add(at("share"), "rule.door_last_share", "must be empty: the last door gets all coupons that are left")
		case d.Share > 0 && shares >= s.Stock:
			e.Add(at("share"), "rule.door_shares", "leaves nothing: the shares must be less than the stock together")
		}
		d.checkDraw(e, at, s.OpeningMode.Drawn())
		if d.Limit < 0 || d.Limit > s.PerUserLimit {
			e.Add(at("user_limit"), "rule.door_limit", "must not exceed the drop's limit of %d per user", s.PerUserLimit)
		}
		for language, text := range d.Texts {
			checkText(e, at("texts."+language), text, 0, MaxDoorText)
		}
	}
	return e.Err()
}

// Chances returns the weight of an entry through the door.
func (d Door) Chances() int { return max(1, d.Weight) }

// checkDraw adds the broken rules about draws: all doors of a draw share the window of entries and the stock, and
// only entries of draws have weights.
func (d Door) checkDraw(e *fault.Fields, at func(string) string, drawn bool) {
	switch {
	case !drawn && d.Weight > 1:
		e.Add(at("weight"), "rule.door_weight_draw", "must be 1: only entries of a draw have a weight")
	case d.Weight < 0 || d.Weight > MaxDoorWeight:
		e.Add(at("weight"), "rule.door_weight", "must be between %d and %d", 1, MaxDoorWeight)
	}
	if drawn && d.LeadMinutes != 0 {
		e.Add(at("lead_minutes"), "rule.door_draw_lead", "must be 0 in a draw: entries of all doors have the same time")
	}
	if drawn && d.Share != 0 {
		e.Add(at("share"), "rule.door_draw_share", "must be empty in a draw: give the door a weight instead")
	}
}

func (d Door) checkWho(e *fault.Fields, at func(string) string, last bool) {
	switch d.Who {
	case ToAll:
		if !last {
			e.Add(at("who"), "rule.door_all_last", "must be a group: a door for all users leaves no user to the doors below")
		}
	case ToCodes:
	case ToSegment, ToList:
		if d.SegmentID <= 0 {
			e.Add(at("segment_id"), "rule.required", "is required")
		}
	default:
		e.Add(at("who"), "rule.door_who", "must be all, segment, list or codes")
	}
}

// CheckDoorsAhead returns a [fault.Fields] unless there is time to freeze the members of the first door
// before it opens. The doors of a draw decide who enters, not who claims, so they need no time.
func (t Template) CheckDoorsAhead(now time.Time) error {
	e := &fault.Fields{}
	if first := t.FirstOpening(); len(t.Doors) > 0 && !t.OpeningMode.Drawn() && first.Before(now.Add(FreezeBefore)) {
		e.Add("opens_at", "rule.door_ahead", "must be later: the first door opens at %q, and doors must be at least a minute ahead", first.UTC().Format(time.RFC3339))
	}
	return e.Err()
}

// TakesAccessCodes reports whether a door of the drop is for users with an access code.
func (t *Template) TakesAccessCodes() bool {
	return slices.ContainsFunc(t.Doors, func(d Door) bool { return d.Who == ToCodes })
}

// OpensFor returns when the drop opens for users of the door with this place, counted from 1; 0 = users
// of a drop without doors.
func (t *Template) OpensFor(place int) time.Time {
	if place < 1 || place > len(t.Doors) {
		return t.OpensAt
	}
	return t.OpensAt.Add(-time.Duration(t.Doors[place-1].LeadMinutes) * time.Minute)
}

// FirstOpening returns the opening of the first door, or of a drop without doors.
func (t *Template) FirstOpening() time.Time { return t.OpensFor(1) }

// LimitFor returns the limit per user of the door with this place; see [Template.OpensFor].
func (t *Template) LimitFor(place int) int {
	if place < 1 || place > len(t.Doors) || t.Doors[place-1].Limit == 0 {
		return t.PerUserLimit
	}
	return t.Doors[place-1].Limit
}

// SellableAt returns how many coupons may be issued by claims at an instant: the shares of the doors that
// are open together, or the stock. It never becomes less with time.
func (t *Template) SellableAt(now time.Time) int64 {
	sum := t.DoorBase
	for i, d := range t.Doors {
		if i > 0 && now.Before(t.OpensFor(i+1)) {
			return min(sum, t.Stock)
		}
		if d.Share == 0 {
			break
		}
		sum += d.Share
	}
	return t.Stock
}

// SharesOpen returns how many doors after the first have opened with a share of their own, so how often
// [Template.SellableAt] has grown since the first opening.
func (t *Template) SharesOpen(now time.Time) (n int) {
	for n+1 < len(t.Doors) && t.Doors[n].Share > 0 && !now.Before(t.OpensFor(n+2)) {
		n++
	}
	return n
}

// NextShare returns the next instant after now at which [Template.SellableAt] changes; false if there is none.
func (t *Template) NextShare(now time.Time) (at time.Time, ok bool) {
	for i := range t.Doors {
		if at = t.OpensFor(i + 1); at.After(now) {
			return at, true
		}
	}
	return time.Time{}, false
}
