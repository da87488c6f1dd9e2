package drops_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
)

func TestBulkOfTheTicked(t *testing.T) {
	g := consoletest.New(t)
	a, b, draft, other := g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour), g.Draft(10, 4*time.Hour), g.Published(11, 2*time.Hour)
	m := g.As(staff.Marketer, 10)
	m.Get("/templates").Is(200).Has(`form="bulk"`, "All 3 that match", `value="pause"`)
	g.As(staff.Viewer).Get("/templates").Is(200).HasNot(`form="bulk"`)
	pick := fmt.Sprintf("id=%d&id=%d&id=%d&id=%d&id=%d&id=x", a.ID, b.ID, draft.ID, other.ID, a.ID)
	page := m.Get("/templates/bulk?step=pause&"+pick).Is(200).Has("Pause 4 drops", "2 can be changed, 2 cannot", "1 cannot, in the state “Draft”.")
	key := page.Field("request_key")
	form, _ := url.ParseQuery(pick)
	form.Set("step", "pause")
	form.Set("request_key", key)
	form.Set("reason", "rain")
	m.Post("/templates/bulk", form).To("/jobs/1")
	m.Post("/templates/bulk", form).To("/jobs/1") // an impatient finger
	if got := g.StatesOf(a.ID, b.ID); got != "scheduled scheduled" {
		t.Errorf("changed by the request itself: %s", got)
	}
	j := g.WorkOff(1)
	if got := g.StatesOf(a.ID, b.ID, draft.ID, other.ID); j.State != job.Done || j.Done != 2 || j.Failed != 2 || got != "paused paused draft scheduled" {
		t.Fatalf("%+v: %s", j, got)
	}
	m.Get("/jobs/1").Is(200).Has("The job has begun", "4 of 4", "Moon cake night", "this needs", "Resume the 2 that were paused", "/templates/bulk?step=resume&amp;undo=1")
	m.Get("/audit?action=template.pause&q=rain").Is(200).Has("rain")
	g.As(staff.Viewer).Get("/jobs/1").Is(200).HasNot("undo=1")

	page = m.Get("/templates/bulk?step=resume&undo=1").Is(200).Has("Resume 2 drops", "2 can be changed, 0 cannot")
	undo := m.Post("/templates/bulk", url.Values{"step": {"resume"}, "undo": {"1"}, "request_key": {page.Field("request_key")}}).Is(http.StatusSeeOther)
	if j = g.WorkOff(undo.Job()); j.Done != 2 || g.StatesOf(a.ID, b.ID) != "scheduled scheduled" {
		t.Errorf("%+v", j)
	}
	m.Get("/templates/bulk?step=close&undo=99").Is(http.StatusNotFound)
	m.Get("/templates/bulk?step=pause").To("/templates")
	m.Get("/templates").Is(200).Has("Choose at least one drop.")
	m.Get("/templates/bulk?step=explode&id=1").To("/templates")
	m.Post("/templates/bulk", url.Values{"step": {"pause"}}).To("/templates")
}

func TestBulkOfAllThatMatch(t *testing.T) {
	g := consoletest.New(t)
	for range 53 { // several pages and several steps of the job
		g.Published(10, 2*time.Hour)
	}
	d := g.Draft(10, 2*time.Hour)
	theirs := g.Published(11, 2*time.Hour)
	m := g.As(staff.Operator, 10)
	m.Get("/templates?state=scheduled").Is(200).Has("All that match this filter, on all pages")
	page := m.Get("/templates/bulk?step=cancel&all=1&state=scheduled&q=moon").Is(200).Has("Cancel 53 drops", "Keep them", "Cancel drops", "53 can be changed, 0 cannot", `name="state" value="scheduled"`, `name="q" value="moon"`)
	m.Post("/templates/bulk", url.Values{"step": {"cancel"}, "all": {"1"}, "state": {"scheduled"}, "q": {"moon"}, "request_key": {page.Field("request_key")}}).To("/jobs/1")
	j := g.WorkOff(1)
	if j.State != job.Done || j.Done != 53 || j.Total != 53 || j.Failed != 0 || g.StatesOf(d.ID, theirs.ID) != "draft scheduled" {
		t.Errorf("%+v", j)
	}
	m.Get("/jobs/1").Is(200).Has("53 of 53").HasNot("undo=")
	m.Get("/templates?state=scheduled").Is(200).Has("No matches")
}

// A worker that dies between changing templates and saving its progress leaves a job that
// recognises its own changes.
func TestBulkStepRunsTwice(t *testing.T) {
	g := consoletest.New(t)
	a, b := g.Published(10, 2*time.Hour), g.Published(10, 2*time.Hour)
	j, err := g.Bulks.Start(t.Context(), staff.System(), template.Bulk{Transition: template.Pausing, Selection: template.Selection{IDs: []int64{a.ID, b.ID}}}, "Pause 2", "")
	g.Must(err)
	planned, err := g.Bulks.Step(t.Context(), j)
	g.Must(err)
	lost := j
	lost.Cursor, lost.Result, lost.Done = planned.Cursor, planned.Result, planned.Done
	_, err = g.Bulks.Step(t.Context(), lost) // never saved
	g.Must(err)
	again, err := g.Bulks.Step(t.Context(), lost)
	g.Must(err)
	if again.Done != 2 || again.Failed != 0 || !again.Finished || !strings.Contains(string(again.Result), `"changed":2`) {
		t.Errorf("%+v %s", again, again.Result)
	}
	if n := strings.Count(g.As(staff.Viewer).Get("/audit.csv?action=template.pause").Is(200).Body, "template.pause"); n != 2 {
		t.Errorf("%d pauses on record", n)
	}
}

func TestBulkInTheBrowser(t *testing.T) {
	g := consoletest.New(t)
	a, b := g.Published(10, 2*time.Hour), g.Published(10, 3*time.Hour)
	tab := consoletest.NewTab(t)
	tab.SignIn(g, g.Hire(staff.Marketer))
	tab.Open(g.Server.URL + "/templates")
	tab.Click("[data-check-all]")
	tab.Press("#bulk", "Pause")
	tab.Sees("#confirm", "Pause 2 drops", "2 can be changed, 0 cannot")
	tab.Accessible("the confirmation")
	tab.Click("#confirm button[type=submit]")
	tab.Sees("main", "Not begun yet")
	g.WorkOff(1)
	tab.Sees("#job", "2 of 2", "Done", "Resume the 2 that were paused") // by itself
	tab.Press("#job", "Resume the 2 that were paused")
	tab.Sees("#dialog", "Resume 2 drops")
	tab.Click("#dialog button[type=submit]")
	tab.Sees("main", "Not begun yet")
	g.WorkOff(65)
	tab.Sees("#job", "Done")
	if got := g.StatesOf(a.ID, b.ID); got != "scheduled scheduled" {
		t.Error(got)
	}
	tab.Open(g.Server.URL + "/audit")
	tab.Fill("#f-action", "template.resume")
	tab.Sees("#results", "resumed")
	consoletest.Within(t, "the filter in the address", func() bool {
		return strings.Contains(consoletest.Evaluate[string](tab, "location.search"), "action=template.resume")
	})
}
