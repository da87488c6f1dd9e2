package console

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
	"dropbell/web/console/shell"
)

func cockpitURL(id int64) string { return shell.TemplateURL(id) + "/cockpit" }

func TestCockpitPage(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 5*time.Hour)
	viewer := g.as(staff.Viewer)
	viewer.get(cockpitURL(d.ID)).is(200).has("Moon cake night", "Draft", "Not published yet").hasNot("deck-slots")
	viewer.get(cockpitURL(77)).is(http.StatusNotFound)
	viewer.get(cockpitURL(77) + "/live").is(http.StatusNotFound)
	g.as(staff.Viewer, 11).get(cockpitURL(d.ID)).is(http.StatusForbidden)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.must(err)
	g.exec(`insert into bookings values ($1, 12, 0, 4242)`, d.ID)
	viewer.get(cockpitURL(d.ID)).is(200).has("60-minute reminders in", "All well: 4,242 reminders are booked", "4,242 booked",
		`data-countdown="`, "/cockpit/live").hasNot("Pause App")
	g.sending(d, 12, 1, 100, 40)
	g.as(staff.Operator).get(cockpitURL(d.ID)).is(200).has("Sending: 40 of 100 are out (40%).", "fired +42 ms", "late ≤ 100 ms", "Pause E-mail", `href="/channels/email/pause?drop=1"`)
	g.exec(`update slots set state = 'waiting', due_at = now() - interval '1 minute' where slot = 11`)
	viewer.get(cockpitURL(d.ID)).is(200).has("The slot 55 minutes before is due and has not fired.", "Overdue")
}

// Slots that a move put into the past are due from the move on: they go out at
// once, and nobody is told meanwhile that they should have gone an hour ago.
func TestSlotsDueByAMoveAreNotOverdue(t *testing.T) {
	g := newRig(t)
	d := g.reopen(g.published(10, 2*time.Hour).ID, 7*time.Minute-2*time.Hour)
	g.exec(`insert into bookings values ($1, 12, 0, 4242), ($1, 1, 0, 17)`, d.ID)
	viewer := g.as(staff.Viewer)
	next := between(viewer.get(shell.TemplateURL(d.ID)).is(200).hasNot("is due and has not fired.").body, "Next reminders", "</div>")
	if !strings.Contains(next, "17 reminders") {
		t.Errorf("next are %q", next)
	}
	viewer.get(cockpitURL(d.ID)).is(200).has("5-minute reminders in").hasNot("is due and has not fired.")
	viewer.get("/").is(200).hasNot("has not fired")
	g.exec(`update slots set planned_at = now() - interval '6 seconds' where slot = 11`)
	for _, page := range []string{shell.TemplateURL(d.ID), cockpitURL(d.ID)} {
		viewer.get(page).is(200).has("The slot 55 minutes before is due and has not fired.").hasNot("The slot 60 minutes before is due")
	}
}

// A few bytes per change, in the viewer's language; whoever comes back is sent
// what they missed.
func TestCockpitStream(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 1000, 40)
	english, chinese := g.as(staff.Viewer), g.as(staff.Viewer)
	chinese.header.Set("Accept-Language", "zh-CN")
	page := english.get(cockpitURL(d.ID)).is(200).body
	from := between(page, `data-stream-from="`, `"`)

	english.live = cockpitURL(d.ID) + "/live?from=" + from
	one, _ := english.listen(d.ID, "")
	chinese.live = cockpitURL(d.ID) + "/live"
	two, _ := chinese.listen(d.ID, "")
	_, all := g.cells(two)
	if all["s12.n"] != "40 / 1,000" || all["verdict"] == "" || len(all) < 100 {
		t.Errorf("a viewer who has nothing is sent %d values: %q", len(all), all["s12.n"])
	}
	g.sending(d, 12, 1, 1000, 90)
	first, some := g.cells(one)
	if some["s12.n"] != "90 of 1,000" || some["cemail.n"] != "90 of 1,000" || some["state"] != "" || len(some) > 40 {
		t.Errorf("one batch went on and %d values came: %v", len(some), some)
	}
	if _, some = g.cells(two); some["s12.n"] != "90 / 1,000" {
		t.Errorf("in another language: %v", some)
	}
	g.sending(d, 12, 1, 1000, 95)
	second, _ := g.cells(one)

	again := g.as(staff.Viewer)
	again.live = cockpitURL(d.ID) + "/live"
	behind, _ := again.listen(d.ID, first)
	if id, some := g.cells(behind); id != second || some["s12.n"] != "95 of 1,000" || len(some) > 40 {
		t.Errorf("a viewer one state behind is sent %d values up to %s, want %s", len(some), id, second)
	}
	lost, _ := again.listen(d.ID, "of long ago")
	if _, some := g.cells(lost); len(some) < 100 {
		t.Errorf("a viewer of an unknown state is sent %d values", len(some))
	}
}

