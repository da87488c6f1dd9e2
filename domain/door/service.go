package door

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// Limits of tests.
const (
	MaxTests = 10
	MinTests = 3 // to publish
	MaxNote  = 60
)

// ErrTests is the refusal to publish a drop whose doors do not treat a test person as staff expect.
var ErrTests = fault.New(fault.Conflict, "door_tests", "the doors of the drop do not treat a test person as expected; look at the tests of its doors")

// A Test is a user whom staff name to try the doors with.
type Test struct {
	UserID user.ID
	Note   string // who the user is, such as "Wang, gold, Chengdu"
	// Wants is the place of the door that must let the user in, 0 = none may. Gets is the place of the door
	// that does.
	Wants, Gets int
}

// Right reports whether the doors treat the user as staff expect.
func (t Test) Right() bool { return t.Wants == t.Gets }

// A Size is about how many users a door is for.
type Size struct {
	// Members is how many users belong to the group. Come is how many of them come through the door; the
	// others come through a door above it.
	Members, Come int64
	Exact         bool
	// Known is false if a number could not be found out quickly.
	Known bool
}

// A Refusal counts refused claims of users of one door.
type Refusal struct {
	Door   int // its place, 0 = users without a door, or whose door was not known
	Code   string
	Claims int64
}

// A Counter counts refused claims.
type Counter interface {
	// DoorRefusals returns the refused claims of the drop by door, and of each door the most frequent refusal first.
	DoorRefusals(ctx context.Context, templateID int64) ([]Refusal, error)
}

// Sum returns how many claims of users of the door were refused.
func Sum(list []Refusal, place int) (n int64) {
	for _, r := range list {
		if r.Door == place {
			n += r.Claims
		}
	}
	return n
}

// A Plan is the doors of a drop with what staff want to know about them.
type Plan struct {
	Template template.Template
	Tests    []Test
	Sizes    []Size // one per door
	// Groups has the segments and lists that the doors name. Those of a drop that is over may be deleted.
	Groups map[int64]segment.Segment
	// Refused are the refused claims so far.
	Refused []Refusal
}

// Store keeps doors.
type Store interface {
	Counter
	// SaveDoors stores the doors of t and the tests if the stored version is t's, otherwise it returns
	// [fault.ErrStale]. It returns the template as it is then.
	SaveDoors(ctx context.Context, t template.Template, tests []Test, e staff.Entry) (template.Template, error)
	// DoorTests returns the tests of the drop without what they get, by user.
	DoorTests(ctx context.Context, templateID int64) ([]Test, error)
}

// Segments reads segments.
type Segments interface {
	// Segment returns [segment.ErrNotFound] if there is none.
	Segment(ctx context.Context, id int64) (segment.Segment, error)
	EstimateRule(ctx context.Context, r segment.Rule) (segment.Estimate, error)
}

// Service holds the use cases of staff about doors. All fields are required.
type Service struct {
	Store     Store
	Templates *template.Service
	Members   MemberStore
	Segments  Segments
	Now       func() time.Time
}

// Plan returns the doors of the drop with their sizes and tests. It returns [template.ErrNotFound] or
// [staff.ErrForbidden].
func (s *Service) Plan(ctx context.Context, by staff.Actor, id int64) (Plan, error) {
	t, err := s.Templates.Template(ctx, by, id)
	if err != nil {
		return Plan{}, err
	}
	return s.plan(ctx, t)
}

func (s *Service) plan(ctx context.Context, t template.Template) (Plan, error) {
	p := Plan{Template: t, Groups: map[int64]segment.Segment{}}
	tests, err := s.judged(ctx, t.ID)
	if err != nil {
		return p, err
	}
	p.Tests = tests
	if p.Refused, err = s.Refused(ctx, t); err != nil {
		return p, err
	}
	for _, d := range t.Doors {
		if d.SegmentID != 0 {
			g, err := s.Segments.Segment(ctx, d.SegmentID)
			if err == nil {
				p.Groups[g.ID] = g
			} else if !errors.Is(err, segment.ErrNotFound) {
				return p, err
			}
		}
	}
	for i := range t.Doors {
		p.Sizes = append(p.Sizes, s.size(ctx, p, i))
	}
	return p, nil
}

