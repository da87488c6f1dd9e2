package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// workOff lets a worker do what waits.
func (g *rig) workOff(id int64) job.Job {
	g.Helper()
	w := &job.Worker{Store: postgres.NewJobs(g.db), Runners: map[string]job.Runner{template.BulkKind: &template.Bulks{Templates: g.Templates}},
		LeaseFor: time.Minute, Turn: time.Minute, Now: time.Now, Random: func() float64 { return 0 }}
	g.must(w.Run(g.Context(), id))
	j, err := g.Jobs.Job(g.Context(), staff.System(), id)
	g.must(err)
	return j
}

func (g *rig) states(ids ...int64) string {
	g.Helper()
	var list []string
	for _, id := range ids {
		t, err := g.Templates.Template(g.Context(), staff.System(), id)
		g.must(err)
		list = append(list, string(t.State(g.now())))
	}
	return strings.Join(list, " ")
}

// job is the job whose page the answer leads to.
func (a answer) job() (id int64) {
	a.Helper()
	if _, err := fmt.Sscanf(a.header.Get("Location"), "/jobs/%d", &id); err != nil {
		a.Fatalf("%s leads to %q", a.what, a.header.Get("Location"))
	}
	return id
}

func TestBulkOfTheTicked(t *testing.T) {
	g := newRig(t)
	a, b, draft, other := g.published(10, 2*time.Hour), g.published(10, 3*time.Hour), g.draft(10, 4*time.Hour), g.published(11, 2*time.Hour)
	m := g.as(staff.Marketer, 10)
	m.get("/templates").is(200).has(`form="bulk"`, "All 3 that match", `value="pause"`)
	g.as(staff.Viewer).get("/templates").is(200).hasNot(`form="bulk"`)
	pick := fmt.Sprintf("id=%d&id=%d&id=%d&id=%d&id=%d&id=x", a.ID, b.ID, draft.ID, other.ID, a.ID)
	page := m.get("/templates/bulk?step=pause&"+pick).is(200).has("Pause 4 templates", "2 can, 2 cannot", "1 cannot: Draft")
	key := page.field("request_key")
	form, _ := url.ParseQuery(pick)
	form.Set("step", "pause")
	form.Set("request_key", key)
	form.Set("reason", "rain")
	m.post("/templates/bulk", form).to("/jobs/1")
	m.post("/templates/bulk", form).to("/jobs/1") // an impatient finger
	if got := g.states(a.ID, b.ID); got != "scheduled scheduled" {
		t.Errorf("changed by the request itself: %s", got)
	}
	j := g.workOff(1)
	if got := g.states(a.ID, b.ID, draft.ID, other.ID); j.State != job.Done || j.Done != 2 || j.Failed != 2 || got != "paused paused draft scheduled" {
		t.Fatalf("%+v: %s", j, got)
	}
	m.get("/jobs/1").is(200).has("The job has begun", "4 of 4", "Moon cake night", "this needs", "Resume the 2 that were paused", "/templates/bulk?step=resume&amp;undo=1")
	m.get("/audit?action=template.pause&q=rain").is(200).has("rain")
	g.as(staff.Viewer).get("/jobs/1").is(200).hasNot("undo=1")

	page = m.get("/templates/bulk?step=resume&undo=1").is(200).has("Resume 2 templates", "2 can, 0 cannot")
	undo := m.post("/templates/bulk", url.Values{"step": {"resume"}, "undo": {"1"}, "request_key": {page.field("request_key")}}).is(http.StatusSeeOther)
	if j = g.workOff(undo.job()); j.Done != 2 || g.states(a.ID, b.ID) != "scheduled scheduled" {
		t.Errorf("%+v", j)
	}
	m.get("/templates/bulk?step=close&undo=99").is(http.StatusNotFound)
	m.get("/templates/bulk?step=pause").to("/templates")
	m.get("/templates").is(200).has("Choose at least one template.")
	m.get("/templates/bulk?step=explode&id=1").to("/templates")
	m.post("/templates/bulk", url.Values{"step": {"pause"}}).to("/templates")
}

