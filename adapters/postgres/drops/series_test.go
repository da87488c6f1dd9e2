package drops_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/postgres"
	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/series"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// daily is a world with a daily series that publishes its drops; the first opens within a day.
type daily struct {
	*fixture
	store    dropsdb.Series
	service  *series.Service
	keeper   *series.Keeper
	standing *series.Reservations
	series   series.Series
}

func newDaily(t *testing.T, change func(*series.Spec)) *daily {
	t.Helper()
	g := &daily{fixture: newFixture(t)}
	g.store = dropsdb.NewSeries(g.DB)
	g.service = &series.Service{Store: g.store, Models: template.Models{Store: dropsdb.NewModels(g.DB), Templates: g.Service}, Templates: g.Service, Now: pgtest.Clock}
	g.keeper = &series.Keeper{Store: g.store, Templates: g.Service}
	g.standing = &series.Reservations{Store: g.store, Channels: delivery.ChannelSetOf(delivery.App, delivery.Email, delivery.WebPush)}
	from := g.Draft(nil)
	// The clock is 23 hours from now, so that no drop opens during the test.
	spec := series.Spec{Name: "Daily", Recurrence: series.Recurrence{Rule: "FREQ=DAILY", Starts: series.DayOf(pgtest.Clock()).Add(-3)},
		Clock: series.ClockOf(pgtest.Clock().Add(23 * time.Hour)), Publishes: true}
	if change != nil {
		change(&spec)
	}
	var err error
	g.series, err = g.service.Create(t.Context(), staff.System(), spec, series.Start{TemplateID: from.ID}, "key")
	g.Must(err)
	return g
}

func (g *daily) sweep() {
	g.Helper()
	g.Must(g.keeper.Sweep(g.Context()))
}

// drops returns the drops to come.
func (g *daily) drops() (list []template.Template) {
	g.Helper()
	v, err := g.service.View(g.Context(), staff.System(), g.series.ID)
	g.Must(err)
	for _, o := range v.Occurrences {
		t, err := g.Templates.Template(g.Context(), o.TemplateID)
		g.Must(err)
		if t.OpensAt.After(pgtest.Clock()) {
			list = append(list, t)
		}
	}
	return list
}

func (g *daily) stand(id user.ID, rs ...reminder.Reminder) bool {
	g.Helper()
	_, created, err := g.standing.Reserve(g.Context(), series.Request{SeriesID: g.series.ID, UserID: id, ShopNumber: 10, Reminders: rs})
	g.Must(err)
	return created
}

// bits are the reminders of the user for the drop; 0 = no reservation.
func (g *daily) bits(t template.Template, id user.ID) int64 {
	g.Helper()
	return g.Number(`select coalesce((select slots from reservations where template_id = $1 and user_id = $2), 0)`, t.ID, id)
}

// TestSeriesCreatesFourAhead: keepers that run at once create and publish four drops, each once and with its line in
// the audit log; a second sweep changes nothing.
func TestSeriesCreatesFourAhead(t *testing.T) {
	g := newDaily(t, nil)
	again, err := g.service.Create(t.Context(), staff.System(), g.series.Spec, series.Start{TemplateID: 1}, "key")
	if g.Must(err); again.ID != g.series.ID {
		t.Errorf("a repeated creation made series %d", again.ID)
	}
	for _, err := range pgtest.Together(4, func(int) error { return g.keeper.Sweep(t.Context()) }) {
		g.Must(err)
	}
	g.sweep()
	drops := g.drops()
	if len(drops) != series.Ahead {
		t.Fatalf("%d drops", len(drops))
	}
	for i, d := range drops {
		if d.Stored != template.Published || d.SeriesID != g.series.ID || i > 0 && !d.OpensAt.Equal(drops[i-1].OpensAt.Add(24*time.Hour)) {
			t.Errorf("drop %d: %s, opens at %s, of series %d", i, d.Stored, d.OpensAt, d.SeriesID)
		}
	}
	if n := g.Number(`select count(*) from templates`); n != series.Ahead+1 {
		t.Errorf("%d templates", n)
	}
	if n := g.Number(`select count(*) from audit where action = 'template.publish' and actor like 'system%'`); n != series.Ahead {
		t.Errorf("%d publications in the audit log", n)
	}
	if n := g.Number(`select count(*) from series where due_at > now() + interval '22 hours'`); n != 1 {
		t.Error("the series is not due when its next drop opens")
	}
	some, err := g.DB.Ask(t.Context(), []postgres.Question{dropsdb.SeriesWait})
	if g.Must(err); some[0] {
		t.Error("the sweep waits for something")
	}
}

