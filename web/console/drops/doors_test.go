package drops_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A marketer divides a drop among two groups, moves a door without a script, corrects a test person that comes
// through another door than expected, and publishes. Members who may only look see no form.
func TestDoorsOfADrop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	g.Exec(`insert into users (id, attributes) values (1, '{"tier": "gold"}'), (2, '{}'), (3, '{}')`)
	gold, err := g.Stores.Segments.CreateSegment(t.Context(), segment.Segment{Name: "Gold", Kind: segment.ByRules, Rule: segment.Rule{Condition: segment.Condition{Field: segment.Attribute, Name: "tier", Op: segment.Is, Values: []string{"gold"}}}},
		"", staff.Entry{Actor: staff.System(), Action: "segment.create", ObjectKind: "segment"})
	g.Must(err)
	draft := g.Draft(10, 48*time.Hour)
	page := shell.TemplateURL(draft.ID)
	doors := page + "/doors"
	b := g.As(staff.Marketer)
	b.Get(page).Is(200).Has(doors)
	form := b.Get(doors).Is(200).Has("Doors", "Segment: Gold").Form(doors)
	form.Set("doors[0].name", "Everybody")
	form.Set("doors[0].who", "all")
	form.Set("doors[1].name", "Gold members")
	form.Set("doors[1].who", fmt.Sprintf("segment:%d", gold.ID))
	form.Set("doors[1].lead_minutes", "60")
	form.Set("doors[1].share", "10")
	for i, user := range []string{"1", "2", "3"} {
		form.Set(fmt.Sprintf("tests[%d].user_id", i), user)
		form.Set(fmt.Sprintf("tests[%d].wants", i), "1")
	}
	b.Post(doors, form).Is(422).Has("leaves no customer to the doors below")
	form.Set("move", "1:up")
	form = b.Post(doors, form).Is(200).Form(doors)
	if form.Get("doors[0].name") != "Gold members" || form.Get("doors[1].name") != "Everybody" || form.Get("doors[0].lead_minutes") != "60" || form.Get("tests[0].wants") != "2" {
		t.Fatalf("moved: %v", form)
	}
	for _, dragged := range []string{"0:3", "3:0"} { // as the script does
		form.Set("move", dragged)
		form = b.Post(doors, form).Is(200).Form(doors)
	}
	if form.Get("doors[0].name") != "Gold members" || form.Get("doors[1].name") != "Everybody" {
		t.Fatalf("dragged: %v", form)
	}
	form.Set("tests[0].wants", "1")
	form.Set("tests[1].wants", "1")
	b.Post(doors, form).To(doors)
	b.Get(doors).Is(200).Has("Test persons", "1. Gold members", "2. Everybody")
	b.Post(page+"/delete", url.Values{"version": {b.Get(page + "/delete").Is(200).Field("version")}}).To("/templates")
	b.Post(page+"/restore", nil).To(page)
	b.Get(doors).Is(200).Has("1. Gold members", "2. Everybody")
	publish := url.Values{"version": {b.Get(page + "/publish").Is(200).Field("version")}}
	b.Post(page+"/publish", publish).Is(409).Has("Test person 2 comes through door 2 and was expected at door 1")
	form = b.Get(doors).Is(200).Form(doors)
	form.Set("tests[1].wants", "2")
	stale := b.Get(doors).Is(200).Form(doors)
	b.Post(doors, form).To(doors)
	b.Post(doors, stale).Is(409)
	publish.Set("version", b.Get(page+"/publish").Is(200).Field("version"))
	b.Post(page+"/publish", publish).To(page)
	form = b.Get(doors).Is(200).Form(doors)
	form.Set("doors[0].share", "20")
	b.Post(doors, form).Is(409).Has("The drop is published")
	form.Set("doors[0].share", "10")
	form.Set("doors[0].lead_minutes", "90")
	b.Post(doors, form).To(doors)
	now, err := g.Templates.Template(t.Context(), staff.System(), draft.ID)
	g.Must(err)
	if len(now.Doors) != 2 || now.Doors[0].LeadMinutes != 90 || now.Doors[0].SegmentID != gold.ID || now.Doors[0].Share != 10 {
		t.Errorf("stored: %+v", now.Doors)
	}
	b.Get(page + "/users/1").Is(200).Has("The door “Gold members” opens for this customer")
	b.Get(page + "/users/2").Is(200).Has("The door “Everybody” opens for this customer")
	g.As(staff.Viewer).Get(doors).Is(200).Has("Gold members").HasNot(`name="doors[0].name"`)
	g.As(staff.Viewer).Post(doors, form).Is(403)
}
