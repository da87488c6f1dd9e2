package drops_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/event"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

func TestPublishingMakesTwelveSlots(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(32*time.Minute + 30*time.Second)
	if tpl.PublishedAt == nil || tpl.Version != 2 {
		t.Errorf("%+v", tpl)
	}
	board, err := w.Boards.Board(t.Context(), tpl.ID)
	w.Must(err)
	if len(board.Rows) != 12 || len(board.Earlier) != 0 {
		t.Fatalf("%d slots and %d earlier", len(board.Rows), len(board.Earlier))
	}
	for i, r := range board.Rows {
		k := template.Slot(12 - i) // the farthest first
		want := reminder.Waiting
		if k > 6 { // 35 minutes and more ahead lie in the past
			want = reminder.Passed
		}
		if r.Slot.Slot != k || r.State != want || !r.DueAt.Equal(k.DueAt(tpl.OpensAt)) || !r.OpensAt.Equal(tpl.OpensAt) || r.TemplateID != tpl.ID {
			t.Errorf("slot %d: %+v", k, r.Slot)
		}
	}
	if draft := w.Draft(nil); w.Number(`select count(*) from slots where template_id = $1`, draft.ID) != 0 {
		t.Error("a draft has slots")
	}
}

// states lists the template's slots as "slot state due" in order.
func (w *fixture) states(t template.Template) map[string]int {
	w.Helper()
	waiting, gone, err := w.Slots.WaitingSlots(w.Context(), t.ID)
	w.Must(err)
	count := map[string]int{}
	for _, s := range slices.Concat(waiting, gone) {
		count[string(s.State)]++
	}
	if len(waiting) != count["waiting"] {
		w.Errorf("%d wait, %v", len(waiting), count)
	}
	return count
}

func TestMovingThereAndBack(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(32 * time.Minute)
	first := w.Slot(tpl, 1)
	away := w.Move(tpl, tpl.OpensAt.Add(3*time.Hour))
	if got := w.states(tpl); got["waiting"] != 12 || got["moved"] != 6 || got["passed"] != 6 || len(got) != 3 {
		t.Errorf("moved away: %v", got)
	}
	if s := w.Slot(away, 1); s.ID == first.ID || !s.DueAt.Equal(away.OpensAt.Add(-5*time.Minute)) {
		t.Errorf("the timer of the new opening: %+v", s)
	}
	back := w.Move(tpl, tpl.OpensAt)
	if s := w.Slot(back, 1); s.ID != first.ID || s.State != reminder.Waiting {
		t.Errorf("moved back: %+v, was %+v", s, first)
	}
	// Reservations of 60 minutes that were made in between are due at once.
	if got := w.states(tpl); got["waiting"] != 12 || got["moved"] != 12 || len(got) != 2 {
		t.Errorf("moved back: %v", got)
	}
	if n := w.Number(`select count(*) from (select slot, due_at from slots where template_id = $1 group by 1, 2 having count(*) > 1) d`, tpl.ID); n != 0 {
		t.Errorf("%d slots stand twice", n)
	}
}

// TestMovingBackKeepsWhatFired: a fired slot stays as it is, however often the
// opening returns to its time. Each time the slot had fired, one more round
// follows.
func TestMovingBackKeepsWhatFired(t *testing.T) {
	w := newFixture(t)
	tpl := w.Published(2 * time.Hour)
	first := w.Slot(tpl, 12)
	fired := func() {
		t.Helper()
		w.Exec(`update slots set state = 'finished', fired_at = now(), finished_at = now() where id = $1`, w.Slot(tpl, 12).ID)
	}
	thereAndBack := func() reminder.Slot {
		t.Helper()
		w.Move(tpl, tpl.OpensAt.Add(time.Hour))
		return w.Slot(w.Move(tpl, tpl.OpensAt), 12)
	}
	fired()
	second := thereAndBack()
	if second.ID == first.ID || second.Round != 1 || second.State != reminder.Waiting || !second.DueAt.Equal(first.DueAt) {
		t.Errorf("%+v, was %+v", second, first)
	}
	if s := thereAndBack(); s != second {
		t.Errorf("%+v, was %+v", s, second)
	}
	fired()
	if s := thereAndBack(); s.Round != 2 || !s.DueAt.Equal(first.DueAt) {
		t.Errorf("%+v", s)
	}
	if n := w.Number(`select count(*) from slots where template_id = $1 and slot = 12 and state = 'finished'`, tpl.ID); n != 2 {
		t.Errorf("%d rounds are finished", n)
	}
}