// TestSeriesEdits: an edit of all to come changes the series and its drops, those that staff changed alone stay; a
// refusal is kept with the drop and is told of; skipped drafts are deleted, and come back.
func TestSeriesEdits(t *testing.T) {
	g := newDaily(t, func(s *series.Spec) { s.Publishes = false })
	g.sweep()
	drops := g.drops()
	alone := drops[1]
	own := alone.Spec
	own.Stock = 777
	_, err := g.Service.Edit(t.Context(), staff.System(), alone.ID, template.Edition{Version: alone.Version, Spec: own})
	g.Must(err)

	all := drops[0].Spec
	all.Stock, all.Name = 300, "Better"
	all.OpensAt, all.ClosesAt = all.OpensAt.Add(-time.Minute), all.ClosesAt.Add(time.Hour)
	if _, err := g.service.EditAll(t.Context(), staff.System(), drops[0].ID, template.Edition{Version: drops[0].Version + 1, Spec: all}); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a stale edit: %v", err)
	}
	_, err = g.service.EditAll(t.Context(), staff.System(), drops[0].ID, template.Edition{Version: drops[0].Version, Spec: all})
	g.Must(err)
	g.sweep()
	for i, d := range g.drops() {
		switch {
		case i == 1 && (d.Stock != 777 || d.Name != alone.Name || !d.OpensAt.Equal(alone.OpensAt)):
			t.Errorf("the drop that staff changed: %+v", d.Spec)
		case i != 1 && (d.Stock != 300 || d.Name != "Better" || !d.OpensAt.Equal(drops[i].OpensAt.Add(-time.Minute)) || d.ClosesAt.Sub(d.OpensAt) != 2*time.Hour+time.Minute):
			t.Errorf("drop %d: %+v", i, d.Spec)
		}
	}

	now, err := g.store.Series(t.Context(), g.series.ID)
	g.Must(err)
	skip := now.Spec
	skip.Skips = []series.Day{series.DayOf(drops[1].OpensAt), series.DayOf(drops[2].OpensAt)}
	edited, err := g.service.Edit(t.Context(), staff.System(), now.ID, series.Edition{Version: now.Version, Spec: skip})
	g.Must(err)
	if _, err := g.service.Edit(t.Context(), staff.System(), now.ID, series.Edition{Version: now.Version, Spec: skip}); !errors.Is(err, fault.ErrStale) {
		t.Errorf("a stale edit: %v", err)
	}
	g.sweep()
	if _, err := g.Templates.Template(t.Context(), drops[2].ID); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("the draft of a skipped day: %v", err)
	}
	if list := g.drops(); len(list) != 5 || list[1].ID != alone.ID { // the drop that staff changed stays, and is told of
		t.Errorf("%d drops", len(list))
	}
	refused, err := g.store.Refused(t.Context(), 10)
	if g.Must(err); len(refused) != 1 || refused[0].TemplateID != alone.ID {
		t.Errorf("told of: %+v", refused)
	}
	back := edited.Spec
	back.Skips = nil
	edited, err = g.service.Edit(t.Context(), staff.System(), now.ID, series.Edition{Version: edited.Version, Spec: back})
	g.Must(err)
	g.sweep()
	if list := g.drops(); len(list) < 4 || list[2].ID == drops[2].ID || !list[2].OpensAt.Equal(drops[2].OpensAt.Add(-time.Minute)) {
		t.Errorf("the day that came back: %+v", list)
	}

	// A series that publishes what cannot be published leaves a draft with the reason.
	g.Service.Flight = func(_ context.Context, _ template.Template, reason string) error { // as a red flight check does
		if reason != "" {
			return nil
		}
		return template.ErrTransition.Because("no")
	}
	publish := edited.Spec
	publish.Publishes = true
	_, err = g.service.Edit(t.Context(), staff.System(), now.ID, series.Edition{Version: edited.Version, Spec: publish})
	g.Must(err)
	g.sweep()
	if refused, err = g.store.Refused(t.Context(), 10); err != nil || len(refused) != 5 {
		t.Errorf("told of: %+v, %v", refused, err)
	}
	for _, d := range g.drops() {
		if d.Stored != template.Draft {
			t.Errorf("drop %d is %s", d.ID, d.Stored)
		}
	}
	v, err := g.service.View(t.Context(), staff.System(), now.ID)
	if g.Must(err); v.Occurrences[0].Why == nil || v.Occurrences[0].Why.Text != "no" || v.Occurrences[0].Why.Code != template.ErrTransition.Code {
		t.Errorf("why: %+v", v.Occurrences[0].Why)
	}
	for _, step := range []series.Step{series.Pausing, series.Pausing, series.Resuming, series.Ending, series.Ending} {
		_, err := g.service.Take(t.Context(), staff.System(), now.ID, step, "")
		g.Must(err)
	}
	if _, err := g.service.Take(t.Context(), staff.System(), now.ID, series.Resuming, ""); !errors.Is(err, series.ErrTransition) {
		t.Errorf("an ended series is resumed: %v", err)
	}
	if n := g.Number(`select count(*) from audit where object_kind = 'series'`); n != 8 {
		t.Errorf("%d lines in the audit log", n)
	}
}

