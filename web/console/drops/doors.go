package drops

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"dropbell/domain/door"
	"dropbell/domain/fault"
	"dropbell/domain/segment"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// mostDoorSegments is how many segments, the last changed first, the form about doors names.
const mostDoorSegments = 100

// doorFields are the fields of a door in the form.
var doorFields = []string{"name", "who", "lead_minutes", "share", "user_limit", "weight", "texts.en", "texts.zh-CN"}

// showDoors shows the doors of a drop and the form that changes them.
func (h *handlers) showDoors(w http.ResponseWriter, r *http.Request, id int64) error {
	plan, err := h.Doors.Plan(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	return h.drawDoors(w, r, http.StatusOK, droppages.Doors{Plan: plan, Values: valuesOfDoors(plan)})
}

func (h *handlers) drawDoors(w http.ResponseWriter, r *http.Request, status int, p droppages.Doors) error {
	list, err := h.Segments.Segments(r.Context(), shell.Actor(r), segment.Query{Limit: mostDoorSegments})
	if err != nil {
		return err
	}
	p.Segments = list
	for _, d := range p.Plan.Template.Doors { // segments that have not changed for long
		g, named := p.Plan.Groups[d.SegmentID]
		if named && !slices.ContainsFunc(list, func(other segment.Segment) bool { return other.ID == g.ID }) {
			p.Segments = append(p.Segments, g)
		}
	}
	return h.Show(w, r, status, p.Page())
}

// valuesOfDoors are the values of the form for what is stored.
func valuesOfDoors(p door.Plan) map[string]string {
	v := map[string]string{"version": strconv.FormatInt(p.Template.Version, 10)}
	for i, d := range p.Template.Doors {
		who := string(d.Who)
		if d.SegmentID != 0 {
			who += ":" + strconv.FormatInt(d.SegmentID, 10)
		}
		for name, value := range map[string]string{"name": d.Name, "who": who, "lead_minutes": strconv.Itoa(d.LeadMinutes), "share": positive(d.Share),
			"user_limit": positive(int64(d.Limit)), "weight": strconv.Itoa(d.Chances()), "texts.en": d.Texts["en"], "texts.zh-CN": d.Texts["zh-CN"]} {
			v[droppages.DoorField(i, name)] = value
		}
	}
	for i, test := range p.Tests {
		v[droppages.TestField(i, "user_id")], v[droppages.TestField(i, "note")], v[droppages.TestField(i, "wants")] = test.UserID.String(), test.Note, strconv.Itoa(test.Wants)
	}
	return v
}

func positive(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// saveDoors saves the doors, or, with the field move, shows the form with a door moved.
func (h *handlers) saveDoors(w http.ResponseWriter, r *http.Request, id int64) error {
	plan, err := h.Doors.Plan(r.Context(), shell.Actor(r), id)
	if err != nil {
		return err
	}
	p := droppages.Doors{Plan: plan, Values: map[string]string{"version": r.PostFormValue("version")}}
	for i := range template.MaxDoors {
		for _, name := range doorFields {
			p.Values[droppages.DoorField(i, name)] = strings.TrimSpace(r.PostFormValue(droppages.DoorField(i, name)))
		}
	}
	for i := range door.MaxTests {
		for _, name := range []string{"user_id", "note", "wants"} {
			p.Values[droppages.TestField(i, name)] = strings.TrimSpace(r.PostFormValue(droppages.TestField(i, name)))
		}
	}
	if move := r.PostFormValue("move"); move != "" {
		moveDoor(p.Values, move)
		return h.drawDoors(w, r, http.StatusOK, p)
	}
	rd := &shell.Reading{Values: p.Values}
	doors, tests := readDoors(rd), readDoorTests(rd)
	version := rd.Number("version")
	if p.Errors = rd.Broken.List; len(p.Errors) > 0 {
		return h.drawDoors(w, r, http.StatusUnprocessableEntity, p)
	}
	_, err = h.Doors.Save(r.Context(), shell.Actor(r), id, version, doors, tests, "")
	if p.Errors = shell.FieldsOf(err); len(p.Errors) > 0 {
		for i := range p.Errors {
			p.Errors[i].Name = strings.Replace(p.Errors[i].Name, ".segment_id", ".who", 1)
		}
		return h.drawDoors(w, r, http.StatusUnprocessableEntity, p)
	}
	if fault.KindOf(err) == fault.Conflict {
		p.Error = ui.FaultText(r.Context(), err)
		return h.drawDoors(w, r, http.StatusConflict, p)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/templates/"+strconv.FormatInt(id, 10)+"/doors", ui.Good, shell.Say(r, "doors.saved"))
}

// moveDoor moves a door to another place of the form: "1:up" and "1:down" move the second door by one place, "1:3" moves it
// to the place of the fourth. Tests keep their doors.
func moveDoor(v map[string]string, move string) {
	text, way, _ := strings.Cut(move, ":")
	from, err := strconv.Atoi(text)
	to := from
	switch way {
	case "up":
		to--
	case "down":
		to++
	default:
		if err == nil {
			to, err = strconv.Atoi(way)
		}
	}
	if err != nil || min(from, to) < 0 || max(from, to) >= template.MaxDoors {
		return
	}
	for ; from < to; from++ {
		exchangeDoors(v, from)
	}
	for ; from > to; from-- {
		exchangeDoors(v, from-1)
	}
}

// exchangeDoors exchanges the values of a door and the door below it.
func exchangeDoors(v map[string]string, i int) {
	for _, name := range doorFields {
		a, b := droppages.DoorField(i, name), droppages.DoorField(i+1, name)
		v[a], v[b] = v[b], v[a]
	}
	first, second := strconv.Itoa(i+1), strconv.Itoa(i+2)
	for n := range door.MaxTests {
		switch name := droppages.TestField(n, "wants"); v[name] {
		case first:
			v[name] = second
		case second:
			v[name] = first
		}
	}
}

// readDoors reads the doors; those without name and group are left out.
func readDoors(rd *shell.Reading) (doors []template.Door) {
	for i := range template.MaxDoors {
		at := func(name string) string { return droppages.DoorField(i, name) }
		who, name := rd.Values[at("who")], rd.Values[at("name")]
		if who == "" && name == "" {
			continue
		}
		d := template.Door{Name: name, Who: template.Who(who), LeadMinutes: int(whole(rd, at("lead_minutes"))), Share: whole(rd, at("share")),
			Limit: int(whole(rd, at("user_limit"))), Weight: int(whole(rd, at("weight"))), Texts: map[string]string{}}
		if kind, id, named := strings.Cut(who, ":"); named {
			d.Who = template.Who(kind)
			d.SegmentID, _ = strconv.ParseInt(id, 10, 64)
		}
		for _, language := range []string{"en", "zh-CN"} {
			if text := rd.Values[at("texts."+language)]; text != "" {
				d.Texts[language] = text
			}
		}
		doors = append(doors, d)
	}
	return doors
}

func readDoorTests(rd *shell.Reading) (tests []door.Test) {
	for i := range door.MaxTests {
		at := func(name string) string { return droppages.TestField(i, name) }
		if rd.Values[at("user_id")] == "" && rd.Values[at("note")] == "" {
			continue
		}
		id, err := user.ParseID(rd.Values[at("user_id")])
		if err != nil {
			rd.Broken.Add(at("user_id"), "rule.user_id", "must be the id of a user")
		}
		tests = append(tests, door.Test{UserID: id, Note: rd.Values[at("note")], Wants: int(whole(rd, at("wants")))})
	}
	return tests
}

// whole reads a number that may be left out, which is 0.
func whole(rd *shell.Reading, name string) int64 {
	if rd.Values[name] == "" {
		return 0
	}
	return rd.Number(name)
}
