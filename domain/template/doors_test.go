package template_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/template"
)

func doored(doors ...template.Door) template.Template {
	t := template.Template{Spec: validSpec(), Doors: doors}
	t.Stock, t.PerUserLimit, t.Obtain = 100, 2, template.ByClaim
	return t
}

func members() template.Door {
	return template.Door{Name: "Members", Who: template.ToSegment, SegmentID: 3, LeadMinutes: 60, Share: 20, Limit: 1}
}

func list() template.Door {
	return template.Door{Name: "Partners", Who: template.ToList, SegmentID: 4, LeadMinutes: 30, Share: 10}
}

func everybody() template.Door { return template.Door{Name: "Everybody", Who: template.ToAll} }

// Each broken rule is named by its place; doors that break none pass.
func TestRulesOfDoors(t *testing.T) {
	change := func(i int, do func(*template.Door)) []template.Door {
		doors := []template.Door{members(), list(), everybody()}
		do(&doors[i])
		return doors
	}
	for _, c := range []struct {
		place string
		doors []template.Door
	}{
		{"", []template.Door{members(), list(), everybody()}},
		{"", []template.Door{everybody()}},
		{"", nil},
		{"doors", []template.Door{members(), members(), members(), members(), everybody()}},
		{"doors[0].name", change(0, func(d *template.Door) { d.Name = " " })},
		{"doors[1].name", change(1, func(d *template.Door) { d.Name = "Members" })},
		{"doors[0].who", change(0, func(d *template.Door) { d.Who = "friends" })},
		{"doors[0].who", change(0, func(d *template.Door) { d.Who = template.ToAll })},
		{"doors[1].segment_id", change(1, func(d *template.Door) { d.SegmentID = 0 })},
		{"doors[0].lead_minutes", change(0, func(d *template.Door) { d.LeadMinutes = 1441 })},
		{"doors[1].lead_minutes", change(1, func(d *template.Door) { d.LeadMinutes = 61 })},
		{"doors[2].lead_minutes", change(2, func(d *template.Door) { d.LeadMinutes = 1 })},
		{"doors[2].share", change(2, func(d *template.Door) { d.Share = 1 })},
		{"doors[1].share", change(1, func(d *template.Door) { d.Share = 80 })},
		{"doors[0].share", change(0, func(d *template.Door) { d.Share = -1 })},
		{"doors[0].user_limit", change(0, func(d *template.Door) { d.Limit = 3 })},
	} {
		err := template.CheckDoors(doored().Spec, c.doors)
		broken, _ := errors.AsType[*fault.Fields](err)
		if c.place == "" {
			if err != nil {
				t.Errorf("%d doors: %v", len(c.doors), err)
			}
			continue
		}
		if broken == nil || !slices.ContainsFunc(broken.List, func(f fault.Field) bool { return f.Name == c.place }) {
			t.Errorf("%s is not refused: %v", c.place, err)
		}
	}
	s := doored().Spec
	s.Obtain = template.ByCode
	if template.CheckDoors(s, []template.Door{everybody()}) == nil {
		t.Error("doors of a drop by codes are accepted")
	}
}

// The openings, limits and shares of doors follow from the drop's opening.
func TestTermsOfDoors(t *testing.T) {
	drop := doored(members(), list(), everybody())
	drop.DoorBase = 5
	at := func(minutes int) time.Time { return drop.OpensAt.Add(time.Duration(minutes) * time.Minute) }
	for place, want := range []int{0, -60, -30, 0, 0} {
		if got := drop.OpensFor(place); !got.Equal(at(want)) {
			t.Errorf("door %d opens at %v, want %v", place, got, at(want))
		}
	}
	for place, want := range []int{2, 1, 2, 2} {
		if got := drop.LimitFor(place); got != want {
			t.Errorf("limit of door %d: %d, want %d", place, got, want)
		}
	}
	for _, c := range []struct {
		minutes int
		want    int64
	}{{-90, 25}, {-60, 25}, {-31, 25}, {-30, 35}, {-1, 35}, {0, 100}, {60, 100}} {
		if got := drop.SellableAt(at(c.minutes)); got != c.want {
			t.Errorf("%d minutes: %d coupons, want %d", c.minutes, got, c.want)
		}
	}
	if next, ok := drop.NextShare(at(-45)); !ok || !next.Equal(at(-30)) {
		t.Errorf("the next share is at %v, %v", next, ok)
	}
	if _, ok := drop.NextShare(at(0)); ok {
		t.Error("a share comes after the last door")
	}
	drop.Doors[1].Share = 0
	if got := drop.SellableAt(at(-30)); got != 100 {
		t.Errorf("a door without a share sells %d", got)
	}
	plain := doored()
	if plain.SellableAt(at(-90)) != 100 || !plain.FirstOpening().Equal(plain.OpensAt) || plain.LimitFor(0) != 2 {
		t.Error("a drop without doors differs")
	}
}

// A drop with doors is published a minute before its first door opens at the latest, and its opening cannot move
// once that door is open.
func TestLifeOfADropWithDoors(t *testing.T) {
	drop := doored(members(), everybody())
	drop.Stored = template.Draft
	first := drop.FirstOpening()
	if _, err := drop.Publish(first.Add(-59 * time.Second)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("published less than a minute before the first door: %v", err)
	}
	published, err := drop.Publish(first.Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	moved := published.Spec
	moved.OpensAt = moved.OpensAt.Add(time.Minute)
	if _, err := published.Edit(moved, first); !errors.Is(err, template.ErrNotMovable) {
		t.Errorf("moved after the first door opened: %v", err)
	}
	if _, err := published.Cancel(first); !errors.Is(err, template.ErrTransition) {
		t.Errorf("cancelled after the first door opened: %v", err)
	}
	if _, err := published.Edit(moved, first.Add(-time.Second)); err != nil {
		t.Errorf("not moved before: %v", err)
	}
}

func TestOpenings(t *testing.T) {
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name  string
		last  template.Who
		leads []int
		want  map[int]template.DoorSet // by minutes before the drop
	}{
		{"no doors", "", nil, map[int]template.DoorSet{0: template.AllDoors}},
		{"all together", template.ToAll, []int{0, 0, 0}, map[int]template.DoorSet{0: template.AllDoors}},
		{"all together, not for all users", template.ToList, []int{0, 0}, map[int]template.DoorSet{0: 3}},
		{"two together", template.ToAll, []int{30, 30, 0}, map[int]template.DoorSet{30: 3, 0: 4}},
		{"each alone", template.ToAll, []int{60, 30, 0}, map[int]template.DoorSet{60: 1, 30: 2, 0: 4}},
	} {
		d := template.Template{Spec: template.Spec{OpensAt: at}}
		for _, lead := range c.leads {
			d.Doors = append(d.Doors, template.Door{Who: template.ToSegment, LeadMinutes: lead})
		}
		if len(d.Doors) > 0 {
			d.Doors[len(d.Doors)-1].Who = c.last
		}
		got := d.Openings()
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", c.name, got)
		}
		for i, o := range got {
			if doors, ok := c.want[int(at.Sub(o.At).Minutes())]; !ok || o.Doors != doors || i > 0 && !got[i-1].At.Before(o.At) {
				t.Errorf("%s: %+v", c.name, got)
			}
		}
	}
	if s := template.DoorSet(5); !s.Has(1) || s.Has(2) || !s.Has(3) || s.Has(0) || !template.AllDoors.Has(0) {
		t.Error("a set of the first and the third door")
	}
}