func TestCockpitStreamEnds(t *testing.T) {
	g := newRig(t)
	d := g.draft(10, 2*time.Hour)
	m := g.hire(staff.Viewer)
	b := g.browser()
	b.signIn(m.Email)
	b.live = cockpitURL(d.ID) + "/live?from=" + between(b.get(cockpitURL(d.ID)).body, `data-stream-from="`, `"`)
	stream, _ := b.listen(d.ID, "")
	within(t, "somebody watches", func() bool {
		return g.Watched() == 1
	})
	new := g.as(staff.Viewer)
	new.live = cockpitURL(d.ID) + "/live"
	first, answer := new.listen(d.ID, "")
	g.next(first) // the first look is over
	answer.Body.Close()
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Publishing, "")
	g.must(err)
	if got := g.next(stream); got.event != "dropbell:reload" {
		t.Errorf("twelve slots appear on a page without any: %+v", got)
	}
	g.exec(`update staff set disabled_at = now() where id = $1`, m.ID)
	g.wait(shell.PresenceLife)
	for got := g.next(stream); got.event != "dropbell:signed-out"; got = g.next(stream) {
	}
	g.ends(stream)
	after := g.as(staff.Viewer)
	after.live = cockpitURL(d.ID) + "/live"
	other, _ := after.listen(d.ID, "")
	g.next(other)
	g.Console.Close()
	g.ends(other)
}

// One look a second whoever watches, and finished slots are not read again.
func TestCockpitLooksOnceForAll(t *testing.T) {
	l := &counted{Cockpit: reminder.Cockpit{At: time.Now(), Rows: []reminder.CockpitRow{{Slot: reminder.Slot{ID: 7, State: reminder.Finished}}, {Slot: reminder.Slot{ID: 8, State: reminder.Sending}}}}}
	g := newRig(t, func(d *Deps) { d.Drops.Cockpits = countedStore{l} })
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.live = cockpitURL(d.ID) + "/live"
	var streams []<-chan message
	for range 20 {
		s, _ := b.listen(d.ID, "")
		streams = append(streams, s)
	}
	for _, s := range streams {
		g.cells(s)
	}
	for range 20 {
		b.get(cockpitURL(d.ID)).is(200)
	}
	l.mu.Lock()
	looks, spans, begun := l.looks, l.spans, l.begun
	l.mu.Unlock()
	if allowed := int(time.Since(begun)/time.Second) + 2; looks > allowed || spans != 1 {
		t.Errorf("twenty viewers and twenty pages cost %d looks and %d looks back, at most %d and 1 were due", looks, spans, allowed)
	}
	within(t, "a second look", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.looks > 1 })
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) != 1 || l.known[0].ID != 7 {
		t.Errorf("the second look was told of %+v", l.known)
	}
}

func TestCockpitWithoutBreakers(t *testing.T) {
	g := newRig(t, breakers(func(context.Context) (all [delivery.Channels]delivery.Circuit, err error) {
		return all, errors.New("redis is away")
	}))
	d := g.published(10, 2*time.Hour)
	g.sending(d, 12, 1, 10, 4)
	b := g.as(staff.Viewer)
	b.get(cockpitURL(d.ID)).is(200).has("Sending: 4 of 10")
	b.get("/channels").is(200).has("ready")
}

