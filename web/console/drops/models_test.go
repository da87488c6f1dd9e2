package drops_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/cell"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A new drop opens at eight on the next evening that no drop of any shop takes.
func TestANewDropOpensOnAFreeEvening(t *testing.T) {
	g := consoletest.New(t)
	zone := consoletest.Berlin(t)
	g.AtNoon(zone)
	g.Shop(10)
	b := g.As(staff.Marketer)
	now := g.Now().In(zone)
	evening := func(day int) time.Time { return time.Date(now.Year(), now.Month(), now.Day()+day, 20, 0, 0, 0, zone) }
	typed := func(at time.Time) string {
		return `name="opens_at" type="datetime-local" value="` + at.Format("2006-01-02T15:04") + `"`
	}
	b.Get("/templates/new").Is(200).Has(typed(evening(1)), `value="`+evening(1).Add(4*time.Hour).Format("2006-01-02T15:04")+`"`, `step="60"`)
	g.Published(11, evening(1).Add(30*time.Minute).Sub(g.Now()))
	g.Draft(10, evening(2).Sub(g.Now()))
	g.Published(10, evening(3).Add(time.Hour).Sub(g.Now())) // an hour later is no longer near
	b.Get("/templates/new").Is(200).Has(typed(evening(3)))
}

// Every model of the gallery begins a form that can be saved as it is.
func TestEveryModelIsAWholeDrop(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	b.Get("/templates/models").Is(200).Has("Create a shop first")
	g.Shop(10)
	page := b.Get("/templates/models").Is(200).Has("Lunch rush", "20% off, at most ¥50").HasNot("Your latest drops")
	for i, key := range []string{"lunch", "weekend", "evening", "premiere"} {
		page.Has("/templates/new?model=" + key)
		form := b.Get("/templates/new?model=" + key).Is(200).Has("data-whole").Form("/templates")
		b.Post("/templates", form).To(fmt.Sprintf("/templates/%d", i*cell.Count+1))
		d, err := g.Templates.Template(t.Context(), staff.System(), int64(i*cell.Count+1))
		g.Must(err)
		if d.Stored != template.Draft || !d.OpensAt.After(g.Now()) || !d.ClosesAt.After(d.OpensAt) {
			t.Errorf("%s: %+v", key, d.Spec)
		}
		if day := d.OpensAt.In(consoletest.Berlin(t)).Weekday(); key == "weekend" && day != time.Saturday || key == "lunch" && (day == time.Saturday || day == time.Sunday) {
			t.Errorf("%s opens on a %s", key, day)
		}
	}
	b.Get("/templates/models").Is(200).Has("Your latest drops", "/templates/new?from=193")
	b.Get("/templates/new?model=nonsense").Is(200).HasNot("data-whole")
	b.Get("/templates/new?from=999").Is(http.StatusNotFound)
	g.As(staff.Viewer).Get("/templates/models").Is(http.StatusForbidden)
}

// The form publishes the drop as shown. A drop that may not be published is stored as a draft.
func TestPublishFromTheForm(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := g.As(staff.Marketer)
	form := g.TypedForm(48 * time.Hour)
	form.Set("publish", "1")
	form.Set("request_key", "once")
	for range 2 { // an impatient finger
		b.Post("/templates", form).To("/templates/1/publish")
	}
	b.Get("/templates/1").Is(200).Has("Draft")
	b.Get("/templates/1/message").Is(200) // a look
	for range 2 {
		b.Post("/templates", form).To("/templates/1")
	}
	b.Get("/templates/1").Is(200).Has("Scheduled", "has been published")
	page := shell.TemplateURL(g.Draft(10, 2*time.Hour).ID)
	edit := b.Get(page + "/edit").Is(200).Has("Save and publish").Form(page + "/edit")
	edit.Set("publish", "1")
	b.Get(page + "/message").Is(200)
	b.Post(page+"/edit", edit).To(page)
	b.Get(page).Is(200).Has("Scheduled")
	b.Get(page + "/edit").Is(200).HasNot("Save and publish")
	past := g.TypedForm(-time.Minute)
	past.Set("request_key", "twice")
	past.Set("publish", "1")
	draft := strings.TrimSuffix(b.Post("/templates", past).Is(http.StatusSeeOther).Header.Get("Location"), "/publish")
	b.Get(draft + "/message").Is(200)
	b.Post("/templates", past).Is(http.StatusSeeOther)
	b.Get(draft).Is(200).Has("Draft", "is saved as a draft and not published.")
}

// A drop that opens near the typed time is named; a drop of another member's shop is not.
func TestClashesAreWarnedOf(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 24*time.Hour)
	g.Exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	g.Shop(11)
	form := g.TypedForm(24*time.Hour + 20*time.Minute)
	g.As(staff.Marketer).Post("/templates/preview", form).Is(200).Has("Other drops open at about this time", "“Moon cake night” opens at", "reminders reserved: 4,242")
	form.Set("shop_number", "11")
	g.As(staff.Marketer, 11).Post("/templates/preview", form).Is(200).Has("A drop of another shop opens at").HasNot("“Moon cake night” opens")
	form = g.TypedForm(26 * time.Hour)
	g.As(staff.Marketer).Post("/templates/preview", form).Is(200).HasNot("Other drops open")
	// A drop does not clash with itself.
	page := g.As(staff.Marketer).Get(shell.TemplateURL(d.ID) + "/edit").Is(200)
	page.HasNot("Other drops open")
}

