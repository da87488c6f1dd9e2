package console_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/shell"
)

func TestLiveBoard(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	one, res := g.As(staff.Viewer).Listen(d.ID, "")
	two, _ := g.As(staff.Operator).Listen(d.ID, "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	first := g.Next(one)
	if !strings.HasPrefix(first.Data, `<hx-partial hx-target="#drop" hx-swap="outerMorph">`) || !strings.Contains(first.Data, `id="slot-12"`) {
		t.Errorf("the first event is not all of it: %.300s", first.Data)
	}
	g.Next(two)

	g.Exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	for _, viewer := range []<-chan consoletest.Message{one, two} {
		m := g.Next(viewer)
		if !strings.Contains(m.Data, "4,242") || m.ID == first.ID || m.ID == "" {
			t.Errorf("after a booking: %+v", m)
		}
	}
	g.Exec(`insert into bookings values ($1, 3, 1, 7)`, d.ID)
	m := g.Next(one)
	if !strings.Contains(m.Data, "#slot-3") || strings.Contains(m.Data, "#slot-12") || strings.Contains(m.Data, "#drop-head") || len(m.Data) > 8000 {
		t.Errorf("one cell changed and %d bytes came: %.300s", len(m.Data), m.Data)
	}
	g.Next(two)

	// A viewer that reconnects with the last id has missed nothing.
	again, _ := g.As(staff.Viewer).Listen(d.ID, m.ID)
	late, _ := g.As(staff.Viewer).Listen(d.ID, first.ID)
	if got := g.Next(late); !strings.Contains(got.Data, `id="slot-12"`) {
		t.Errorf("with an old id: %.300s", got.Data)
	}
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Pausing, "")
	g.Must(err)
	if got := g.Next(again); !strings.Contains(got.Data, "#drop-head") || !strings.Contains(got.Data, "Paused") || strings.Contains(got.Data, "#slot-3") {
		t.Errorf("resumed, then paused: %.300s", got.Data)
	}
}

// A page has one stream for all of its parts, and receives an event for each part alone.
func TestLiveParts(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator)
	b.Live = consoletest.LiveURL("/channels", shell.TemplateURL(d.ID))
	stream, _ := b.Listen(d.ID, "")
	one, two := g.Next(stream), g.Next(stream)
	if strings.Contains(one.Data, "#drop") {
		one, two = two, one
	}
	if !strings.Contains(one.Data, "#channels") || !strings.Contains(two.Data, "#drop") {
		t.Fatalf("first %.100s, then %.100s", one.Data, two.Data)
	}
	g.Exec(`update channel_settings set rate_per_second = 77 where channel = 1`)
	g.States.Forget()
	m := g.Next(stream)
	if !strings.Contains(m.Data, "#tile-email") || strings.Contains(m.Data, "#drop") || strings.Contains(m.Data, "#tile-sms") || !strings.Contains(m.Data, "77") {
		t.Errorf("one channel's rate changed: %.400s", m.Data)
	}
	again, _ := b.Listen(d.ID, m.ID)
	g.Exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	if m := g.Next(again); !strings.Contains(m.Data, "4,242") || strings.Contains(m.Data, "#channels") {
		t.Errorf("resumed: %.300s", m.Data)
	}
	for _, refused := range []string{"", "?of=", "?of=/jobs", "?of=/nowhere", "?of=%2F%2Fexample.com%2F", "?of=https%3A%2F%2Fexample.com%2F", "?of=%2F%3Fq%3D%2500", "?" + strings.Repeat("of=/&", shell.MaxParts+1)} {
		if a := b.Get("/live" + refused); a.Status < 400 || a.Status >= 500 {
			t.Errorf("%q: %d", refused, a.Status)
		}
	}
	b.Get(consoletest.LiveURL(shell.TemplateURL(999))).Is(http.StatusNotFound)
	g.As(staff.Viewer, 11).Get(consoletest.LiveURL(shell.TemplateURL(d.ID))).Is(http.StatusForbidden)
	g.As(staff.Viewer).Get(consoletest.LiveURL("/channels/email/test")).Is(http.StatusForbidden)
}

// Every part is one element that names its address until it no longer changes.
func TestEveryPartCanBeDrawn(t *testing.T) {
	g := consoletest.New(t)
	for _, rt := range g.Routes() {
		if rt.Every == 0 {
			continue
		}
		path := consoletest.SamplePath(rt.Pattern, "1")
		f := &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Admin}}
		if _, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), nil); err != nil && fault.KindOf(err) == 0 && !errors.Is(err, shell.ErrReload) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A clock that goes on is no change: pages on which nothing happens receive no events.
