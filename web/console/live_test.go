package console

import (
	"bufio"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	pageparts "dropbell/views/pages/parts"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

// message is one server-sent event.
type message struct{ id, event, data string }

// listen opens the stream of a template's page, or of b.live, and returns what
// arrives.
func (b *browser) listen(id int64, lastEventID string) (<-chan message, *http.Response) {
	b.Helper()
	path := liveURL(templateURL(id))
	if b.live != "" {
		path = b.live
	}
	req, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.server.URL+path, nil)
	b.must(err)
	req.Header = b.header.Clone()
	if lastEventID != "" {
		req.Header.Set("Last-Event-ID", lastEventID)
	}
	client := *b.client
	client.Timeout = 0
	res, err := client.Do(req)
	b.must(err)
	b.Cleanup(func() { res.Body.Close() })
	out := make(chan message, 100)
	go func() {
		defer close(out)
		var m message
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				m.id = value
			case "event":
				m.event = value
			case "data":
				m.data += value
			case "":
				if m != (message{}) {
					out <- m
				}
				m = message{}
			}
		}
	}()
	return out, res
}

// liveURL is the stream of a page with these parts.
func liveURL(parts ...string) string { return "/live?" + url.Values{"of": parts}.Encode() }

// next returns the next event, or fails after some seconds.
func (g *rig) next(from <-chan message) message {
	g.Helper()
	select {
	case m, ok := <-from:
		if !ok {
			g.Fatal("the stream has ended")
		}
		return m
	case <-time.After(10 * time.Second):
		g.Fatal("nothing arrives")
	}
	return message{}
}

func (g *rig) ends(stream <-chan message) {
	g.Helper()
	for deadline := time.After(10 * time.Second); ; {
		select {
		case _, ok := <-stream:
			if !ok {
				return
			}
		case <-deadline:
			g.Fatal("the stream does not end")
		}
	}
}

func TestLiveBoard(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	one, res := g.as(staff.Viewer).listen(d.ID, "")
	two, _ := g.as(staff.Operator).listen(d.ID, "")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	first := g.next(one)
	if !strings.HasPrefix(first.data, `<hx-partial hx-target="#drop" hx-swap="outerMorph">`) || !strings.Contains(first.data, `id="slot-12"`) {
		t.Errorf("the first event is not all of it: %.300s", first.data)
	}
	g.next(two)

	g.exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	for _, viewer := range []<-chan message{one, two} {
		m := g.next(viewer)
		if !strings.Contains(m.data, "4,242") || m.id == first.id || m.id == "" {
			t.Errorf("after a booking: %+v", m)
		}
	}
	g.exec(`insert into bookings values ($1, 3, 1, 7)`, d.ID)
	m := g.next(one)
	if !strings.Contains(m.data, "#slot-3") || strings.Contains(m.data, "#slot-12") || strings.Contains(m.data, "#drop-head") || len(m.data) > 8000 {
		t.Errorf("one cell changed and %d bytes came: %.300s", len(m.data), m.data)
	}
	g.next(two)

	// Whoever comes back with the last id has missed nothing.
	again, _ := g.as(staff.Viewer).listen(d.ID, m.id)
	late, _ := g.as(staff.Viewer).listen(d.ID, first.id)
	if got := g.next(late); !strings.Contains(got.data, `id="slot-12"`) {
		t.Errorf("with an old id: %.300s", got.data)
	}
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Pausing, "")
	g.must(err)
	if got := g.next(again); !strings.Contains(got.data, "#drop-head") || !strings.Contains(got.data, "Paused") || strings.Contains(got.data, "#slot-3") {
		t.Errorf("resumed, then paused: %.300s", got.data)
	}
}

// A page has one stream for all of its parts, and is told of each alone.
func TestLiveParts(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Operator)
	b.live = liveURL("/channels", templateURL(d.ID))
	stream, _ := b.listen(d.ID, "")
	one, two := g.next(stream), g.next(stream)
	if strings.Contains(one.data, "#drop") {
		one, two = two, one
	}
	if !strings.Contains(one.data, "#channels") || !strings.Contains(two.data, "#drop") {
		t.Fatalf("first %.100s, then %.100s", one.data, two.data)
	}
	g.exec(`update channel_settings set rate_per_second = 77 where channel = 1`)
	g.status.Forget()
	m := g.next(stream)
	if !strings.Contains(m.data, "#tile-email") || strings.Contains(m.data, "#drop") || strings.Contains(m.data, "#tile-sms") || !strings.Contains(m.data, "77") {
		t.Errorf("one channel's rate changed: %.400s", m.data)
	}
	again, _ := b.listen(d.ID, m.id)
	g.exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	if m := g.next(again); !strings.Contains(m.data, "4,242") || strings.Contains(m.data, "#channels") {
		t.Errorf("resumed: %.300s", m.data)
	}
	for _, refused := range []string{"", "?of=", "?of=/jobs", "?of=/nowhere", "?of=%2F%2Fexample.com%2F", "?of=https%3A%2F%2Fexample.com%2F", "?of=%2F%3Fq%3D%2500", "?" + strings.Repeat("of=/&", shell.MaxParts+1)} {
		if a := b.get("/live" + refused); a.status < 400 || a.status >= 500 {
			t.Errorf("%q: %d", refused, a.status)
		}
	}
	b.get(liveURL(templateURL(999))).is(http.StatusNotFound)
	g.as(staff.Viewer, 11).get(liveURL(templateURL(d.ID))).is(http.StatusForbidden)
	g.as(staff.Viewer).get(liveURL("/channels/email/test")).is(http.StatusForbidden)
}