// Refused returns the refused claims of a drop with doors.
func (s *Service) Refused(ctx context.Context, t template.Template) ([]Refusal, error) {
	if len(t.Doors) == 0 || t.Stored == template.Draft {
		return nil, nil
	}
	return s.Store.DoorRefusals(ctx, t.ID)
}

// judged returns the tests with what they get.
func (s *Service) judged(ctx context.Context, id int64) ([]Test, error) {
	tests, err := s.Store.DoorTests(ctx, id)
	for i := range tests {
		if err == nil {
			tests[i].Gets, err = s.Members.Judge(ctx, id, tests[i].UserID)
		}
	}
	return tests, err
}

// size estimates one door. A list has as many members as ids; how many of them come through another door is not
// known.
func (s *Service) size(ctx context.Context, p Plan, i int) Size {
	d := p.Template.Doors[i]
	if g := p.Groups[d.SegmentID]; d.Who == template.ToList {
		if g.Members == nil {
			return Size{}
		}
		return Size{Members: *g.Members, Come: *g.Members, Exact: i == 0, Known: true}
	}
	if d.Who == template.ToCodes {
		return Size{} // users enter their codes later
	}
	above, lists := segment.Rule{Match: segment.None}, int64(0)
	for _, other := range p.Template.Doors[:i] {
		if other.Who == template.ToSegment {
			above.Rules = append(above.Rules, p.Groups[other.SegmentID].Rule)
		} else if n := p.Groups[other.SegmentID].Members; n != nil {
			lists += *n
		}
	}
	own := segment.Everybody()
	if d.Who == template.ToSegment {
		own = p.Groups[d.SegmentID].Rule
	}
	all, err := s.Segments.EstimateRule(ctx, own)
	if err != nil {
		return Size{}
	}
	rest, err := all, error(nil)
	if len(above.Rules) > 0 {
		if rest, err = s.Segments.EstimateRule(ctx, segment.Rule{Match: segment.All, Rules: []segment.Rule{own, above}}); err != nil {
			return Size{}
		}
	}
	if d.Who == template.ToAll {
		rest.Members = max(0, rest.Members-lists)
	}
	return Size{Members: all.Members, Come: rest.Members, Exact: all.Exact && rest.Exact && lists == 0, Known: true}
}

