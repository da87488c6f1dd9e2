package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// spread cuts and delivers the announcement.
func (g *rig) spread(id int64) {
	g.Helper()
	worker := &reminder.Announcer{Store: postgres.NewAnnouncements(g.db), Queue: idle{}, Now: g.now, LeaseFor: 10 * time.Second}
	g.must(worker.Cut(g.Context(), id))
	g.deliver(takes)
}

func TestCorrection(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.book(d, id, delivery.App, 60)
	}
	const page, send = "/templates/1/announcements", "/templates/1/announcements/correction"
	marketer, viewer := g.as(staff.Marketer), g.as(staff.Viewer)
	marketer.get(page).is(200).has("Nothing to correct")
	g.fire(d, 12, takes)
	marketer.get(send).is(http.StatusConflict) // nobody was told anything wrong
	g.reopen(d.ID, time.Hour)
	marketer.get(page).is(200).has("3 recipients were reminded of the old time.", "Send correction", send)
	viewer.get(page).is(200).has("Nothing to correct").hasNot(send)
	viewer.get(send).is(http.StatusForbidden)
	viewer.post(send, nil).is(http.StatusForbidden)
	marketer.get(send).is(200).has("Correct the opening of “Moon cake night”", "App 3", "Opt-outs are respected")
	marketer.get("/templates/1/announcements/cancelled").is(http.StatusConflict)
	marketer.get("/templates/1/announcements/campaign").is(http.StatusNotFound)
	for range 2 { // by an impatient finger
		marketer.post(send, nil).to("/templates/1")
	}
	a := marketer.get(page).is(200).has("waiting", "Recipients are being collected.", "The marketer", `data-live="`).hasNot("were reminded of the old time")
	if n := strings.Count(a.text(), "Correction about"); n != 1 {
		t.Errorf("%d corrections are listed", n)
	}
	g.spread(1)
	part := g.as(staff.Viewer).htmx()
	part.get(page).is(200).has("3 of 3 delivered.", "finished").hasNot("<html", "data-live")
}

// Whoever moves an opening there and back has to correct those who were told
// of the time in between.
func TestCorrectionThereAndBack(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60, 55)
	b := g.as(staff.Marketer)
	const page, send = "/templates/1/announcements", "/templates/1/announcements/correction"
	g.fire(d, 12, takes)
	g.reopen(d.ID, time.Hour)
	b.post(send, nil).to("/templates/1")
	g.spread(1)
	b.get(page).is(200).hasNot(send)
	g.reopen(d.ID, time.Hour)
	b.get(page).is(200).has(send) // the correction itself is wrong now
	b.post(send, nil).to("/templates/1")
	g.spread(2)
	b.get(page).is(200).hasNot(send)
	g.reopen(d.ID, -time.Hour)
	b.get(page).is(200).has(send) // the newest correction told of another opening
	b.post(send, nil).to("/templates/1")
	g.spread(3)
	b.get(page).is(200).hasNot(send)
	g.reopen(d.ID, time.Hour)
	// Announcements of one template are seconds apart; so is what follows.
	g.exec(`update announcements set created_at = created_at - interval '1 minute'`)
	g.fire(d, 11, takes)
	g.reopen(d.ID, -time.Hour)
	// The user was reminded of it since, but has had three corrections.
	b.get(page).is(200).hasNot(send).has("1 user is left out")
	g.exec(`delete from batches where kind = 'correction' and owner_id = 1`)
	b.get(page).is(200).has(send).hasNot("left out")
}

// TestNobodyAgainInTheConsole: the question says how many users have had a
// correction before; with the box ticked they get none.
func TestNobodyAgainInTheConsole(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.book(d, 1002, delivery.App, 55)
	b := g.as(staff.Marketer)
	const send = "/templates/1/announcements/correction"
	g.fire(d, 12, takes)
	g.reopen(d.ID, time.Hour)
	b.get(send).is(200).hasNot("nobody_again")
	b.post(send, nil).to("/templates/1")
	g.spread(1)
	g.fire(d, 11, takes)
	g.reopen(d.ID, time.Hour)
	b.get(send).is(200).has("1 of 2 users has had a correction of this drop before.", "nobody_again", "1 user would get it.")
	b.post(send, url.Values{"nobody_again": {"1"}}).to("/templates/1")
	g.spread(2)
	b.get("/templates/1/announcements").is(200).has("1 of 1 delivered.")
	g.exec(`update announcements set per_person = 3`)
	g.exec(`insert into announcements (template_id, kind, opens_at, created_by, created_at, worthless_after, state, superseded_at)
		select 1, 'correction', now() + n * interval '1 minute', 'x', now(), now(), 'finished', now() from generate_series(1, 3) n`)
	g.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, sent_count, sent, due_at, worthless_after, state, next_run_at)
		select 'correction', a.id, 1, 0, b.from_user, b.to_user, b.due_count, b.due, b.due_count, b.due, now(), now(), 'done', now()
		from announcements a, batches b where a.created_by = 'x' and b.kind = 'correction' and b.owner_id = 2`)
	g.reopen(d.ID, time.Hour)
	b.get(send).is(200).has("1 user is left out: no user gets more than 3 corrections of one drop.")
}

func TestNoticeOfCancellation(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	g.book(d, 1001, delivery.App, 60)
	g.book(d, 1001, delivery.Email, 60)
	g.book(d, 1002, delivery.App, 60)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Cancelling, "")
	g.must(err)
	b := g.as(staff.Marketer)
	b.get("/templates/1/announcements").is(200).has("3 recipients still expect this drop.", "Send notice")
	b.get("/templates/1/announcements/cancelled").is(200).has("Tell users that “Moon cake night” is cancelled", "App 2", "E-mail 1")
	b.post("/templates/1/announcements/cancelled", nil).to("/templates/1")
	b.get("/templates/1/announcements").is(200).has("Cancellation notice").hasNot("still expect this drop")
	g.shop(11)
	g.as(staff.Marketer, 11).post("/templates/1/announcements/cancelled", nil).is(http.StatusForbidden)
}

func TestNobodyToNotify(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 5*time.Hour)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Cancelling, "")
	g.must(err)
	b := g.as(staff.Marketer)
	b.get("/templates/1/announcements").is(200).has("Nothing to correct")
	b.get("/templates/1/announcements/cancelled").to("/templates/1")
	b.get("/templates/1").is(200).has("There is no recipient.")
}