// Every part is one element that says where it comes from, until it is over.
func TestEveryPartCanBeDrawn(t *testing.T) {
	g := newRig(t)
	for _, rt := range g.table {
		if rt.Every == 0 {
			continue
		}
		path := samplePath(rt.Pattern, "1")
		f := &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Admin}}
		if _, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), nil); err != nil && fault.KindOf(err) == 0 && !errors.Is(err, shell.ErrReload) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Clocks that go on are no news: pages on which nothing happens are sent
// nothing.
func TestLiveIsSilentAtRest(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	f := &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{Role: staff.Admin}}
	for _, path := range []string{"/", "/channels", templateURL(d.ID)} {
		first, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), nil)
		g.must(err)
		g.wait(3 * time.Second)
		later, err := g.LookAtPart(t.Context(), g.KeyOf(f, path), first)
		g.must(err)
		if later != first {
			t.Errorf("%s: nothing happened and %d bytes are sent: %.600s", path, len(later.Patch), later.Patch)
		}
	}
}

func TestLiveGrowsWithThePage(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 2*time.Hour)
	viewer, _ := g.as(staff.Viewer).listen(d.ID, "")
	if m := g.next(viewer); strings.Contains(m.data, "slot-12") {
		t.Errorf("a draft has slots: %.300s", m.data)
	}
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.must(err)
	if m := g.next(viewer); !strings.Contains(m.data, "#drop") || !strings.Contains(m.data, `id="slot-12"`) {
		t.Errorf("published: %.300s", m.data)
	}
}

// A part that only another page can show ends the stream.
func TestLiveReloads(t *testing.T) {
	g := newRig(t)
	b := g.as(staff.Operator)
	b.live = liveURL("/dead-letters/jobs") // no job is running
	stream, _ := b.listen(0, "")
	if m := g.next(stream); m.event != shell.ReloadEvent {
		t.Errorf("%+v", m)
	}
	g.ends(stream)
}

// Who may see other things than before is sent them, not what was.
func TestLiveEndsWhenRightsChange(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	stream, _ := b.listen(d.ID, "")
	g.next(stream)
	g.exec(`update staff set shops = '{11}' where id = $1`, m.ID)
	g.wait(shell.PresenceLife)
	g.ends(stream)
	b.get(liveURL(templateURL(d.ID))).is(http.StatusForbidden)
}

// Who is limited to shops sees jobs of their own that belong to no shop, and
// nobody else of that shop does.
func TestLiveOwnJob(t *testing.T) {
	g := newRig(t)
	m := g.hire(staff.Marketer, 10)
	j := g.startJob(m.Actor(), "Pause 3 templates", 0)
	mine, other := g.browser(), g.as(staff.Marketer, 10)
	mine.signIn(m.Email)
	page := pageparts.Work{Job: j}.URL()
	mine.get(page).is(http.StatusOK).has("data-live")
	mine.live = liveURL(page)
	stream, _ := mine.listen(0, "")
	if got := g.next(stream); !strings.Contains(got.data, "#job") {
		t.Errorf("%+v", got)
	}
	g.work(j.ID, job.Progress{Total: 40, Done: 11})
	if got := g.next(stream); !strings.Contains(got.data, "11 of 40") {
		t.Errorf("%+v", got)
	}
	other.get(liveURL(page)).is(http.StatusNotFound)
	// Whoever sees every job shares one drawing.
	f := func(id int64, shops ...int64) *ui.Frame {
		return &ui.Frame{Locale: g.Languages.Default(), Member: staff.Member{ID: id, Role: staff.Viewer, Shops: shops}}
	}
	if g.KeyOf(f(1), page+"?x=1") != g.KeyOf(f(2), page+"?x=1") || g.KeyOf(f(1, 10), "/") != g.KeyOf(f(2, 10), "/") || g.KeyOf(f(1, 10), page+"?x=1") == g.KeyOf(f(2, 10), page+"?x=1") {
		t.Error("who shares what")
	}
}

// A part that cannot be drawn for a mistake in the program does not end it.
func TestLiveSurvivesAPanic(t *testing.T) {
	g := newRig(t)
	g.Mount([]shell.Route{shell.Live(time.Second, shell.Get("/", staff.View, func(http.ResponseWriter, *http.Request) error { panic("oh dear") }))}, func(chi.Router) {})
	g.Console.Log = slog.New(slog.DiscardHandler) // it is said there, as it should be
	g.as(staff.Viewer).get(liveURL("/")).is(http.StatusInternalServerError)
}

func TestLiveEndsForWhoIsSignedOut(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	stream, _ := b.listen(d.ID, "")
	g.next(stream)
	g.exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.wait(shell.PresenceLife)
	if got := g.next(stream); got.event != "dropbell:signed-out" {
		t.Errorf("disabled: %+v", got)
	}
	g.ends(stream)
	b.get(liveURL(templateURL(d.ID))).is(http.StatusUnauthorized)
}

func TestLiveEndsWithTheProgram(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	stream, _ := b.listen(d.ID, "")
	g.next(stream)
	g.Console.Close()
	g.ends(stream)
	after, _ := b.listen(d.ID, "")
	g.ends(after)
}