// Save replaces the doors and the tests of the drop, and returns them as [Service.Plan] does. The version is that of
// the template which the form showed. Until publication everything can be changed, and no doors mean that all users
// may claim from the opening on. After it only the openings and sentences of doors that are not frozen can be
// changed. It returns a [fault.Fields], [template.ErrDoorsFixed], [fault.ErrStale], [template.ErrTransition] or
// [staff.ErrForbidden].
func (s *Service) Save(ctx context.Context, by staff.Actor, id, version int64, doors []template.Door, tests []Test, reason string) (Plan, error) {
	old, err := s.Templates.Template(ctx, by, id)
	if err != nil {
		return Plan{}, err
	}
	if err := by.May(staff.ManageTemplates, old.ShopNumber); err != nil {
		return Plan{}, err
	}
	if old.Version != version {
		return Plan{}, fault.ErrStale
	}
	next := old
	if next.Doors, err = s.changed(old, doors); err != nil {
		return Plan{}, err
	}
	if err := s.check(ctx, next, tests); err != nil {
		return Plan{}, err
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	saved, err := s.Store.SaveDoors(ctx, next, tests, staff.Entry{Actor: by, Action: "template.doors", ObjectKind: "template", ObjectID: strconv.FormatInt(id, 10),
		ShopNumber: old.ShopNumber, Reason: reason, Before: shown(old.Doors), After: shown(next.Doors)})
	if err != nil {
		return Plan{}, err
	}
	return s.plan(ctx, saved)
}

// changed returns the doors to be stored: as asked for a draft, otherwise the old doors with the openings and
// sentences that were asked for.
func (s *Service) changed(old template.Template, asked []template.Door) ([]template.Door, error) {
	now := s.Now()
	if old.Stored == template.Draft {
		doors := slices.Clone(asked)
		for i := range doors {
			doors[i].FrozenAt, doors[i].Members = nil, 0
		}
		return doors, nil
	}
	if err := old.Allows(template.Closing, now); err != nil { // it is over
		return nil, err
	}
	if len(asked) != len(old.Doors) {
		return nil, template.ErrDoorsFixed
	}
	next := old
	next.Doors = slices.Clone(old.Doors)
	for i, d := range asked {
		o := old.Doors[i]
		moved := d.LeadMinutes != o.LeadMinutes
		if d.Name != o.Name || d.Who != o.Who || d.SegmentID != o.SegmentID || d.Share != o.Share || d.Limit != o.Limit || d.Chances() != o.Chances() {
			return nil, template.ErrDoorsFixed
		}
		if !moved && maps.Equal(d.Texts, o.Texts) {
			continue
		}
		next.Doors[i].LeadMinutes, next.Doors[i].Texts = d.LeadMinutes, d.Texts
		if moved && (o.FrozenAt != nil || old.OpensFor(i+1).Before(now.Add(template.FreezeBefore))) {
			return nil, template.ErrDoorsFixed
		}
		if moved && next.OpensFor(i+1).Before(now.Add(template.FreezeBefore)) {
			e := &fault.Fields{}
			e.Add(fmt.Sprintf("doors[%d].lead_minutes", i), "rule.door_soon", "must be less: the door would open in less than a minute, and its members are frozen before")
			return nil, e
		}
	}
	return next.Doors, nil
}

func (s *Service) check(ctx context.Context, t template.Template, tests []Test) error {
	e := &fault.Fields{}
	if err, ok := errors.AsType[*fault.Fields](template.CheckDoors(t.Spec, t.Doors)); ok {
		e = err
	}
	for i, d := range t.Doors {
		if d.SegmentID == 0 {
			continue
		}
		g, err := s.Segments.Segment(ctx, d.SegmentID)
		if err != nil && !errors.Is(err, segment.ErrNotFound) {
			return err
		}
		if err != nil || (g.Kind == segment.ByList) != (d.Who == template.ToList) {
			e.Add(fmt.Sprintf("doors[%d].segment_id", i), "rule.door_group", "is not there; choose a segment or list")
		}
	}
	if len(tests) > MaxTests {
		e.Add("tests", "rule.too_many", "must have at most %d entries", MaxTests)
	}
	seen := map[user.ID]bool{}
	for i, test := range tests {
		at := func(name string) string { return fmt.Sprintf("tests[%d].%s", i, name) }
		switch {
		case test.UserID <= 0:
			e.Add(at("user_id"), "rule.user_id", "must be the id of a user")
		case seen[test.UserID]:
			e.Add(at("user_id"), "rule.door_test_twice", "is named above already")
		}
		seen[test.UserID] = true
		if test.Wants < 0 || test.Wants > len(t.Doors) {
			e.Add(at("wants"), "rule.door_test_wants", "must be a door of the drop, or none")
		}
		template.CheckText(e, at("note"), test.Note, 0, MaxNote)
	}
	return e.Err()
}

// Ready returns nil if the doors of the drop treat all test persons as staff expect, otherwise [ErrTests]. Drops
// without doors are ready.
func (s *Service) Ready(ctx context.Context, t template.Template) error {
	if len(t.Doors) == 0 {
		return nil
	}
	tests, err := s.judged(ctx, t.ID)
	if err != nil {
		return err
	}
	if len(tests) < MinTests {
		return ErrTests.Because("the doors need at least %d test persons; name them on the page of the doors", MinTests).Told("fault.door_tests_few")
	}
	for _, test := range tests {
		if !test.Right() {
			return ErrTests.Because("test person %q comes through door %d and was expected at %d (0 = none); correct the doors or the test",
				test.UserID.String(), test.Gets, test.Wants).Told("fault.door_tests_red")
		}
	}
	return nil
}

// shown is what the audit log keeps.
func shown(doors []template.Door) any {
	if len(doors) == 0 {
		return nil
	}
	list := map[string]string{}
	for i, d := range doors {
		list[fmt.Sprintf("door %d", i+1)] = fmt.Sprintf("%s: %s %d, %d min before, share %d, limit %d, weight %d", d.Name, d.Who, d.SegmentID, d.LeadMinutes, d.Share, d.Limit, d.Chances())
	}
	return list
}