func TestLiveIsSilentAtRest(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	f := &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Admin}}
	for _, path := range []string{"/", "/channels", shell.TemplateURL(d.ID)} {
		first, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), nil)
		g.Must(err)
		g.Wait(3 * time.Second)
		later, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), first)
		g.Must(err)
		if later != first {
			t.Errorf("%s: nothing happened and %d bytes are sent: %.600s", path, len(later.Patch), later.Patch)
		}
	}
}

func TestLiveGrowsWithThePage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 2*time.Hour)
	viewer, _ := g.As(staff.Viewer).Listen(d.ID, "")
	if m := g.Next(viewer); strings.Contains(m.Data, "slot-12") {
		t.Errorf("a draft has slots: %.300s", m.Data)
	}
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.Must(err)
	if m := g.Next(viewer); !strings.Contains(m.Data, "#drop") || !strings.Contains(m.Data, `id="slot-12"`) {
		t.Errorf("published: %.300s", m.Data)
	}
}

// A part that only another page can show ends the stream.
func TestLiveReloads(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Operator)
	b.Live = consoletest.LiveURL("/dead-letters/jobs") // no job is running
	stream, _ := b.Listen(0, "")
	if m := g.Next(stream); m.Event != shell.ReloadEvent {
		t.Errorf("%+v", m)
	}
	g.Ends(stream)
}

// A member whose rights have changed is sent the new state, not the old one.
func TestLiveEndsWhenRightsChange(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)
	stream, _ := b.Listen(d.ID, "")
	g.Next(stream)
	g.Exec(`update staff set shops = '{11}' where id = $1`, m.ID)
	g.Wait(shell.PresenceLife)
	g.Ends(stream)
	b.Get(consoletest.LiveURL(shell.TemplateURL(d.ID))).Is(http.StatusForbidden)
}

// Staff who are limited to shops see their own jobs that belong to no shop; other staff of the same
// shop do not see these jobs.
func TestLiveOwnJob(t *testing.T) {
	g := consoletest.New(t)
	m := g.Hire(staff.Marketer, 10)
	j := g.StartJob(m.Actor(), "Pause 3 templates", 0)
	mine, other := g.Browser(), g.As(staff.Marketer, 10)
	mine.SignIn(m.Email)
	page := pageparts.Work{Job: j}.URL()
	mine.Get(page).Is(http.StatusOK).Has("data-live")
	mine.Live = consoletest.LiveURL(page)
	stream, _ := mine.Listen(0, "")
	if got := g.Next(stream); !strings.Contains(got.Data, "#job") {
		t.Errorf("%+v", got)
	}
	g.Work(j.ID, job.Progress{Total: 40, Done: 11})
	if got := g.Next(stream); !strings.Contains(got.Data, "11 of 40") {
		t.Errorf("%+v", got)
	}
	other.Get(consoletest.LiveURL(page)).Is(http.StatusNotFound)
	// Viewers that see every job share one rendering.
	f := func(id int64, shops ...int64) *ui.Frame {
		return &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{ID: id, Role: staff.Viewer, Shops: shops}}
	}
	if g.KeyOf(f(1), page+"?x=1") != g.KeyOf(f(2), page+"?x=1") || g.KeyOf(f(1, 10), "/") != g.KeyOf(f(2, 10), "/") || g.KeyOf(f(1, 10), page+"?x=1") == g.KeyOf(f(2, 10), page+"?x=1") {
		t.Error("who shares what")
	}
}

// A panic while a part is rendered does not end the program.
func TestLiveSurvivesAPanic(t *testing.T) {
	g := consoletest.New(t)
	g.Mount([]shell.Route{shell.Live(time.Second, shell.Get("/", staff.View, func(http.ResponseWriter, *http.Request) error { panic("oh dear") }))})
	g.Console.Log = slog.New(slog.DiscardHandler) // it is said there, as it should be
	g.As(staff.Viewer).Get(consoletest.LiveURL("/")).Is(http.StatusInternalServerError)
}

func TestLiveEndsForWhoIsSignedOut(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)
	stream, _ := b.Listen(d.ID, "")
	g.Next(stream)
	g.Exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.Wait(shell.PresenceLife)
	if got := g.Next(stream); got.Event != "dropbell:signed-out" {
		t.Errorf("disabled: %+v", got)
	}
	g.Ends(stream)
	b.Get(consoletest.LiveURL(shell.TemplateURL(d.ID))).Is(http.StatusUnauthorized)
}

func TestLiveEndsWithTheProgram(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	stream, _ := b.Listen(d.ID, "")
	g.Next(stream)
	g.Console.Close()
	g.Ends(stream)
	after, _ := b.Listen(d.ID, "")
	g.Ends(after)
}