// From the list to a published drop are five clicks.
func TestFiveClicksToADrop(t *testing.T) {
	g := consoletest.New(t)
	g.Shop(10)
	b := consoletest.NewTab(t)
	b.SignIn(g, g.Hire(staff.Marketer))
	b.Open(g.Server.URL + "/")
	b.Press(".sidebar", "Drops")
	b.Sees("h1", "Drops")
	b.Press(".page-head", "Templates")
	b.Sees("h1", "Start from a template")
	b.Press(".models", "Lunch rush")
	b.Sees("h1", "New drop")
	b.Sees("#review", "Lunch rush", "¥15")
	b.Press("form", "Save and publish")
	b.Press("main", "Publish without looking")
	b.Sees("#drop-head", "Lunch rush", "Scheduled")
	if !strings.HasSuffix(b.Path(), "/templates/1") {
		t.Errorf("it ended at %s", b.Path())
	}
}

// A drop is saved as a model under a name. New drops of its shop begin with its values at that
// time. The model is renamed, deleted and restored. Other shops do not see it.
func TestSavedModels(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 50*time.Hour)
	g.Shop(11)
	b, eleven := g.As(staff.Marketer, 10), g.As(staff.Marketer, 11)
	page := shell.TemplateURL(d.ID)
	b.Get(page).Is(200).Has(page + "/model")
	b.Get("/templates/models").Is(200).Has("Save as a template")
	form := b.Get(page + "/model").Is(200).Form(page + "/model")
	form.Set("name", " ")
	b.Post(page+"/model", form).Is(http.StatusUnprocessableEntity).Has("Enter a name")
	form.Set("name", "Friday special")
	for range 2 { // the form is sent twice
		b.Post(page+"/model", form).To("/templates/models#model-1")
	}
	b.Get("/templates/models").Is(200).Has("Friday special", "/templates/new?saved=1")
	g.Exec(`update templates set name = 'Another', stock = stock + 7 where id = $1`, d.ID)
	form.Set("name", "friday SPECIAL")
	b.Post(page+"/model", form).Is(http.StatusConflict).Has("has this name")
	eleven.Get("/templates/models").Is(200).HasNot("Friday special")
	eleven.Get("/templates/new?saved=1").Is(http.StatusNotFound)
	eleven.Post("/templates/models/1/delete", nil).Is(http.StatusNotFound)
	g.As(staff.Viewer, 10).Post("/templates/models/1/delete", nil).Is(http.StatusForbidden)

	begun := b.Get("/templates/new?saved=1").Is(200).Has("data-whole").Form("/templates")
	b.Post("/templates", begun).To("/templates/65")
	n, err := g.Templates.Template(t.Context(), staff.System(), 65)
	g.Must(err)
	if n.Name != d.Name || n.Stock != d.Stock || n.Kind != d.Kind || n.AmountOff != d.AmountOff || n.ClosesAt.Sub(n.OpensAt) != d.ClosesAt.Truncate(time.Minute).Sub(d.OpensAt.Truncate(time.Minute)) || !n.OpensAt.After(g.Now()) {
		t.Errorf("%+v begins %+v", d.Spec, n.Spec)
	}

	form.Set("name", "Second") // a refused name has used up the number 65
	b.Post(page+"/model", form).To("/templates/models#model-129")
	b.Post("/templates/models/129/rename", map[string][]string{"name": {"Friday Special"}}).Is(http.StatusConflict).Has("has this name", `value="Friday Special"`)
	b.Post("/templates/models/129/rename", map[string][]string{"name": {"Saturday"}}).To("/templates/models")
	b.Get("/templates/models").Is(200).Has("Saturday").HasNot("Second")
	b.Post("/templates/models/1/delete", nil).To("/templates/models")
	b.Get("/templates/models").Is(200).Has("/templates/models/1/restore").HasNot(`saved=1#`)
	b.Get("/templates/new?saved=1").Is(http.StatusNotFound)
	b.Post("/templates/models/1/delete", nil).Is(http.StatusNotFound)
	b.Post("/templates/models/129/rename", map[string][]string{"name": {"Friday special"}}).To("/templates/models")
	b.Post("/templates/models/1/restore", nil).To("/templates/models")
	b.Get("/templates/models").Is(200).Has("has this name")
	b.Post("/templates/models/129/delete", nil).To("/templates/models")
	for range 2 {
		b.Post("/templates/models/1/restore", nil).To("/templates/models")
	}
	b.Get("/templates/models").Is(200).Has(`saved=1#`).HasNot("saved=129")
	if n := g.Number(`select count(*) from audit where object_kind = 'model'`); n != 7 {
		t.Errorf("%d steps in the audit log", n)
	}
	g.Exec(`update drop_models set deleted_at = now() - interval '30 days 1 second' where id = 129`)
	b.Post("/templates/models/129/restore", nil).Is(http.StatusNotFound)
	g.Exec(`insert into drop_models (shop_number, name, content, saved_by) select 10, 'm' || n, content, 'x' from drop_models m, generate_series(1, 49) n where m.id = 1`)
	form.Set("name", "One too many")
	b.Post(page+"/model", form).Is(http.StatusConflict).Has("50 saved templates")
}
