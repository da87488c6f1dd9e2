package drops_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/report"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

func shareEntry(action string) staff.Entry {
	return staff.Entry{Actor: staff.Actor{Label: "staff:1", Name: "Ada"}, Action: action, ObjectKind: "template", ObjectID: "1"}
}

// TestReportCountsPeople: a user is counted once, however much the user booked,
// got and used. A user who has cancelled everything does not count as having
// booked.
func TestReportCountsPeople(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	reports := dropsdb.NewReports(m.DB)
	tpl, other := m.Published(2*time.Hour), m.Published(3*time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 50), pgtest.Reminders(delivery.Webhook, 5, 60)...)
	m.ReserveAll(other, pgtest.Users(1, 5), pgtest.Reminders(delivery.Webhook, 5)...)
	m.CutSlot(tpl, 12, 20)
	m.Drain()
	m.CutSlot(tpl, 1, 20)
	m.Drain()
	m.Exec(`insert into claim_counts select $1, n, 1 from generate_series(41, 70) n`, tpl.ID)
	m.Fill("coupons", "generate_series(1, 4) n", pgtest.Row{"template_id": tpl.ID, "user_id": pgtest.SQL("41 + n % 2"), "state": "used",
		"order_id": pgtest.SQL("n"), "used_at": pgtest.SQL("now()")})
	m.Exec(`insert into drop_openings select $1, n, 12, 4, now() from generate_series(6, 60) n`, tpl.ID)
	want := report.People{Booked: 50, Reminded: 50, Opened: 45, Claimed: 10, Used: 2, Others: 20}
	if got, err := reports.People(t.Context(), tpl.ID); got != want || err != nil {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	m.Exec(`delete from reservations where template_id = $1 and user_id <= 10`, tpl.ID) // as one who has cancelled
	want = report.People{Booked: 40, Reminded: 40, Opened: 40, Claimed: 10, Used: 2, Others: 20}
	if got, err := reports.People(t.Context(), tpl.ID); got != want || err != nil {
		t.Errorf("after cancelling: %+v (%v), want %+v", got, err, want)
	}
	m.Exec(`update slot_results set archived = true`)
	if got, err := reports.People(t.Context(), tpl.ID); !got.Partial || err != nil {
		t.Errorf("after the retention: %+v (%v)", got, err)
	}
	if got, err := reports.People(t.Context(), 999); got != (report.People{}) || err != nil {
		t.Errorf("no drop: %+v (%v)", got, err)
	}
}

// A link opens the report until it expires or is revoked, by the database's clock.
func TestReportLinks(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	ctx, reports := t.Context(), dropsdb.NewReports(m.DB)
	tpl, other := m.Published(2*time.Hour), m.Published(3*time.Hour)
	add := func(tpl template.Template) report.Link {
		t.Helper()
		l, err := reports.AddLink(ctx, tpl.ID, time.Hour, 20, shareEntry("template.report_share"))
		m.Must(err)
		return l
	}
	opens := func(l report.Link, want error) {
		t.Helper()
		id, err := reports.OpenLink(ctx, l.ID)
		if !errors.Is(err, want) || want == nil && id != l.TemplateID {
			t.Errorf("link %d leads to %d: %v, want %v", l.ID, id, err, want)
		}
	}
	one, two := add(tpl), add(tpl)
	if one.TemplateID != tpl.ID || one.CreatedBy != "staff:1 Ada" || one.ExpiresAt.Sub(one.CreatedAt) < 59*time.Minute {
		t.Errorf("%+v", one)
	}
	opens(one, nil)
	opens(report.Link{ID: 999}, report.ErrNoLink)
	revoke := func(tpl template.Template, l report.Link) error {
		return reports.RevokeLink(ctx, tpl.ID, l.ID, shareEntry("template.report_revoke"))
	}
	if err := revoke(other, one); !errors.Is(err, report.ErrNoLink) {
		t.Errorf("revoked by way of another drop: %v", err)
	}
	m.Must(revoke(tpl, one))
	m.Must(revoke(tpl, one)) // again
	opens(one, report.ErrNoLink)
	opens(two, nil)
	m.Exec(`update report_links set created_at = clock_timestamp() - interval '2 hours', expires_at = clock_timestamp() where id = $1`, two.ID)
	opens(two, report.ErrNoLink)
	m.Must(revoke(tpl, two)) // it has ended anyway
	if n := m.Number(`select count(*) from audit where action = 'template.report_revoke'`); n != 1 {
		t.Errorf("%d revocations in the audit log", n)
	}
	list, err := reports.Links(ctx, tpl.ID, 10)
	if err != nil || len(list) != 2 || list[0].ID != two.ID || list[1].RevokedAt == nil || list[0].RevokedAt != nil {
		t.Errorf("%+v (%v)", list, err)
	}
}

// However many are made at once, a drop has at most so many valid links.
func TestReportLinksAreLimited(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	reports, tpl := dropsdb.NewReports(m.DB), m.Published(2*time.Hour)
	var all sync.WaitGroup
	results := make(chan error, 12)
	for range cap(results) {
		all.Go(func() {
			_, err := reports.AddLink(t.Context(), tpl.ID, time.Hour, 5, shareEntry("template.report_share"))
			results <- err
		})
	}
	all.Wait()
	close(results)
	refused := 0
	for err := range results {
		if errors.Is(err, report.ErrTooManyLinks) {
			refused++
		} else {
			m.Must(err)
		}
	}
	if n := m.Number(`select count(*) from report_links`); n != 5 || refused != 7 {
		t.Errorf("%d links, %d refused", n, refused)
	}
	m.Exec(`update report_links set revoked_at = now() where id = (select min(id) from report_links)`)
	if _, err := reports.AddLink(t.Context(), tpl.ID, time.Hour, 5, shareEntry("template.report_share")); err != nil {
		t.Errorf("after one was revoked: %v", err)
	}
}