// TestHolidaysOfAShop: a holiday has no drop; a published drop of it stays, and is told of.
func TestHolidaysOfAShop(t *testing.T) {
	g := newDaily(t, func(s *series.Spec) { s.SkipsHolidays = true })
	g.sweep()
	drops := g.drops()
	days := []series.Day{series.DayOf(drops[1].OpensAt), series.DayOf(drops[3].OpensAt).Add(1)}
	g.Must(g.service.SetHolidays(t.Context(), staff.System(), 10, days))
	g.sweep()
	list := g.drops()
	if len(list) != 5 || list[1].ID != drops[1].ID || series.DayOf(list[4].OpensAt) != series.DayOf(drops[3].OpensAt).Add(2) {
		t.Errorf("%d drops: %+v", len(list), list)
	}
	refused, err := g.store.Refused(t.Context(), 10)
	if g.Must(err); len(refused) != 1 || refused[0].TemplateID != drops[1].ID {
		t.Errorf("told of: %+v", refused)
	}
	g.Must(g.service.SetHolidays(t.Context(), staff.System(), 10, nil))
	g.sweep()
	if refused, err := g.store.Refused(t.Context(), 10); err != nil || len(refused) != 0 {
		t.Errorf("told of: %+v, %v", refused, err)
	}
}

