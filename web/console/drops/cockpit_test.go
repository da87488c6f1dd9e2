package drops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
	"dropbell/web/console/drops"
	"dropbell/web/console/shell"
)

// cockpitURL is the live tab of a drop, streamURL the stream of its changes.
func cockpitURL(id int64) string { return shell.TemplateURL(id) + "?tab=live" }
func streamURL(id int64) string  { return shell.TemplateURL(id) + "/cockpit/live" }

func TestCockpitPage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 5*time.Hour)
	viewer := g.As(staff.Viewer)
	viewer.Get(cockpitURL(d.ID)).Is(200).Has("Moon cake night", "Draft", "Not published yet").HasNot("cockpit-slots")
	viewer.Get(cockpitURL(77)).Is(http.StatusNotFound)
	viewer.Get(shell.TemplateURL(d.ID) + "/cockpit").To(cockpitURL(d.ID))
	viewer.Get(shell.TemplateURL(77) + "/cockpit").Is(http.StatusNotFound)
	viewer.Get(streamURL(77)).Is(http.StatusNotFound)
	g.As(staff.Viewer, 11).Get(cockpitURL(d.ID)).Is(http.StatusForbidden)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.Must(err)
	g.Exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	viewer.Get(cockpitURL(d.ID)).Is(200).Has("60-minute reminders in", "All well: 4,242 reminders are reserved", "4,242 reserved",
		`data-countdown="`, "/cockpit/live").HasNot("Pause App")
	g.Sending(d, 12, 1, 100, 40)
	g.As(staff.Operator).Get(cockpitURL(d.ID)).Is(200).Has("Sending: 40 of 100 are sent (40%).", "started +42 ms", "median ≤ 100 ms", "Pause E-mail", `href="/channels/email/pause?drop=1"`)
	g.Exec(`update slots set state = 'waiting', due_at = now() - interval '1 minute' where slot = 11`)
	viewer.Get(cockpitURL(d.ID)).Is(200).Has("The reminders 55 minutes before are due and have not started.", "Overdue")
}

// Slots that a move put into the past are due from the move on: they are fired at once, and are not
// shown as an hour overdue meanwhile.
func TestSlotsDueByAMoveAreNotOverdue(t *testing.T) {
	g := consoletest.New(t)
	d := g.Reopen(g.Published(10, 2*time.Hour).ID, 7*time.Minute-2*time.Hour)
	g.Exec(`insert into bookings values ($1, 12, 0, 4242), ($1, 1, 0, 17)`, d.ID)
	viewer := g.As(staff.Viewer)
	next := consoletest.Between(viewer.Get(shell.TemplateURL(d.ID)+"?tab=reminders").Is(200).HasNot("are due and have not started.").Body, "Next reminders", "</div>")
	if !strings.Contains(next, "17 reminders") {
		t.Errorf("next are %q", next)
	}
	viewer.Get(cockpitURL(d.ID)).Is(200).Has("5-minute reminders in").HasNot("are due and have not started.")
	viewer.Get("/").Is(200).HasNot("have not started")
	g.Exec(`update slots set planned_at = now() - interval '6 seconds' where slot = 11`)
	for _, page := range []string{shell.TemplateURL(d.ID), cockpitURL(d.ID)} {
		viewer.Get(page).Is(200).Has("The reminders 55 minutes before are due and have not started.").HasNot("The reminders 60 minutes before are due")
	}
}

// An event has a few bytes per change, in the viewer's language. A viewer that reconnects gets the
// missed changes.
func TestCockpitStream(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 1000, 40)
	english, chinese := g.As(staff.Viewer), g.As(staff.Viewer)
	chinese.Header.Set("Accept-Language", "zh-CN")
	chinese.Live = streamURL(d.ID)
	two, _ := chinese.Listen(d.ID, "")
	_, all := g.Cells(two)
	if all["s12.n"] != "40 / 1,000" || all["verdict"] == "" || len(all) < 100 {
		t.Errorf("a viewer who has nothing is sent %d values: %q", len(all), all["s12.n"])
	}
	// The page of a drop that is watched already shows a state that is remembered.
	page := english.Get(cockpitURL(d.ID)).Is(200).Body
	english.Live = streamURL(d.ID) + "?from=" + consoletest.Between(page, `data-stream-from="`, `"`)
	one, _ := english.Listen(d.ID, "")
	// until reads events, each with a few values, until an event changes name. The passing time
	// changes the curves as well.
	until := func(stream <-chan consoletest.Message, name string) (id string, cells map[string]string) {
		t.Helper()
		for cells[name] == "" {
			if id, cells = g.Cells(stream); len(cells) > 40 {
				t.Fatalf("%d values came: %v", len(cells), cells)
			}
		}
		return id, cells
	}
	g.Sending(d, 12, 1, 1000, 90)
	first, some := until(one, "s12.n")
	if some["s12.n"] != "90 of 1,000" || some["cemail.n"] != "90 of 1,000" || some["state"] != "" {
		t.Errorf("one batch went on: %v", some)
	}
	if _, some = until(two, "s12.n"); some["s12.n"] != "90 / 1,000" {
		t.Errorf("in another language: %v", some)
	}
	g.Sending(d, 12, 1, 1000, 95)
	second, _ := until(one, "s12.n")

	again := g.As(staff.Viewer)
	again.Live = streamURL(d.ID)
	behind, _ := again.Listen(d.ID, first)
	id, some := until(behind, "s12.n")
	if some["s12.n"] != "95 of 1,000" {
		t.Errorf("a viewer one state behind is sent %v", some)
	}
	for second != id { // time has passed since
		second, _ = g.Cells(one)
	}
	lost, _ := again.Listen(d.ID, "of long ago")
	if _, some := g.Cells(lost); len(some) < 100 {
		t.Errorf("a viewer of an unknown state is sent %d values", len(some))
	}
}

