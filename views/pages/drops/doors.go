package drops

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/views/ui"
)

// Doors is the form about the doors of a drop. A field has the name that the API's errors give it, such as
// doors[0].name.
type Doors struct {
	Plan     door.Plan
	Segments []segment.Segment // that can be chosen
	Values   map[string]string
	Errors   []fault.Field
	Error    string
}

// DoorField is the name of a field of the door with this index, TestField of a test.
func DoorField(i int, name string) string { return fmt.Sprintf("doors[%d].%s", i, name) }

// TestField is the name of a field of the test with this index.
func TestField(i int, name string) string { return fmt.Sprintf("tests[%d].%s", i, name) }

// Tests returns how many rows of tests the form has.
func (p Doors) Tests() int { return min(door.MaxTests, max(door.MinTests, len(p.Plan.Tests)+1)) }

func (p Doors) path() string { return fmt.Sprintf("/templates/%d/doors", p.Plan.Template.ID) }

func (p Doors) published() bool { return p.Plan.Template.Stored != template.Draft }

// dragged are the attributes of a door that can be moved.
func (p Doors) dragged(i int) templ.Attributes {
	if p.published() {
		return nil
	}
	return templ.Attributes{"data-door": strconv.Itoa(i)}
}

// rows returns how many doors the form has: after publication none is added.
func (p Doors) rows() int {
	if p.published() {
		return len(p.Plan.Template.Doors)
	}
	return template.MaxDoors
}

// movable reports whether the opening of the stored door may change.
func (p Doors) movable(ctx context.Context, i int) bool {
	t := p.Plan.Template
	return !p.published() || t.Doors[i].FrozenAt == nil && t.OpensFor(i+1).Sub(ui.From(ctx).Now) > template.FreezeBefore
}

// drawn reports whether a draw decides, whose doors have a weight in place of an opening, a share and a limit.
func (p Doors) drawn() bool { return p.Plan.Template.OpeningMode.Drawn() }

// lead is the key of the sentence that says what doors are.
func (p Doors) lead() string {
	if p.drawn() {
		return "doors.lead_draw"
	}
	return "doors.lead"
}

func (p Doors) whoOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "", Label: ui.T(ctx, "doors.no_door")}, {Value: "all", Label: ui.T(ctx, "doors.all")}, {Value: "codes", Label: ui.T(ctx, "doors.codes")}}
	for _, g := range p.Segments {
		list = append(list, ui.Option{Value: WhoValue(g), Label: ui.T(ctx, "doors.kind."+string(g.Kind), g.Name)})
	}
	return list
}

// WhoValue is the value by which the form names a segment or list.
func WhoValue(g segment.Segment) string {
	if g.Kind == segment.ByList {
		return "list:" + strconv.FormatInt(g.ID, 10)
	}
	return "segment:" + strconv.FormatInt(g.ID, 10)
}

func (p Doors) wantsOptions(ctx context.Context) []ui.Option {
	list := []ui.Option{{Value: "0", Label: ui.T(ctx, "doors.refused")}}
	for i := range p.rows() {
		list = append(list, ui.Option{Value: strconv.Itoa(i + 1), Label: p.doorName(ctx, i+1)})
	}
	return list
}

// doorName names a door by its place and, if it has one, its name; 0 = none.
func (p Doors) doorName(ctx context.Context, place int) string {
	if place == 0 {
		return ui.T(ctx, "doors.refused")
	}
	if place <= len(p.Plan.Template.Doors) {
		return ui.T(ctx, "doors.named", place, p.Plan.Template.Doors[place-1].Name)
	}
	return ui.T(ctx, "doors.place", place)
}

// doorShades are the colours of the doors in the bar.
var doorShades = []string{"bar-sent", "bar-inflight", "bar-skipped", "bar-expired"}

// doorPart is a door's part of the bar, in thousandths.
type doorPart struct {
	place      int
	from, wide float64
}