func TestPauseFromTheCockpit(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Operator)
	b.get("/channels/email/pause?drop=1").is(200).has("Pause E-mail?", "Everybody sees your reason.", `name="drop" value="1"`, `href="`+cockpitURL(d.ID)+`"`)
	b.post("/channels/email/pause", url.Values{"drop": {"1"}, "reason": {" "}}).is(http.StatusUnprocessableEntity).has("is required", `name="drop" value="1"`)
	b.post("/channels/email/pause", url.Values{"drop": {"1"}, "reason": {"provider is down"}}).to(cockpitURL(d.ID))
	g.exec(`insert into bookings values ($1, 12, 1, 5)`, d.ID)
	g.as(staff.Viewer).get(cockpitURL(d.ID)).is(200).has("E-mail is paused: 5 messages wait for it.", "provider is down (paused by The operator")
	b.post("/channels/email/resume", url.Values{"drop": {"1"}}).to(cockpitURL(d.ID))
	b.get(cockpitURL(d.ID)).is(200).hasNot("provider is down")
	b.post("/channels/email/pause", url.Values{"drop": {"//evil.example"}, "reason": {"x"}}).to("/channels")
	g.as(staff.Marketer).post("/channels/email/pause", url.Values{"reason": {"x"}}).is(http.StatusForbidden)
	var n int
	g.must(g.sql.QueryRow(t.Context(), `select count(*) from audit where action = 'channel.pause' and reason = 'provider is down'`).Scan(&n))
	if n != 1 {
		t.Errorf("%d audit entries", n)
	}
}

func TestCockpitLinks(t *testing.T) {
	g := newRig(t)
	draft, far, near := g.draft(10, 2*time.Hour), g.published(10, 30*time.Hour), g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.get(shell.TemplateURL(draft.ID)).is(200).hasNot(cockpitURL(draft.ID))
	link := func(id int64) string {
		body := b.get(shell.TemplateURL(id)).is(200).body
		i := strings.Index(body, `href="`+cockpitURL(id)+`"`)
		if i < 0 {
			t.Fatalf("template %d does not lead to its cockpit", id)
		}
		return body[strings.LastIndex(body[:i], "<a"):i]
	}
	if strings.Contains(link(far.ID), "is-primary") || !strings.Contains(link(near.ID), "is-primary") {
		t.Error("the cockpit is not prominent from a day before")
	}
	b.get("/").is(200).has(`href="` + cockpitURL(near.ID) + `"`)
	g.exec(`update templates set opens_at = date_trunc('second', now() - interval '50 minutes'), closes_at = now() + interval '1 hour' where id = $1`, near.ID)
	if !strings.Contains(link(near.ID), "is-primary") {
		t.Error("the cockpit is not prominent after the opening")
	}
	g.wait(20 * time.Minute)
	if strings.Contains(link(near.ID), "is-primary") {
		t.Error("the cockpit is prominent an hour after the opening")
	}
}

// Whatever brings a page from one state to another leads to the same page as
// loading it anew, in every language.
func TestPatchesLeadToThePage(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	var before *deck
	have := map[*i18n.Locale]map[string]string{}
	for step := range 6 {
		g.sending(d, 12-step/2, step%3, 100, 10*step+3)
		now, err := lookAt(t.Context(), g, d.ID, before)
		g.must(err)
		for _, l := range g.Languages.All() {
			from := ""
			if before != nil {
				from = before.page.Sum
			}
			if have[l] == nil {
				have[l] = map[string]string{}
			}
			var changed map[string]string
			g.must(json.Unmarshal(now.patch(from, l), &changed))
			for key, value := range changed {
				have[l][key] = value
			}
			if want := map[string]string(now.in(l)); fmt.Sprint(have[l]) != fmt.Sprint(want) {
				t.Fatalf("step %d in %s: the patched page is another", step, l.Tag)
			}
		}
		if now.patch(now.page.Sum, g.Languages.Default()) != nil {
			t.Error("who has the state is sent something")
		}
		before = now
	}
	for range 2 * pastFaces {
		next, err := lookAt(t.Context(), g, d.ID, before)
		g.must(err)
		g.exec(`update batches set sent_count = sent_count + 1 where due_count > sent_count`)
		before = next
	}
	if len(before.past) > pastFaces {
		t.Errorf("%d states are kept", len(before.past))
	}
}

// counted is a store that counts how often it is asked.
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

// countedStore gives the counter the store's name for its method, which the
// embedded value has taken.
type countedStore struct{ *counted }

func (c countedStore) Cockpit(_ context.Context, _ int64, known []reminder.CockpitRow) (reminder.Cockpit, error) {
	return c.look(known), nil
}

func (c countedStore) Spans(context.Context, int64, time.Duration) ([]reminder.Span, error) {
	c.lookBack()
	return nil, nil
}