func TestCockpitStreamEnds(t *testing.T) {
	g := consoletest.New(t)
	d := g.Draft(10, 2*time.Hour)
	m := g.Hire(staff.Viewer)
	b := g.Browser()
	b.SignIn(m.Email)
	probe := g.As(staff.Viewer)
	probe.Live = streamURL(d.ID)
	looked, answered := probe.Listen(d.ID, "")
	b.Live = streamURL(d.ID) + "?from=" + g.Next(looked).ID
	answered.Body.Close()
	stream, _ := b.Listen(d.ID, "")
	consoletest.Within(t, "somebody watches", func() bool {
		return g.Watched() == 1
	})
	new := g.As(staff.Viewer)
	new.Live = streamURL(d.ID)
	first, answer := new.Listen(d.ID, "")
	g.Next(first) // the first look is over
	answer.Body.Close()
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.Must(err)
	if got := g.Next(stream); got.Event != "dropbell:reload" {
		t.Errorf("twelve slots appear on a page without any: %+v", got)
	}
	g.Exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.Wait(shell.PresenceLife)
	for got := g.Next(stream); got.Event != "dropbell:signed-out"; got = g.Next(stream) {
	}
	g.Ends(stream)
	after := g.As(staff.Viewer)
	after.Live = streamURL(d.ID)
	other, _ := after.Listen(d.ID, "")
	g.Next(other)
	g.Console.Close()
	g.Ends(other)
}

// There is one query a second whatever the number of viewers, and finished slots are not read
// again.
func TestCockpitLooksOnceForAll(t *testing.T) {
	l := &counted{Cockpit: reminder.Cockpit{At: time.Now(), Rows: []reminder.CockpitRow{{Slot: reminder.Slot{ID: 7, State: reminder.Finished}}, {Slot: reminder.Slot{ID: 8, State: reminder.Sending}}}}}
	g := consoletest.New(t, func(d *console.Deps) { d.Drops.Cockpits = countedStore{l} })
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	b.Live = streamURL(d.ID)
	var streams []<-chan consoletest.Message
	for range 20 {
		s, _ := b.Listen(d.ID, "")
		streams = append(streams, s)
	}
	for _, s := range streams {
		g.Cells(s)
	}
	for range 20 {
		b.Get(cockpitURL(d.ID)).Is(200)
	}
	l.mu.Lock()
	looks, spans, begun := l.looks, l.spans, l.begun
	l.mu.Unlock()
	if allowed := int(time.Since(begun)/time.Second) + 2; looks > allowed || spans != 1 {
		t.Errorf("twenty viewers and twenty pages cost %d looks and %d looks back, at most %d and 1 were due", looks, spans, allowed)
	}
	consoletest.Within(t, "a second look", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.looks > 1 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) != 1 || l.known[0].ID != 7 {
		t.Errorf("the second look was told of %+v", l.known)
	}
}

func TestCockpitWithoutBreakers(t *testing.T) {
	g := consoletest.New(t, consoletest.Breakers(func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		return all, errors.New("redis is away")
	}))
	d := g.Published(10, 2*time.Hour)
	g.Sending(d, 12, 1, 10, 4)
	b := g.As(staff.Viewer)
	b.Get(cockpitURL(d.ID)).Is(200).Has("Sending: 4 of 10")
	b.Get("/channels").Is(200).Has("Ready")
}

