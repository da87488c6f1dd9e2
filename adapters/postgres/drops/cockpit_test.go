package drops_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dropsdb "dropbell/adapters/postgres/drops"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

func cockpit(m *pgtest.FailingHook, t template.Template, known ...reminder.CockpitRow) reminder.Cockpit {
	m.Helper()
	c, err := dropsdb.NewCockpits(m.DB).Cockpit(m.Context(), t.ID, known)
	m.Must(err)
	return c
}

func rowOf(t *testing.T, c reminder.Cockpit, k template.Slot) reminder.CockpitRow {
	t.Helper()
	for _, r := range c.Rows {
		if r.Slot.Slot == k {
			return r
		}
	}
	t.Fatalf("no slot %d", k)
	return reminder.CockpitRow{}
}

func TestCockpitWhileASlotGoesOut(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	if c := cockpit(m, template.Template{ID: 77}); c.At.IsZero() || len(c.Rows) != 0 {
		t.Errorf("no template: %+v", c)
	}
	m.Cause = func(id user.ID) string {
		if id%10 == 0 {
			return fmt.Sprintf("status 50%d", id%3)
		}
		return ""
	}
	m.Daemon.Policy.MaxAttempts = 8
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 100), pgtest.Reminders(delivery.Webhook, 5)...)
	m.Exec(`insert into bookings values ($1, 1, 4, 100), ($1, 12, 0, 7)`, tpl.ID)
	before := cockpit(m, tpl)
	if len(before.Rows) != 12 || before.Rows[0].Slot.Slot != 12 || before.Rows[0].Lanes[delivery.App].Booked != 7 || len(before.Current()) != 0 {
		t.Fatalf("before it fires: %+v", before)
	}
	m.Exec(`insert into channel_rates values (4, now(), 50, 1000)`)
	sl := m.CutSlot(tpl, 1, 20)
	m.Must(m.Daemon.RunNext(t.Context(), delivery.Webhook))
	m.Drain()

	c := cockpit(m, tpl)
	lane := rowOf(t, c, 1).Lanes[delivery.Webhook]
	want := lane
	want.Reserved, want.Sent, want.Failed, want.InFlight, want.DoneAt = 100, 90, 10, 10, nil
	if diff := cmp.Diff(want, lane); diff != "" {
		t.Errorf("while it goes out (-want +got):\n%s", diff)
	}
	if lane.Expected != 50 || !lane.ForecastEnd(sl.DueAt).Equal(sl.DueAt.Add(2*time.Second)) {
		t.Errorf("expected %v/s, end %v", lane.Expected, lane.ForecastEnd(sl.DueAt))
	}
	if lane.Late.Messages() != lane.Sent {
		t.Errorf("the lateness of %d messages is known, want %d: %v", lane.Late.Messages(), lane.Sent, lane.Late)
	}
	// The slot was due as many seconds ago as its row's number; see pgtest.DueNow.
	if p99, bounded := lane.Late.Quantile(0.99); !bounded || p99 < time.Duration(sl.ID)*time.Second || p99 > time.Duration(sl.ID+30)*time.Second {
		t.Errorf("99th percentile %v", p99)
	}
	if len(c.Causes) != 1 || c.Causes[0].People != 10 || c.Causes[0].Outcome != delivery.Failed || c.Causes[0].Fingerprint != "status #" || c.Sampled {
		t.Errorf("causes %+v, sampled %v", c.Causes, c.Sampled)
	}
	if got := c.Current(); len(got) != 1 || got[0].ID != sl.ID || !got[0].Running() || c.Sent()[delivery.Webhook] != 90 {
		t.Errorf("current slots %+v", got)
	}

	// Recipients become dead letters once the attempts are used up; then the slot
	// is finished.
	m.Daemon.Policy.MaxAttempts = 1
	m.Exec(`update exceptions set next_retry_at = now() where next_retry_at is not null`)
	m.Exec(`update batches set next_run_at = now() where state = 'ready'`)
	m.Drain()
	m.Finish(tpl)
	done := cockpit(m, tpl)
	lane = rowOf(t, done, 1).Lanes[delivery.Webhook]
	if lane.DoneAt == nil || lane.Late.Messages() != 90 {
		t.Errorf("finished: %+v", lane)
	}
	want = lane
	want.Sent, want.Dead, want.Failed, want.Expected = 90, 10, 0, 50
	if diff := cmp.Diff(want, lane); diff != "" {
		t.Errorf("when all is over (-want +got):\n%s", diff)
	}
	if len(done.Causes) != 1 || done.Causes[0].Outcome != delivery.Dead {
		t.Errorf("causes of the last slot: %+v", done.Causes)
	}
}