// TestStandingReservations: a standing reservation is copied to each drop once it is published. A user's own
// reservation, and a cancellation, win over the copy; ending it cancels what was copied and nothing else.
func TestStandingReservations(t *testing.T) {
	g := newDaily(t, func(s *series.Spec) { s.Publishes = false })
	ten, five := pgtest.Reminders(delivery.App, 10), pgtest.Reminders(delivery.Email, 5, 60)
	const early, own, gone, late, fickle = 1, 2, 3, 4, 5
	for _, id := range []user.ID{early, own, gone, fickle} {
		if !g.stand(id, ten...) {
			t.Errorf("the standing reservation of user %d is not new", id)
		}
	}
	if g.stand(early, ten...) {
		t.Error("a repeated one is new")
	}
	g.sweep()
	drops := g.drops()
	if n := g.Number(`select count(*) from reservations`); n != 0 {
		t.Fatalf("%d reservations of drafts", n)
	}
	// While the drop is published and not copied to, a user reserves for it and another reserves and cancels.
	first := g.Do(drops[0], template.Publishing)
	g.Reserve(first, own, five...)
	g.Reserve(first, gone, five...)
	g.Cancel(first, gone)
	for _, err := range pgtest.Together(3, func(int) error { return g.keeper.Sweep(t.Context()) }) {
		g.Must(err)
	}
	g.sweep()
	app10, mail := reminder.BitmapOf(ten...).Int64(), reminder.BitmapOf(five...).Int64()
	for id, want := range map[user.ID]int64{early: app10, own: mail, gone: 0, fickle: app10, late: 0} {
		if got := g.bits(first, id); got != want {
			t.Errorf("user %d has %d, want %d", id, got, want)
		}
	}
	if n := g.Number(`select reminded from series_drops where template_id = $1 and copied_at is not null`, first.ID); n != 2 {
		t.Errorf("copied to %d users", n)
	}
	g.RelayCounts()
	if n := g.Number(`select coalesce(sum(booked), 0) from bookings where template_id = $1 and channel = 0`, first.ID); n != 2 {
		t.Errorf("%d booked over the app", n)
	}

	// One who comes later has the reminders of the published drop too, and of each to come.
	g.stand(late, ten...)
	if got := g.bits(first, late); got != app10 {
		t.Errorf("a later user has %d", got)
	}
	// A changed one changes the copies, but not what users changed for one drop.
	g.Reserve(first, early, five...)
	for _, id := range []user.ID{early, own, late} {
		g.stand(id, five...)
	}
	for id, want := range map[user.ID]int64{early: app10 | mail, own: mail, late: mail} {
		if got := g.bits(first, id); got != want {
			t.Errorf("after the change user %d has %d, want %d", id, got, want)
		}
	}
	g.Cancel(first, fickle) // for this drop
	g.stand(fickle, five...)
	if got := g.bits(first, fickle); got != 0 {
		t.Errorf("a cancelled reservation came back: %d", got)
	}

	second := g.Do(drops[1], template.Publishing)
	g.sweep()
	for id, want := range map[user.ID]int64{early: mail, own: mail, gone: app10, fickle: mail, late: mail} {
		if got := g.bits(second, id); got != want {
			t.Errorf("user %d has %d of the second drop, want %d", id, got, want)
		}
	}
	// Ending cancels the copies that the user did not change.
	for _, id := range []user.ID{early, late} {
		g.Must(g.standing.End(t.Context(), id, g.series.ID))
	}
	if err := g.standing.End(t.Context(), late, g.series.ID); !errors.Is(err, reminder.ErrNotReserved) {
		t.Errorf("ended twice: %v", err)
	}
	for id, want := range map[user.ID]int64{early: app10 | mail, late: 0} {
		if got := g.bits(first, id); got != want {
			t.Errorf("after the end user %d has %d, want %d", id, got, want)
		}
		if got := g.bits(second, id); got != 0 {
			t.Errorf("after the end user %d has %d of the second drop", id, got)
		}
	}
	g.stand(late, ten...)
	if g.bits(first, late) != app10 || g.bits(second, late) != app10 {
		t.Error("one that was ended does not begin anew")
	}
	third := g.Do(drops[2], template.Publishing)
	g.sweep()
	if g.bits(third, early) != 0 || g.bits(third, late) != app10 {
		t.Errorf("the third drop: %d and %d", g.bits(third, early), g.bits(third, late))
	}
	g.RelayCounts()
	for _, d := range []template.Template{first, second, third} {
		for c := range 5 {
			booked := g.Number(`select coalesce(sum(booked), 0) from bookings where template_id = $1 and channel = $2`, d.ID, c)
			if want := g.Number(`select coalesce(sum(bit_count(((slots >> (12 * $2::int)) & 4095)::bit(12))), 0) from reservations where template_id = $1`, d.ID, c); booked != want {
				t.Errorf("drop %d, channel %d: %d booked, %d in the rows", d.ID, c, booked, want)
			}
		}
	}
	// An ended series takes no further users.
	_, err := g.service.Take(t.Context(), staff.System(), g.series.ID, series.Ending, "")
	g.Must(err)
	if _, _, err := g.standing.Reserve(t.Context(), series.Request{SeriesID: g.series.ID, UserID: 9, ShopNumber: 10, Reminders: ten}); !errors.Is(err, series.ErrOver) {
		t.Errorf("an ended series: %v", err)
	}
}