func (p Doors) parts() (list []doorPart) {
	sum := int64(0)
	for _, s := range p.Plan.Sizes {
		sum += s.Come
	}
	if sum == 0 {
		return nil
	}
	from := 0.0
	for i, s := range p.Plan.Sizes {
		wide := float64(s.Come) / float64(sum) * 1000
		list = append(list, doorPart{i + 1, from, wide})
		from += wide
	}
	return list
}

func barNumber(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) }

// sizeText says how many users come through the door.
func (p Doors) sizeText(ctx context.Context, i int) string {
	s := p.Plan.Sizes[i]
	switch {
	case !s.Known:
		return ui.T(ctx, "doors.size_unknown")
	case s.Members != s.Come:
		return ui.T(ctx, "doors.size_overlap", roughly(ctx, s.Come, s.Exact), roughly(ctx, s.Members, s.Exact), roughly(ctx, s.Members-s.Come, s.Exact))
	}
	return ui.T(ctx, "doors.size", roughly(ctx, s.Come, s.Exact))
}

func roughly(ctx context.Context, n int64, exact bool) string {
	if exact {
		return ui.From(ctx).Locale.Number(n)
	}
	return ui.T(ctx, "doors.about", ui.From(ctx).Locale.Number(n))
}

// doorShares says which parts of the reservations and coupons the door's users have; "" = not known.
func doorShares(ctx context.Context, d template.Door) string {
	var told []string
	for _, of := range []struct {
		key   string
		share *int
	}{{"doors.booked", d.Booked}, {"doors.claimed", d.Claimed}} {
		if of.share != nil {
			told = append(told, ui.T(ctx, of.key, ui.From(ctx).Locale.Percent(int64(*of.share), 1000)))
		}
	}
	return strings.Join(told, " · ")
}

// label names a field in the summary of errors.
func (p Doors) label(ctx context.Context, name string) string {
	for i := range template.MaxDoors {
		for _, field := range []string{"name", "who", "lead_minutes", "share", "user_limit", "weight", "texts.en", "texts.zh-CN"} {
			if name == DoorField(i, field) {
				return ui.T(ctx, "doors.field_of", i+1, ui.T(ctx, "doors.field."+field))
			}
		}
	}
	for i := range door.MaxTests {
		for _, field := range []string{"user_id", "note", "wants"} {
			if name == TestField(i, field) {
				return ui.T(ctx, "doors.test_field_of", i+1, ui.T(ctx, "doors.field."+field))
			}
		}
	}
	return ui.T(ctx, "doors.title")
}

// groupName names the users of the door.
func (p Doors) groupName(ctx context.Context, d template.Door) string {
	if g, known := p.Plan.Groups[d.SegmentID]; known {
		return ui.T(ctx, "doors.kind."+string(g.Kind), g.Name)
	}
	if d.Who == template.ToCodes {
		return ui.T(ctx, "doors.codes")
	}
	if d.Who != template.ToAll {
		return ui.T(ctx, "doors.gone")
	}
	return ui.T(ctx, "doors.all")
}

// refusedDoor names the door of refused claims; place 0 are users without a door.
func refusedDoor(ctx context.Context, t template.Template, place int) string {
	if place == 0 {
		return ui.T(ctx, "doors.refused_elsewhere")
	}
	return ui.T(ctx, "doors.named", place, t.Doors[place-1].Name)
}

// refusalReasons says why claims of the door's users were refused, with the number of each reason.
func refusalReasons(ctx context.Context, list []door.Refusal, place int) string {
	locale := ui.From(ctx).Locale
	var told []string
	for _, r := range list {
		if r.Door != place {
			continue
		}
		reason := r.Code
		if key := "doors.refusal." + r.Code; locale.Has(key) {
			reason = locale.T(key)
		}
		told = append(told, reason+" "+locale.Number(r.Claims))
	}
	return strings.Join(told, " · ")
}
