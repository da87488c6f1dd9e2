package drops_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A draft is deleted in a dialog that offers to keep it, disappears from the lists, and is restored
// by the notice's button or from its old address, without scripts.
func TestDeletedDraftComesBack(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 5*time.Hour)
	page, b := shell.TemplateURL(d.ID), g.As(staff.Marketer)
	g.Exec(`insert into message_looks (template_id, by_member) values ($1, 'staff:1')`, d.ID)
	b.Get(page).Is(200).Has("Delete draft")
	q := b.Get(page+"/delete").Is(200).Has("Delete the draft “Moon cake night”?", "Keep it", "Delete draft", "30 days").HasNot(">Cancel<")
	form := url.Values{"version": {q.Field("version")}, "reason": {"a typo"}}
	b.Post(page+"/delete", url.Values{"version": {"99"}}).Is(http.StatusConflict)
	b.Post(page+"/delete", form).To("/templates")
	b.Get("/templates").Is(200).Has("is deleted", "Undo", page+"/restore").HasNot(`href="` + page + `"`)
	b.Post(page+"/delete", form).Is(http.StatusGone).Has("This draft is deleted") // the form was sent twice
	b.Get("/audit").Is(200).Has("deleted the draft", "a typo")
	b.Get(page).Is(http.StatusGone).Has("This draft is deleted", "The marketer", "Restore draft", "It can be restored until")
	g.As(staff.Viewer).Get(page).Is(404)
	g.As(staff.Marketer, 11).Get(page).Is(404).HasNot("Moon cake")
	g.As(staff.Marketer, 11).Post(page+"/restore", nil).Is(http.StatusForbidden)
	b.Post(page+"/restore", nil).To(page)
	b.Get(page).Is(200).Has("Undone: “Moon cake night” is as it was.", "Draft")
	b.Post(page+"/restore", nil).To(page)
	b.Get(page).Is(200).Has("This was undone before")
	back, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
	g.Must(err)
	if back.Version != d.Version+1 || back.Spec != d.Spec || g.Number(`select count(*) from deleted_drafts`) != 0 || g.Number(`select count(*) from message_looks`) != 1 {
		t.Errorf("%+v came back as %+v", d, back)
	}
	b.Post(page+"/delete", form).Is(http.StatusConflict) // of a form from before
	b.Post("/templates/999/restore", nil).Is(404)
	// After its opening has passed a draft cannot be restored.
	b.Post(page+"/delete", url.Values{"version": {b.Get(page + "/delete").Field("version")}}).To("/templates")
	g.Exec(`update deleted_drafts set deleted_at = now() - interval '30 days 1 second'`)
	b.Get(page).Is(404)
	b.Post(page+"/restore", nil).Is(404)
}

// A published drop cannot be deleted, nor a draft that other objects name.
func TestDraftsThatStay(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	p := g.Published(10, 5*time.Hour)
	b.Get(shell.TemplateURL(p.ID)+"/delete").Is(http.StatusConflict).Has("Only drafts can be deleted", "cannot be deleted")
	b.Post(shell.TemplateURL(p.ID)+"/delete", url.Values{"version": {"2"}}).Is(http.StatusConflict)
	d := g.Draft(10, 6*time.Hour)
	g.Exec(`insert into code_batches (template_id, first_serial, count, key_id, created_by) values ($1, 1, 1, 1, 'x')`, d.ID)
	b.Post(shell.TemplateURL(d.ID)+"/delete", url.Values{"version": {"1"}}).Is(http.StatusConflict).Has("uses this draft")
	if g.Number(`select count(*) from templates`) != 2 || g.Number(`select count(*) from deleted_drafts`) != 0 || g.Number(`select count(*) from audit where action = 'template.delete'`) != 0 {
		t.Error("something was deleted")
	}
}

// A pause and a closing are undone by the button in the notice. Undoing twice has one effect, and
// after another change it is too late.
func TestUndo(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	page, b := shell.TemplateURL(d.ID), g.As(staff.Marketer)
	state := func() template.State {
		t.Helper()
		now, err := g.Templates.Template(t.Context(), staff.System(), d.ID)
		g.Must(err)
		return now.State(g.Now())
	}
	b.Post(page+"/pause", nil).To(page)
	undo := b.Get(page).Is(200).Has("is paused", "Undo").Form(page + "/undo")
	b.Get(page).Is(200).HasNot(page + "/undo") // the notice is shown once
	b.Post(page+"/undo", undo).To(page)
	b.Get(page).Is(200).Has("Undone:", "Scheduled")
	b.Post(page+"/undo", undo).To(page)
	b.Get(page).Is(200).Has("undone before")
	b.Post(page+"/stock", url.Values{"stock": {"500"}, "version": {"4"}}).To(page)
	b.Get(page).Is(200)
	b.Post(page+"/undo", undo).To(page)
	b.Get(page).Is(200).Has("Too late to undo: the drop has changed since.")

	waiting := func() int64 { return g.Number(`select count(*) from slots where state = 'waiting'`) }
	slots := waiting()
	b.Post(page+"/pause", nil).To(page)
	b.Get(page+"/close").Is(200).Has("You can undo this for 15 minutes", `name="was_paused"`)
	b.Post(page+"/close", b.Get(page+"/close").Form(page+"/close")).To(page)
	if got := state(); got != template.Closed || waiting() != 0 {
		t.Fatalf("%s with %d slots that wait", got, waiting())
	}
	undo = b.Get(page).Is(200).Has("is closed", "Undo").Form(page + "/undo")
	b.Post(page+"/undo", undo).To(page)
	if got := state(); got != template.Paused || waiting() != slots {
		t.Errorf("after the closing of a paused drop was undone: %s, %d of %d slots wait", got, waiting(), slots)
	}
	b.Post(page+"/undo", undo).To(page)
	b.Get(page).Is(200).Has("undone before")
	b.Post(page+"/close", nil).To(page)
	undo = b.Get(page).Is(200).Form(page + "/undo")
	g.Wait(template.ReopenWithin + time.Second)
	b.Post(page+"/undo", undo).To(page)
	b.Get(page).Is(200).Has("Too late to undo: a drop can be reopened only within 15 minutes")
	b.Post(page+"/undo", url.Values{"step": {"nonsense"}, "version": {"x"}}).Is(http.StatusUnprocessableEntity)
	g.As(staff.Viewer).Post(page+"/undo", undo).Is(http.StatusForbidden)
	g.As(staff.Marketer, 11).Post(page+"/undo", undo).Is(http.StatusForbidden)
}