// TestCopyOfDueReminders: a reminder that is due when the drop is published is not copied, and others are; a copy
// meets users who stand, change and end at the same time, and every user ends with what the last word was.
func TestCopyOfDueReminders(t *testing.T) {
	g := newDaily(t, func(s *series.Spec) { s.Publishes = false })
	g.stand(1, pgtest.Reminders(delivery.App, 5, 60)...)
	g.sweep()
	drops := g.drops()
	for i := range 40 {
		g.stand(user.ID(100+i), pgtest.Reminders(delivery.App, 10)...)
	}
	d := g.Do(drops[0], template.Publishing)
	g.DueNow(d, 12)
	errs := pgtest.Together(21, func(i int) error {
		if i == 20 {
			return g.keeper.Sweep(t.Context())
		}
		if i%2 == 0 {
			return g.standing.End(t.Context(), user.ID(100+i), g.series.ID)
		}
		_, _, err := g.standing.Reserve(t.Context(), series.Request{SeriesID: g.series.ID, UserID: user.ID(100 + i), ShopNumber: 10, Reminders: pgtest.Reminders(delivery.Email, 15)})
		return err
	})
	for _, err := range errs {
		g.Must(err)
	}
	g.sweep()
	if got, want := g.bits(d, 1), reminder.BitmapOf(pgtest.Reminders(delivery.App, 5)...).Int64(); got != want {
		t.Errorf("the user has %d, want %d", got, want)
	}
	for i := range 40 {
		want := reminder.BitmapOf(pgtest.Reminders(delivery.App, 10)...).Int64()
		switch {
		case i < 20 && i%2 == 0:
			want = 0
		case i < 20:
			want = reminder.BitmapOf(pgtest.Reminders(delivery.Email, 15)...).Int64()
		}
		if got := g.bits(d, user.ID(100+i)); got != want {
			t.Errorf("user %d has %d, want %d", 100+i, got, want)
		}
	}
}

// TestSeriesOfOtherShops: staff of another shop neither see nor change a series.
func TestSeriesOfOtherShops(t *testing.T) {
	g := newDaily(t, nil)
	other := staff.Actor{Label: "staff:7", Role: staff.Marketer, Shops: []int64{11}}
	viewer := staff.Actor{Label: "staff:8", Role: staff.Viewer}
	if _, err := g.service.View(t.Context(), other, g.series.ID); !errors.Is(err, series.ErrNotFound) {
		t.Errorf("seen: %v", err)
	}
	if _, err := g.service.Take(t.Context(), other, g.series.ID, series.Ending, ""); !errors.Is(err, series.ErrNotFound) {
		t.Errorf("ended: %v", err)
	}
	if _, err := g.service.Take(t.Context(), viewer, g.series.ID, series.Ending, ""); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("ended by a viewer: %v", err)
	}
	if err := g.service.SetHolidays(t.Context(), other, 10, nil); !errors.Is(err, staff.ErrForbidden) {
		t.Errorf("holidays: %v", err)
	}
	if list, err := g.service.List(t.Context(), other); err != nil || len(list) != 0 {
		t.Errorf("%d series, %v", len(list), err)
	}
	bad := series.Spec{Name: strings.Repeat("x", 61), Recurrence: series.Recurrence{Rule: "FREQ=HOURLY", Starts: "x"}, Clock: -1}
	_, err := g.service.Create(t.Context(), staff.System(), bad, series.Start{TemplateID: 1}, "")
	broken, ok := errors.AsType[*fault.Fields](err)
	if !ok || fmt.Sprint(len(broken.List)) != "3" {
		t.Errorf("broken rules: %v", broken)
	}
}