// TestEndings: after a template is closed, running deliveries go on until the
// opening. Cancelling and moving stop running deliveries.
func TestEndings(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(*fixture, template.Template)
		ended  string
		reason string
	}{
		"close":  {func(w *fixture, t template.Template) { w.Do(t, template.Closing) }, "cancelled", ""},
		"cancel": {func(w *fixture, t template.Template) { w.Do(t, template.Cancelling) }, "cancelled", "drop_cancelled"},
		"move":   {func(w *fixture, t template.Template) { w.Move(t, t.OpensAt.Add(time.Hour)) }, "moved", "opening_moved"},
		"pause":  {func(w *fixture, t template.Template) { w.Do(t, template.Pausing) }, "waiting", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			tpl, other := w.Published(2*time.Hour), w.Published(2*time.Hour)
			w.Exec(`update slots set state = 'firing' where slot = 12`)
			w.Exec(`update slots set state = 'sending' where slot = 11`)
			w.Exec(`update slots set state = 'finished' where slot = 10`)
			w.Fill("batches", "slots s, generate_series(1, 3) n where s.state in ('sending', 'finished')", pgtest.Row{"owner_id": pgtest.SQL("id"),
				"template_id": pgtest.SQL("template_id"), "from_user": pgtest.SQL("n"), "to_user": pgtest.SQL("n"), "state": pgtest.SQL("(array['ready', 'running', 'done'])[n]"),
				"next_run_at": pgtest.SQL("now() + interval '1 hour'")})
			c.end(w, tpl)
			got := w.states(tpl)
			waits := map[bool]int{true: 9, false: 0}[c.ended == "waiting"]
			if got["firing"] != 1 || got["sending"] != 1 || got["finished"] != 1 || got[c.ended] != 9 || c.ended != "moved" && got["waiting"] != waits {
				t.Errorf("slots %v", got)
			}
			stopped := map[bool]int64{true: 2, false: 0}[c.reason != ""]
			if n := w.Number(`select count(*) from slots where template_id = $1 and stop_reason = $2`, tpl.ID, c.reason); n != stopped {
				t.Errorf("%d running slots were stopped, want %d", n, stopped)
			}
			// Of the running slot's batches only the two that are not done are
			// stopped, and they are due at once.
			if n := w.Number(`select count(*) from batches where template_id = $1 and stop_reason = $2 and next_run_at <= now()`, tpl.ID, c.reason); n != stopped {
				t.Errorf("%d batches were stopped, want %d", n, stopped)
			}
			if n := w.Number(`select count(*) from batches where stop_reason is not null and (template_id = $1 or state = 'done')`, other.ID); n != 0 {
				t.Errorf("%d batches of others were stopped", n)
			}
			if got := w.states(other); got["waiting"] != 9 {
				t.Errorf("another template's slots: %v", got)
			}
		})
	}
}

func TestClosingWhatHasEndedBySeveralAtOnce(t *testing.T) {
	w := newFixture(t)
	const ended = 30
	var ids []int64
	for range ended {
		ids = append(ids, w.Published(2*time.Hour).ID)
	}
	stillOpen, draft := w.Published(2*time.Hour), w.Draft(nil)
	paused := w.Do(w.Published(2*time.Hour), template.Pausing)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = now() - interval '1 second'
		where id = any($1) or id = $2 or id = $3`, ids, draft.ID, paused.ID)
	due, err := w.Templates.DueToClose(t.Context(), 7)
	if err != nil || len(due) != 7 {
		t.Errorf("%d due, %v", len(due), err)
	}
	var closed atomic.Int64
	for _, err := range pgtest.Together(4, func(int) error {
		for {
			due, err := w.Templates.DueToClose(context.Background(), 7)
			if err != nil || len(due) == 0 {
				return err
			}
			n, err := w.Service.CloseEnded(context.Background(), 7)
			if closed.Add(int64(n)); err != nil {
				return err
			}
		}
	}) {
		w.Must(err)
	}
	if n := closed.Load(); n != ended+1 {
		t.Errorf("%d were closed, want %d", n, ended+1)
	}
	if n := w.Number(`select count(*) from audit where action = 'template.close'`); n != ended+1 {
		t.Errorf("%d entries", n)
	}
	if n := w.Number(`select count(distinct payload->>'template_id') from outbox where topic = $1`, event.TemplateClosed); n != ended+1 {
		t.Errorf("%d events", n)
	}
	if n := w.Number(`select count(*) from templates where state = 'closed' and ended_at is not null`); n != ended+1 {
		t.Errorf("%d closed in the table", n)
	}
	for id, want := range map[int64]template.State{stillOpen.ID: template.Published, draft.ID: template.Draft} {
		if got, _ := w.Templates.Template(t.Context(), id); got.Stored != want {
			t.Errorf("%d is %s", id, got.Stored)
		}
	}
}

// TestClosingWhatNobodyCanClaim: the sweep closes a drop whose coupons would
// already have expired, and no more codes can be created for the drop.
func TestClosingWhatNobodyCanClaim(t *testing.T) {
	w := newFixture(t)
	over, running := w.Published(2*time.Hour), w.Published(2*time.Hour)
	w.Exec(`update templates set opens_at = date_trunc('second', now()) - interval '2 hours', obtain = 'code', valid_hours = 0,
		valid_until = now() + case when id = $1 then -1 else 60 end * interval '1 second'`, over.ID)
	due, err := w.Templates.DueToClose(t.Context(), 10)
	if err != nil || !slices.Equal(templateIDs(due), []int64{over.ID}) {
		t.Fatalf("due are %v, %v", templateIDs(due), err)
	}
	if n, err := w.Service.CloseEnded(t.Context(), 10); n != 1 || err != nil {
		t.Fatalf("%d closed, %v", n, err)
	}
	if got, _ := w.Templates.Template(t.Context(), over.ID); got.Stored != template.Closed || got.EndedAt.Before(*got.ValidUntil) {
		t.Errorf("%s, ended at %v", got.Stored, got.EndedAt)
	}
	if got, _ := w.Templates.Template(t.Context(), running.ID); got.Stored != template.Published {
		t.Errorf("the other is %s", got.Stored)
	}
	if n := w.Number(`select count(*) from audit where action = 'template.close' and reason = 'valid_until_passed'`); n != 1 {
		t.Errorf("%d entries say why", n)
	}
}