// TestCockpitDoesNotReadFinishedSlotsAgain: the counts of a finished slot are not
// read again. A replay of dead letters that reopens the slot makes the counts
// unknown.
func TestCockpitDoesNotReadFinishedSlotsAgain(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return map[bool]string{true: "status 500"}[id == 1] }
	tpl, sl := m.Bury(1, 10, 5)
	first := cockpit(m, tpl)
	m.Exec(`update slot_results set sent = 12345 where slot_id = $1 and channel = 4`, sl.ID)
	second := cockpit(m, tpl, first.Settled()...)
	m.Exec(`update slot_results set sent = 9 where slot_id = $1 and channel = 4`, sl.ID)
	if diff := cmp.Diff(first.Rows, second.Rows); diff != "" {
		t.Errorf("a finished slot was read again: %s", diff)
	}
	m.Cause = func(user.ID) string { return "" }
	m.Work(delivery.Replay, delivery.DeadLetterFilter{}, 0)
	if row := rowOf(t, cockpit(m, tpl, first.Settled()...), 1); !row.Running() || row.Lanes[delivery.Webhook].Failed != 1 {
		t.Errorf("after a replay began: %+v", row)
	}
	m.Drain()
	m.Finish(tpl)
	if row := rowOf(t, cockpit(m, tpl, first.Settled()...), 1); row.State != reminder.Finished || row.Lanes[delivery.Webhook].Sent != 10 || row.Lanes[delivery.Webhook].Late.Messages() != 10 {
		t.Errorf("after the replay: %+v", row)
	}
}

// TestLatenessIsCountedOnce: a checkpoint whose answer was lost is repeated. The
// lateness of its messages is that of the first checkpoint and counted once.
func TestLatenessIsCountedOnce(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl := m.Published(2 * time.Hour)
	m.ReserveAll(tpl, pgtest.Users(1, 10), pgtest.Reminders(delivery.Webhook, 5)...)
	m.CutSlot(tpl, 1, 10)
	l, err := m.Batches.LeaseNext(t.Context(), delivery.Webhook, time.Minute)
	m.Must(err)
	for _, p := range []delivery.Progress{{Sent: []user.ID{1, 2, 3}}, {Sent: []user.ID{1, 2, 3}}, {Sent: []user.ID{4}}, {Sent: pgtest.Users(5, 10), Done: true}} {
		_, err := l.Checkpoint(t.Context(), p)
		m.Must(err)
	}
	if _, err := l.Checkpoint(t.Context(), delivery.Progress{Sent: pgtest.Users(5, 10), Done: true}); err != nil {
		t.Errorf("the last checkpoint repeated: %v", err)
	}
	if n := rowOf(t, cockpit(m, tpl), 1).Lanes[delivery.Webhook].Late.Messages(); n != 10 {
		t.Errorf("the lateness of %d messages is known, want 10", n)
	}
	if n := m.Number(`select count(*) from batches, generate_subscripts(late, 1) i where late[i] < 0`); n != 0 {
		t.Errorf("%d spans below zero", n)
	}
}

// Rows of programs that do not count lateness yet are simply not counted.
func TestCockpitOfRowsWithoutLateness(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl, _ := m.Bury(1, 10, 5)
	m.Exec(`update batches set late = null; update slot_results set late = null, expected = null, done_at = null`)
	lane := rowOf(t, cockpit(m, tpl), 1).Lanes[delivery.Webhook]
	if lane.Sent != 10 || lane.Late.Messages() != 0 || lane.Expected != 0 || lane.DoneAt != nil {
		t.Errorf("%+v", lane)
	}
}

func TestCausesAreSampledWhenThereAreMany(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	m.Cause = func(id user.ID) string { return fmt.Sprintf("cause %c", 'a'+id%2) }
	tpl, _ := m.Bury(1, 300, 20)
	c := cockpit(m, tpl)
	var people int64
	for _, cause := range c.Causes {
		people += cause.People
	}
	if !c.Sampled || len(c.Causes) != 2 || people != 200 { // ten batches of twenty
		t.Errorf("%d people in %d causes, sampled %v", people, len(c.Causes), c.Sampled)
	}
}

func TestSpans(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	cockpits := dropsdb.NewCockpits(m.DB)
	tpl, _ := m.Bury(1, 10, 5)
	list, err := cockpits.Spans(t.Context(), tpl.ID, time.Minute)
	m.Must(err)
	var sent int64
	for _, s := range list {
		sent += s.Sent
		if s.Channel != delivery.Webhook || s.To.Before(s.From) || pgtest.Clock().Sub(s.To) > 30*time.Second {
			t.Errorf("%+v", s)
		}
	}
	if sent != 10 {
		t.Errorf("%d sent, want 10", sent)
	}
	m.Exec(`update batches set started_at = started_at - interval '1 hour', finished_at = finished_at - interval '1 hour'`)
	if list, err := cockpits.Spans(t.Context(), tpl.ID, time.Minute); err != nil || len(list) != 0 {
		t.Errorf("an hour ago: %+v %v", list, err)
	}
}

// A stopped slot keeps its row: moving the opening creates twelve new slots.
func TestCockpitShowsThePresentOpening(t *testing.T) {
	m := pgtest.NewFailingHook(t)
	tpl, sl := m.Bury(1, 4, 4)
	s := tpl.Spec
	s.OpensAt, s.ClosesAt = s.OpensAt.Add(time.Hour), s.ClosesAt.Add(time.Hour)
	_, err := m.Service.Edit(t.Context(), staff.System(), tpl.ID, template.Edition{Version: tpl.Version, Spec: s, Reason: "late truck"})
	m.Must(err)
	for _, r := range cockpit(m, tpl).Rows {
		if r.ID == sl.ID || r.State != reminder.Waiting {
			t.Errorf("%+v", r)
		}
	}
}