func TestPauseFromTheCockpit(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Operator)
	b.Get("/channels/email/pause?drop=1").Is(200).Has("Pause E-mail?", "All staff see your reason.", `name="drop" value="1"`, `href="`+cockpitURL(d.ID)+`"`)
	b.Post("/channels/email/pause", url.Values{"drop": {"1"}, "reason": {" "}}).Is(http.StatusUnprocessableEntity).Has("Say why", `name="drop" value="1"`)
	b.Post("/channels/email/pause", url.Values{"drop": {"1"}, "reason": {"provider is down"}}).To(cockpitURL(d.ID))
	g.Exec(`insert into bookings values ($1, 12, 1, 5)`, d.ID)
	g.As(staff.Viewer).Get(cockpitURL(d.ID)).Is(200).Has("E-mail is paused. Messages waiting: 5.", "provider is down (paused by The operator")
	b.Post("/channels/email/resume", url.Values{"drop": {"1"}}).To(cockpitURL(d.ID))
	b.Get(cockpitURL(d.ID)).Is(200).HasNot("provider is down")
	b.Post("/channels/email/pause", url.Values{"drop": {"//evil.example"}, "reason": {"x"}}).To("/channels")
	g.As(staff.Marketer).Post("/channels/email/pause", url.Values{"reason": {"x"}}).Is(http.StatusForbidden)
	var n int
	g.Must(g.SQL.QueryRow(t.Context(), `select count(*) from audit where action = 'channel.pause' and reason = 'provider is down'`).Scan(&n))
	if n != 1 {
		t.Errorf("%d audit entries", n)
	}
}

func TestCockpitLinks(t *testing.T) {
	g := consoletest.New(t)
	draft, near := g.Draft(10, 2*time.Hour), g.Published(10, 30*time.Hour)
	b := g.As(staff.Viewer)
	b.Get(shell.TemplateURL(draft.ID)).Is(200).HasNot(cockpitURL(draft.ID))
	b.Get(shell.TemplateURL(near.ID)).Is(200).Has(`href="` + cockpitURL(near.ID) + `"`)
	b.Get("/").Is(200).Has(`href="` + cockpitURL(near.ID) + `"`)
}

// Patches from one state of a page to another produce the same page as loading it anew, in every
// language.
func TestPatchesLeadToThePage(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	var before *drops.Snapshots
	have := map[*i18n.Locale]map[string]string{}
	for step := range 6 {
		g.Sending(d, 12-step/2, step%3, 100, 10*step+3)
		now, err := drops.Look(t.Context(), g.Shell, g.Given.Drops, d.ID, before)
		g.Must(err)
		for _, l := range g.Languages.All() {
			from := ""
			if before != nil {
				from = before.Digest()
			}
			if have[l] == nil {
				have[l] = map[string]string{}
			}
			var changed map[string]string
			g.Must(json.Unmarshal(now.Patch(from, l), &changed))
			for key, value := range changed {
				have[l][key] = value
			}
			if want := map[string]string(now.In(l)); fmt.Sprint(have[l]) != fmt.Sprint(want) {
				t.Fatalf("step %d in %s: the patched page is another", step, l.Tag)
			}
		}
		if now.Patch(now.Digest(), g.Languages.Default()) != nil {
			t.Error("who has the state is sent something")
		}
		before = now
	}
	for range 2 * drops.PastFaces {
		next, err := drops.Look(t.Context(), g.Shell, g.Given.Drops, d.ID, before)
		g.Must(err)
		g.Exec(`update batches set sent_count = sent_count + 1 where due_count > sent_count`)
		before = next
	}
	if before.Past() > drops.PastFaces {
		t.Errorf("%d states are kept", before.Past())
	}
}

// counted is a store that counts its calls.
type counted struct {
	reminder.Cockpit
	mu           sync.Mutex
	looks, spans int
	begun        time.Time
	known        []reminder.CockpitRow
}

func (c *counted) look(known []reminder.CockpitRow) reminder.Cockpit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.looks++; c.looks == 1 {
		c.begun = time.Now()
	}
	c.known = known
	return c.Cockpit
}

func (c *counted) lookBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans++
}

// countedStore gives the counter the name of the store's method: in counted the embedded field has
// taken this name.
type countedStore struct{ *counted }

func (c countedStore) Cockpit(_ context.Context, _ int64, known []reminder.CockpitRow) (reminder.Cockpit, error) {
	return c.look(known), nil
}

func (countedStore) SlotSpans(context.Context, int64) ([]reminder.Span, error) { return nil, nil }

func (c countedStore) Spans(context.Context, int64, time.Duration) ([]reminder.Span, error) {
	c.lookBack()
	return nil, nil
}
