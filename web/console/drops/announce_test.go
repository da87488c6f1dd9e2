package drops_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

func TestCorrection(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	for id := user.ID(1001); id <= 1003; id++ {
		g.Book(d, id, delivery.App, 60)
	}
	const page, send = "/templates/1/announcements", "/templates/1/announcements/correction"
	marketer, viewer := g.As(staff.Marketer), g.As(staff.Viewer)
	marketer.Get(page).Is(200).Has("Nothing to correct")
	g.Fire(d, 12, consoletest.Takes)
	marketer.Get(send).Is(http.StatusConflict) // no reminder was wrong
	g.Reopen(d.ID, time.Hour)
	marketer.Get(page).Is(200).Has("3 recipients were reminded of the old time.", "Send correction", send)
	viewer.Get(page).Is(200).Has("Nothing to correct").HasNot(send)
	viewer.Get(send).Is(http.StatusForbidden)
	viewer.Post(send, nil).Is(http.StatusForbidden)
	marketer.Get(send).Is(200).Has("Correct the opening of “Moon cake night”", "App 3", "Opt-outs are respected")
	marketer.Get("/templates/1/announcements/cancelled").Is(http.StatusConflict)
	marketer.Get("/templates/1/announcements/campaign").Is(http.StatusNotFound)
	for range 2 { // by an impatient finger
		marketer.Post(send, nil).To("/templates/1")
	}
	a := marketer.Get(page).Is(200).Has("Waiting", "Recipients are being collected.", "The marketer", `data-live="`).HasNot("were reminded of the old time")
	if n := strings.Count(a.Text(), "Correction about"); n != 1 {
		t.Errorf("%d corrections are listed", n)
	}
	g.Spread(1)
	part := g.As(staff.Viewer).Htmx()
	part.Get(page).Is(200).Has("3 of 3 sent.", "Finished").HasNot("<html", "data-live")
}

// After an opening was moved and moved back, a correction is needed for users who were reminded in
// between.
func TestCorrectionThereAndBack(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60, 55)
	b := g.As(staff.Marketer)
	const page, send = "/templates/1/announcements", "/templates/1/announcements/correction"
	g.Fire(d, 12, consoletest.Takes)
	g.Reopen(d.ID, time.Hour)
	b.Post(send, nil).To("/templates/1")
	g.Spread(1)
	b.Get(page).Is(200).HasNot(send)
	g.Reopen(d.ID, time.Hour)
	b.Get(page).Is(200).Has(send) // the correction itself is wrong now
	b.Post(send, nil).To("/templates/1")
	g.Spread(65)
	b.Get(page).Is(200).HasNot(send)
	g.Reopen(d.ID, -time.Hour)
	b.Get(page).Is(200).Has(send) // the newest correction told of another opening
	b.Post(send, nil).To("/templates/1")
	g.Spread(129)
	b.Get(page).Is(200).HasNot(send)
	g.Reopen(d.ID, time.Hour)
	// Announcements of one template are seconds apart, and so are the reminders after them.
	g.Exec(`update announcements set created_at = created_at - interval '1 minute'`)
	g.Fire(d, 11, consoletest.Takes)
	g.Reopen(d.ID, -time.Hour)
	// The user was reminded of it since, but has had three corrections.
	b.Get(page).Is(200).HasNot(send).Has("1 customer is left out")
	g.Exec(`delete from batches where kind = 'correction' and owner_id = 1`)
	b.Get(page).Is(200).Has(send).HasNot("left out")
}

// TestNobodyAgainInTheConsole: the confirmation says how many users already had a correction. With
// the box ticked these users get no further correction.
func TestNobodyAgainInTheConsole(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Book(d, 1002, delivery.App, 55)
	b := g.As(staff.Marketer)
	const send = "/templates/1/announcements/correction"
	g.Fire(d, 12, consoletest.Takes)
	g.Reopen(d.ID, time.Hour)
	b.Get(send).Is(200).HasNot("nobody_again")
	b.Post(send, nil).To("/templates/1")
	g.Spread(1)
	g.Fire(d, 11, consoletest.Takes)
	g.Reopen(d.ID, time.Hour)
	b.Get(send).Is(200).Has("1 of 2 customers has already received a correction for this drop.", "nobody_again", "1 customer would get it.")
	b.Post(send, url.Values{"nobody_again": {"1"}}).To("/templates/1")
	g.Spread(65)
	b.Get("/templates/1/announcements").Is(200).Has("1 of 1 sent.")
	g.Exec(`update announcements set per_person = 3`)
	g.Exec(`insert into announcements (template_id, kind, opens_at, created_by, created_at, worthless_after, state, superseded_at)
		select 1, 'correction', now() + n * interval '1 minute', 'x', now(), now(), 'finished', now() from generate_series(1, 3) n`)
	g.Exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, due_count, due, sent_count, sent, due_at, worthless_after, state, next_run_at)
		select 'correction', a.id, 1, 0, b.from_user, b.to_user, b.due_count, b.due, b.due_count, b.due, now(), now(), 'done', now()
		from announcements a, batches b where a.created_by = 'x' and b.kind = 'correction' and b.owner_id = 65`)
	g.Reopen(d.ID, time.Hour)
	b.Get(send).Is(200).Has("1 customer is left out: no customer gets more than 3 corrections of one drop.")
}

func TestNoticeOfCancellation(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	g.Book(d, 1001, delivery.App, 60)
	g.Book(d, 1001, delivery.Email, 60)
	g.Book(d, 1002, delivery.App, 60)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Cancelling, "")
	g.Must(err)
	b := g.As(staff.Marketer)
	b.Get("/templates/1/announcements").Is(200).Has("3 recipients still expect this drop.", "Send notice")
	b.Get("/templates/1/announcements/cancelled").Is(200).Has("Notify customers that “Moon cake night” is cancelled", "App 2", "E-mail 1")
	b.Post("/templates/1/announcements/cancelled", nil).To("/templates/1")
	b.Get("/templates/1/announcements").Is(200).Has("Cancellation notice").HasNot("still expect this drop")
	g.Shop(11)
	g.As(staff.Marketer, 11).Post("/templates/1/announcements/cancelled", nil).Is(http.StatusForbidden)
}

func TestNobodyToNotify(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 5*time.Hour)
	_, err := g.Templates.Do(t.Context(), staff.System(), d.ID, 0, template.Cancelling, "")
	g.Must(err)
	b := g.As(staff.Marketer)
	b.Get("/templates/1/announcements").Is(200).Has("Nothing to correct")
	b.Get("/templates/1/announcements/cancelled").To("/templates/1")
	b.Get("/templates/1").Is(200).Has("There is no recipient.")
}
