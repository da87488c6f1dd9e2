package drops_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

// A series is made from a drop, shows its days while it is typed, and is edited, paused and ended. A drop of it is
// edited alone, or with all to come.
func TestSeries(t *testing.T) {
	g := consoletest.New(t)
	g.AtNoon(consoletest.Berlin(t))
	d := g.Draft(10, 50*time.Hour)
	g.Shop(11)
	b, eleven := g.As(staff.Marketer, 10), g.As(staff.Marketer, 11)
	b.Get("/series").Is(200).Has("No series yet")
	eleven.Get("/series/new").Is(200).Has("Save a drop first")
	b.Get("/series/new").Is(200).Has("Next ten openings", `value="drop:1"`)
	b.Get(shell.TemplateURL(d.ID)).Is(200).Has("/series/new?from=1")
	form := b.Get("/series/new?from=1").Is(200).Has("Next ten openings").Form("/series")
	form.Set("name", "Fridays")
	form.Set("every", "WEEKLY")
	form["weekdays"] = []string{"MO", "FR"}
	form.Set("clock", "20:30")
	form.Set("starts", "2027-01-01")
	form.Set("skips", "2027-01-04")
	b.Post("/series/preview", form).Is(200).Has("RRULE:FREQ=WEEKLY;BYDAY=MO,FR", "8 Jan 2027", "20:30").HasNot("4 Jan 2027", "Tue")
	form.Set("clock", "25:00")
	form.Set("skips", "tomorrow")
	form.Set("interval", "x")
	b.Post("/series", form).Is(http.StatusUnprocessableEntity).Has("must be a time of day", "must be dates")
	form.Set("clock", "20:30")
	form.Set("skips", "")
	form.Set("interval", "1")
	form.Set("every", "CUSTOM")
	form.Set("rrule", "FREQ=HOURLY")
	b.Post("/series", form).Is(http.StatusUnprocessableEntity).Has("must name days only")
	form.Set("every", "DAILY")
	form.Set("starts", string(series.DayOf(g.Now())))
	for range 2 { // the form is sent twice
		b.Post("/series", form).To("/series/1")
	}
	b.Get("/series").Is(200).Has("Fridays", "every day · 20:30")
	eleven.Get("/series").Is(200).HasNot("Fridays")
	eleven.Get("/series/1").Is(http.StatusNotFound)
	eleven.Post("/series/1/end", nil).Is(http.StatusNotFound)
	viewer := g.As(staff.Viewer, 10)
	viewer.Get("/series/1").Is(200).Has("RRULE:FREQ=DAILY").HasNot("/series/1/edit", "/series/1/holidays")
	viewer.Post("/series/1/end", nil).Is(http.StatusForbidden)

	// The worker creates its drops.
	keeper := &series.Keeper{Store: dropsdb.NewSeries(g.DB), Templates: g.Templates}
	g.Must(keeper.Sweep(t.Context()))
	b.Get("/series/1").Is(200).Has(`href="/templates/65"`, "Draft", "drafts, for staff to publish")
	b.Get("/templates/65").Is(200).Has(`href="/series/1"`)
	edit := b.Get("/templates/65/edit").Is(200).Has("This drop belongs to the series “Fridays”").Form("/templates/65/edit")
	edit.Set("stock", "777")
	b.Post("/templates/65/edit", edit).To("/templates/65")
	edit = b.Get("/templates/129/edit").Is(200).Form("/templates/129/edit")
	edit.Set("stock", "888")
	edit.Set("series_scope", "all")
	b.Post("/templates/129/edit", edit).To("/templates/129")
	g.Must(keeper.Sweep(t.Context()))
	for id, want := range map[int64]int64{65: 777, 129: 888, 193: 888, 257: 888} {
		if n := g.Number(`select stock from templates where id = $1`, id); n != want {
			t.Errorf("drop %d has a stock of %d, want %d", id, n, want)
		}
	}

	// A holiday of the shop.
	b.Post("/series/1/holidays", map[string][]string{"holidays": {"Christmas"}}).Is(http.StatusUnprocessableEntity).Has("must be dates", "Christmas")
	b.Post("/series/1/holidays", map[string][]string{"holidays": {string(series.DayOf(g.Now()).Add(2))}}).To("/series/1")
	g.Must(keeper.Sweep(t.Context()))
	if n := g.Number(`select count(*) from series_drops where state = 'removed'`); n != 1 {
		t.Errorf("%d days were taken out", n)
	}

	again := b.Get("/series/1/edit").Is(200).Has(`value="keep"`).Form("/series/1/edit")
	stale := b.Get("/series/1/edit").Is(200).Form("/series/1/edit")
	again.Set("name", "Every day")
	again.Set("ends", "count")
	again.Set("count", "30")
	b.Post("/series/1/edit", again).To("/series/1")
	b.Get("/series/1").Is(200).Has("Every day", "every day, 30 times", "RRULE:FREQ=DAILY;COUNT=30")
	b.Post("/series/1/edit", stale).To("/series/1")
	b.Get("/series/1").Is(200).Has("changed this in the meantime", "Every day")
	b.Get("/series/1/pause").Is(200).Has("Pause the series “Every day”?")
	b.Post("/series/1/pause", nil).To("/series/1")
	b.Get("/series/1").Is(200).Has("paused", "/series/1/resume")
	b.Post("/series/1/resume", nil).To("/series/1")
	b.Post("/series/1/end", map[string][]string{"reason": {"enough"}}).To("/series/1")
	b.Get("/series/1").Is(200).Has("ended").HasNot("/series/1/edit")
	b.Get("/series/1/edit").Is(http.StatusConflict)
	b.Get("/templates/65/edit").Is(200).HasNot("This drop belongs to the series")
	if n := g.Number(`select count(*) from audit where object_kind = 'series'`); n != 6 {
		t.Errorf("%d lines in the audit log", n)
	}
	for _, want := range []template.State{template.Draft} {
		if s, err := g.Templates.Template(t.Context(), staff.System(), 65); err != nil || s.Stored != want {
			t.Errorf("the drop of the ended series is %s, %v", s.Stored, err)
		}
	}
	if !strings.Contains(b.Get("/audit").Is(200).Body, "Series") {
		t.Error("the audit log does not name series")
	}
}
