package api_test

import (
	"strings"
	"testing"
	"time"

	ical "github.com/arran4/golang-ical"

	"dropbell/web/api"
)

// TestOpeningInACalendar: one event with its alarms, which follows the drop.
func TestOpeningInACalendar(t *testing.T) {
	r := newFixture(t, func(d *api.Deps) { d.PublicURL = "https://drops.example.com/shop" })
	id := r.drop(2 * time.Hour)
	r.exec(`update templates set name = E'Tea, cake; "more" ' || repeat('券', 40), description = E'line one\nBEGIN:VEVENT\r\nEND:VCALENDAR' where id = ` + id)
	at := "/templates/" + id + "/opening.ics"
	read := func(path string) (*ical.VEvent, string) {
		t.Helper()
		a := r.want(r.call(nil, "GET", path, nil), 200, "")
		if kind := a.Header().Get("Content-Type"); kind != "text/calendar; charset=utf-8" {
			t.Errorf("it is %s", kind)
		}
		for line := range strings.Lines(a.Body.String()) {
			if len(strings.TrimRight(line, "\r\n")) > 75 || !strings.HasSuffix(line, "\r\n") {
				t.Errorf("a line of %d bytes: %q", len(line), line)
			}
		}
		c, err := ical.ParseCalendar(strings.NewReader(a.Body.String()))
		if err != nil || len(c.Events()) != 1 {
			t.Fatalf("%v in %s", err, a.Body)
		}
		return c.Events()[0], a.Body.String()
	}
	e, text := read(at)
	if e.Id() != "drop-"+id+"@drops.example.com" || strings.Contains(text, "METHOD") {
		t.Errorf("the event is %s, of %s", e.Id(), text)
	}
	start, err := e.GetStartAt()
	r.must(err)
	var opens time.Time
	r.must(r.sql.QueryRow(t.Context(), `select opens_at from templates where id = `+id).Scan(&opens))
	if !start.Equal(opens.Truncate(time.Second)) || !strings.Contains(e.GetProperty(ical.ComponentPropertySummary).Value, "券券") || len(e.Alarms()) != 1 {
		t.Errorf("the event is %s", e.Serialize(&ical.SerializationConfiguration{NewLine: "\n", MaxLength: 75, PropertyMaxLength: 75}))
	}
	again, _ := read(at + "?minutes=10,30,10")
	if alarms := again.Alarms(); len(alarms) != 2 || alarms[0].GetProperty(ical.ComponentPropertyTrigger).Value != "-PT10M" || again.Id() != e.Id() {
		t.Errorf("alarms: %v", alarms)
	}
	r.want(r.call(r.admin(), "POST", "/admin/templates/"+id+"/cancel", `{"reason":"why"}`), 200, "")
	cancelled, _ := read(at)
	before, after := e.GetProperty(ical.ComponentPropertySequence).Value, cancelled.GetProperty(ical.ComponentPropertySequence).Value
	if cancelled.GetProperty(ical.ComponentPropertyStatus).Value != "CANCELLED" || len(cancelled.Alarms()) != 0 || before == after {
		t.Errorf("cancelled: revision %s after %s, %v", after, before, cancelled.GetProperty(ical.ComponentPropertyStatus))
	}
	r.want(r.call(nil, "GET", "/templates/999/opening.ics", nil), 404, "template_not_found")
	r.want(r.call(nil, "GET", "/templates/"+r.draft(time.Hour)+"/opening.ics", nil), 404, "template_not_found")
	for _, query := range []string{"?minutes=-1", "?minutes=x", "?minutes=1441", "?alarm=5", "?minutes=5&minutes=6", "?minutes=" + strings.Repeat("5,", 13) + "5"} {
		r.about = query
		r.want(r.call(nil, "GET", at+query, nil), 422, "invalid_request")
	}
}
