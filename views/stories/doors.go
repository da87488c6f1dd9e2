package stories

import (
	"maps"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
)

// doorPages are the pages about the doors of a drop.
func doorPages() []Story {
	t := coupon(1, "Moon cake night", 3*time.Hour)
	t.Doors = []template.Door{{Name: "Gold members", Who: template.ToSegment, SegmentID: 3, LeadMinutes: 60, Share: 200, Texts: map[string]string{"en": "Members come first."}},
		{Name: "Chengdu", Who: template.ToList, SegmentID: 4, LeadMinutes: 30}, {Name: "Invited", Who: template.ToCodes, LeadMinutes: 30}, {Name: "Everybody", Who: template.ToAll}}
	for i, share := range []int{214, 98, 40, 648} {
		t.Doors[i].Booked = &share
	}
	groups := map[int64]segment.Segment{3: {ID: 3, Name: "Gold", Kind: segment.ByRules}, 4: {ID: 4, Name: "Guests in Chengdu", Kind: segment.ByList}}
	plan := door.Plan{Template: t, Groups: groups, Tests: []door.Test{{UserID: 1001, Note: "Wang, gold", Wants: 1, Gets: 1}, {UserID: 1002, Note: "new", Wants: 0, Gets: 3},
		{UserID: 1003, Note: "Li, Chengdu", Wants: 2, Gets: 2}}, Sizes: []door.Size{{Members: 1204, Come: 1204, Exact: true, Known: true}, {Members: 3100, Come: 3100, Known: true}, {}, {Members: 52_000, Come: 47_696, Known: true}}}
	values := map[string]string{"version": "1"}
	for i, d := range t.Doors {
		values[droppages.DoorField(i, "name")] = d.Name
	}
	values[droppages.DoorField(0, "who")], values[droppages.DoorField(1, "who")], values[droppages.DoorField(2, "who")], values[droppages.DoorField(3, "who")] = "segment:3", "list:4", "codes", "all"
	values[droppages.DoorField(0, "lead_minutes")], values[droppages.DoorField(1, "lead_minutes")], values[droppages.DoorField(2, "lead_minutes")] = "60", "30", "30"
	list := []segment.Segment{groups[3], groups[4]}
	empty := coupon(2, "Lunch", 3*time.Hour)
	empty.Stored = template.Draft
	live := t
	live.OpensAt, live.ClosesAt = Now().Add(25*time.Minute), Now().Add(4*time.Hour)
	drawn := empty
	drawn.OpeningMode = template.ByDraw
	weights := maps.Clone(values)
	weights[droppages.DoorField(0, "weight")], weights[droppages.DoorField(1, "weight")], weights[droppages.DoorField(2, "weight")] = "3", "2", "1"
	return []Story{
		{Name: "doors/board", Page: droppages.Template{Drop: droppages.Drop{Template: t, Board: board(t, 41_203)}, Tab: droppages.TabReminders, Channels: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.SMS), Growth: growth(41_203)}.Page()},
		{Name: "doors/cockpit", Page: watched(cockpit(live, 41_203, false)).Page()},
		{Name: "doors/weights", Page: droppages.Doors{Plan: door.Plan{Template: drawn}, Segments: list, Values: weights}.Page()},
		{Name: "doors/empty", Page: droppages.Doors{Plan: door.Plan{Template: empty}, Segments: list, Values: map[string]string{"version": "1"}}.Page()},
		{Name: "doors/published", Page: droppages.Doors{Plan: plan, Segments: list, Values: values}.Page()},
		{Name: "doors/refused", Page: droppages.Doors{Plan: door.Plan{Template: empty}, Segments: list, Values: values,
			Errors: []fault.Field{{Name: droppages.DoorField(0, "share"), Key: "rule.door_shares", Message: "leaves nothing"}}}.Page()},
	}
}