func TestBulkOfAllThatMatch(t *testing.T) {
	g := newRig(t)
	for range 53 { // several pages and several steps of the job
		g.published(10, 2*time.Hour)
	}
	d := g.draft(10, 2*time.Hour)
	theirs := g.published(11, 2*time.Hour)
	m := g.as(staff.Operator, 10)
	m.get("/templates?state=scheduled").is(200).has("All that match this filter, on all pages")
	page := m.get("/templates/bulk?step=cancel&all=1&state=scheduled&q=moon").is(200).has("Cancel 53 templates", "53 can, 0 cannot", `name="state" value="scheduled"`, `name="q" value="moon"`)
	m.post("/templates/bulk", url.Values{"step": {"cancel"}, "all": {"1"}, "state": {"scheduled"}, "q": {"moon"}, "request_key": {page.field("request_key")}}).to("/jobs/1")
	j := g.workOff(1)
	if j.State != job.Done || j.Done != 53 || j.Total != 53 || j.Failed != 0 || g.states(d.ID, theirs.ID) != "draft scheduled" {
		t.Errorf("%+v", j)
	}
	m.get("/jobs/1").is(200).has("53 of 53").hasNot("undo=")
	m.get("/templates?state=scheduled").is(200).has("No matches")
}

// A worker that dies after having changed templates and before saving it
// leaves a job that knows its own work.
func TestBulkStepRunsTwice(t *testing.T) {
	g := newRig(t)
	a, b := g.published(10, 2*time.Hour), g.published(10, 2*time.Hour)
	j, err := g.Bulks.Start(t.Context(), staff.System(), template.Bulk{Transition: template.Pausing, Selection: template.Selection{IDs: []int64{a.ID, b.ID}}}, "Pause 2", "")
	g.must(err)
	planned, err := g.Bulks.Step(t.Context(), j)
	g.must(err)
	lost := j
	lost.Cursor, lost.Result, lost.Done = planned.Cursor, planned.Result, planned.Done
	_, err = g.Bulks.Step(t.Context(), lost) // never saved
	g.must(err)
	again, err := g.Bulks.Step(t.Context(), lost)
	g.must(err)
	if again.Done != 2 || again.Failed != 0 || !again.Finished || !strings.Contains(string(again.Result), `"changed":2`) {
		t.Errorf("%+v %s", again, again.Result)
	}
	if n := strings.Count(g.as(staff.Viewer).get("/audit.csv?action=template.pause").is(200).body, "template.pause"); n != 2 {
		t.Errorf("%d pauses on record", n)
	}
}

func TestBulkInTheBrowser(t *testing.T) {
	g := newRig(t)
	a, b := g.published(10, 2*time.Hour), g.published(10, 3*time.Hour)
	tab := newTab(t)
	tab.signIn(g, g.hire(staff.Marketer))
	tab.open(g.server.URL + "/templates")
	tab.click("[data-check-all]")
	tab.press("#bulk", "Pause")
	tab.sees("#confirm", "Pause 2 templates", "2 can, 0 cannot")
	tab.accessible("the confirmation")
	tab.click("#confirm button[type=submit]")
	tab.sees("main", "Not begun yet")
	g.workOff(1)
	tab.sees("#job", "2 of 2", "done", "Resume the 2 that were paused") // by itself
	tab.press("#job", "Resume the 2 that were paused")
	tab.sees("#dialog", "Resume 2 templates")
	tab.click("#dialog button[type=submit]")
	tab.sees("main", "Not begun yet")
	g.workOff(2)
	tab.sees("#job", "done")
	if got := g.states(a.ID, b.ID); got != "scheduled scheduled" {
		t.Error(got)
	}
	tab.open(g.server.URL + "/audit")
	tab.fill("#f-action", "template.resume")
	tab.sees("#results", "resumed")
	within(t, "the filter in the address", func() bool {
		return strings.Contains(evaluate[string](tab, "location.search"), "action=template.resume")
	})
}
