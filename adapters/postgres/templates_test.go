package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

func (w *world) draft(change func(*template.Spec)) template.Template {
	w.Helper()
	s := spec(2 * time.Hour)
	if change != nil {
		change(&s)
	}
	t, err := w.service.Create(w.Context(), actor, s, "")
	w.must(err)
	return t
}

func (w *world) do(t template.Template, tr template.Transition) template.Template {
	w.Helper()
	t, err := w.service.Do(w.Context(), actor, t.ID, 0, tr, "test")
	w.must(err)
	return t
}

// traces counts what changes leave beside the row: audit entries and events.
func (w *world) traces() [2]int64 {
	w.Helper()
	return [2]int64{w.number(`select count(*) from audit`), w.number(`select count(*) from outbox`)}
}

// together runs n callers at the same moment and returns their errors.
func together(n int, call func(i int) error) []error {
	errs := make([]error, n)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { <-start; errs[i] = call(i) })
	}
	close(start)
	all.Wait()
	return errs
}

func TestOfConcurrentEditsOneWins(t *testing.T) {
	w := newWorld(t)
	tpl := w.published(2 * time.Hour)
	before := w.traces()
	errs := together(16, func(i int) error {
		s := tpl.Spec
		s.Name = fmt.Sprintf("by %d", i)
		_, err := w.service.Edit(context.Background(), actor, tpl.ID, tpl.Version, s)
		return err
	})
	winner := slices.Index(errs, nil)
	for i, err := range errs {
		if i != winner && !errors.Is(err, fault.ErrStale) {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	got, err := w.templates.Template(t.Context(), tpl.ID)
	if err != nil || winner < 0 || got.Name != fmt.Sprintf("by %d", winner) || got.Version != tpl.Version+1 {
		t.Errorf("winner %d, stored %q version %d (%v)", winner, got.Name, got.Version, err)
	}
	if after := w.traces(); after != [2]int64{before[0] + 1, before[1] + 1} {
		t.Errorf("one edit left %v, before %v", after, before)
	}
}

// TestWhatIsNotSavedLeavesNoTrace: entry and event are in the transaction of
// the change.
func TestWhatIsNotSavedLeavesNoTrace(t *testing.T) {
	w := newWorld(t)
	tpl := w.published(2 * time.Hour)
	before, slots := w.traces(), w.number(`select count(*) from slots where state = 'waiting'`)
	change := func(t template.Template) template.Change {
		return template.Change{Template: t, Schedule: template.CancelSlots, Event: event.TemplateCancelled,
			Entry: staff.Entry{Actor: actor, Action: "template.cancel", ObjectKind: "template", ObjectID: "1"}}
	}
	stale := tpl
	stale.Version--
	unknown := tpl
	unknown.ID = 1 << 40
	impossible := tpl
	impossible.Stored = "vanished"
	unwritable := change(tpl)
	unwritable.Entry.After = func() {} // no JSON
	for name, c := range map[string]template.Change{"stale": change(stale), "unknown": change(unknown), "impossible": change(impossible), "no entry": unwritable} {
		if _, err := w.templates.Save(t.Context(), c); err == nil {
			t.Errorf("%s: saved", name)
		}
		if after := w.traces(); after != before {
			t.Errorf("%s: left %v, before %v", name, after, before)
		}
		if n := w.number(`select count(*) from slots where state = 'waiting'`); n != slots {
			t.Errorf("%s: %d of %d slots wait", name, n, slots)
		}
	}
	s := spec(time.Hour)
	s.ShopNumber = 4711
	if _, err := w.templates.Insert(t.Context(), template.Change{Template: template.Template{Spec: s}, Event: event.TemplateChanged,
		Entry: staff.Entry{Actor: actor, After: func() {}}}); err == nil {
		t.Error("inserted without an entry")
	}
	if n := w.number(`select count(*) from templates where shop_number = 4711`) + w.number(`select count(*) from shops where number = 4711`); n != 0 || w.traces() != before {
		t.Errorf("%d rows stay, traces %v", n, w.traces())
	}
}

func TestEveryChangeLeavesAnEntryAndAnEvent(t *testing.T) {
	w := newWorld(t)
	tpl := w.draft(nil)
	w.do(tpl, template.Publishing)
	moved, _ := w.templates.Template(t.Context(), tpl.ID)
	moved.OpensAt, moved.ClosesAt = moved.OpensAt.Add(time.Minute), moved.ClosesAt.Add(time.Minute)
	_, err := w.service.Edit(t.Context(), actor, tpl.ID, moved.Version, moved.Spec)
	w.must(err)
	w.do(tpl, template.Pausing)
	w.do(tpl, template.Resuming)
	w.do(tpl, template.Closing)
	var actions, topics []string
	w.must(w.sql.QueryRow(t.Context(), `select array_agg(action order by id) from audit where object_kind = 'template' and object_id = $1::text`, fmt.Sprint(tpl.ID)).Scan(&actions))
	w.must(w.sql.QueryRow(t.Context(), `select array_agg(topic || ' ' || (payload->>'version') order by id) from outbox where payload->>'template_id' = $1::text`, fmt.Sprint(tpl.ID)).Scan(&topics))
	if want := []string{"template.create", "template.publish", "template.move", "template.pause", "template.resume", "template.close"}; !slices.Equal(actions, want) {
		t.Errorf("recorded %v", actions)
	}
	if want := []string{"template.changed.v1 1", "template.published.v1 2", "template.moved.v1 3", "template.changed.v1 4", "template.changed.v1 5",
		"template.closed.v1 6"}; !slices.Equal(topics, want) {
		t.Errorf("announced %v", topics)
	}
}

func TestCreatingTwiceWithOneKey(t *testing.T) {
	w := newWorld(t)
	ids := make([]int64, 16)
	for i, err := range together(len(ids), func(i int) error {
		tpl, err := w.service.Create(context.Background(), actor, spec(time.Hour), "the key")
		ids[i] = tpl.ID
		return err
	}) {
		if err != nil {
			t.Errorf("caller %d: %v", i, err)
		}
	}
	if ids[0] == 0 || slices.Max(ids) != slices.Min(ids) || w.traces() != [2]int64{1, 1} || w.number(`select count(*) from templates`) != 1 {
		t.Errorf("ids %v, traces %v", ids, w.traces())
	}
	changed := spec(3 * time.Hour)
	changed.Name = "Another"
	again, err := w.service.Create(t.Context(), actor, changed, "the key")
	if err != nil || again.ID != ids[0] || again.Name != "Half price" {
		t.Errorf("a later call: %d %q %v", again.ID, again.Name, err)
	}
	for _, key := range []string{"another key", "", ""} {
		if other, err := w.service.Create(t.Context(), actor, spec(time.Hour), key); err != nil || other.ID == ids[0] {
			t.Errorf("key %q: %d %v", key, other.ID, err)
		}
	}
}

func TestAnEditToAnUnknownShop(t *testing.T) {
	w := newWorld(t)
	tpl := w.draft(nil)
	s := tpl.Spec
	s.ShopNumber = 4711
	_, err := w.service.Edit(t.Context(), actor, tpl.ID, tpl.Version, s)
	if f, ok := errors.AsType[*fault.Fields](err); !ok || f.List[0].Name != "shop_number" {
		t.Errorf("%v", err)
	}
	w.must(w.templates.SaveShop(t.Context(), 4711, "Corner shop", "Asia/Shanghai"))
	got, err := w.service.Edit(t.Context(), actor, tpl.ID, tpl.Version, s)
	if err != nil || got.ShopName != "Corner shop" || got.ShopTimezone != "Asia/Shanghai" {
		t.Errorf("%+v %v", got, err)
	}
	w.must(w.templates.SaveShop(t.Context(), 4711, "Corner shop 2", "UTC"))
	shops, err := w.templates.Shops(t.Context())
	if want := []template.Shop{{Number: 10, Name: "Shop 10", Timezone: "UTC"}, {Number: 4711, Name: "Corner shop 2", Timezone: "UTC"}}; err != nil || !slices.Equal(shops, want) {
		t.Errorf("%v %v", shops, err)
	}
}

func TestPublishingMakesTwelveSlots(t *testing.T) {
	w := newWorld(t)
	tpl := w.published(32*time.Minute + 30*time.Second)
	if tpl.PublishedAt == nil || tpl.Version != 2 {
		t.Errorf("%+v", tpl)
	}
	board, err := w.boards.Board(t.Context(), tpl.ID)
	w.must(err)
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
	if draft := w.draft(nil); w.number(`select count(*) from slots where template_id = $1`, draft.ID) != 0 {
		t.Error("a draft has slots")
	}
}

// states lists the template's slots as "slot state due" in order.
func (w *world) states(t template.Template) map[string]int {
	w.Helper()
	waiting, gone, err := w.templates.WaitingSlots(w.Context(), t.ID)
	w.must(err)
	count := map[string]int{}
	for _, s := range slices.Concat(waiting, gone) {
		count[string(s.State)]++
	}
	if len(waiting) != count["waiting"] {
		w.Errorf("%d wait, %v", len(waiting), count)
	}
	return count
}

func (w *world) move(t template.Template, to time.Time) template.Template {
	w.Helper()
	now, err := w.templates.Template(w.Context(), t.ID)
	w.must(err)
	s := now.Spec
	s.OpensAt, s.ClosesAt = to, to.Add(time.Hour)
	moved, err := w.service.Edit(w.Context(), actor, t.ID, now.Version, s)
	w.must(err)
	return moved
}

func TestMovingThereAndBack(t *testing.T) {
	w := newWorld(t)
	tpl := w.published(32 * time.Minute)
	first := w.slot(tpl, 1)
	away := w.move(tpl, tpl.OpensAt.Add(3*time.Hour))
	if got := w.states(tpl); got["waiting"] != 12 || got["moved"] != 6 || got["passed"] != 6 || len(got) != 3 {
		t.Errorf("moved away: %v", got)
	}
	if s := w.slot(away, 1); s.ID == first.ID || !s.DueAt.Equal(away.OpensAt.Add(-5*time.Minute)) {
		t.Errorf("the timer of the new opening: %+v", s)
	}
	back := w.move(tpl, tpl.OpensAt)
	if s := w.slot(back, 1); s.ID != first.ID || s.State != reminder.Waiting {
		t.Errorf("moved back: %+v, was %+v", s, first)
	}
	// Whoever reserved 60 minutes while it was away is reminded at once.
	if got := w.states(tpl); got["waiting"] != 12 || got["moved"] != 12 || len(got) != 2 {
		t.Errorf("moved back: %v", got)
	}
	if n := w.number(`select count(*) from (select slot, due_at from slots where template_id = $1 group by 1, 2 having count(*) > 1) d`, tpl.ID); n != 0 {
		t.Errorf("%d slots stand twice", n)
	}
}

func TestMovingBackFiresNothingTwice(t *testing.T) {
	w := newWorld(t)
	tpl := w.published(2 * time.Hour)
	w.exec(`update slots set state = 'finished', fired_at = now(), finished_at = now() where template_id = $1 and slot = 12`, tpl.ID)
	w.move(tpl, tpl.OpensAt.Add(time.Hour))
	back := w.move(tpl, tpl.OpensAt)
	if s := w.slot(back, 12); s.State != reminder.Finished || s.FiredAt == nil {
		t.Errorf("%+v", s)
	}
}

// TestEndings: closing lets what is running go on until the opening,
// cancelling and moving stop it.
func TestEndings(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(*world, template.Template)
		ended  string
		reason string
	}{
		"close":  {func(w *world, t template.Template) { w.do(t, template.Closing) }, "cancelled", ""},
		"cancel": {func(w *world, t template.Template) { w.do(t, template.Cancelling) }, "cancelled", "drop_cancelled"},
		"move":   {func(w *world, t template.Template) { w.move(t, t.OpensAt.Add(time.Hour)) }, "moved", "opening_moved"},
		"pause":  {func(w *world, t template.Template) { w.do(t, template.Pausing) }, "waiting", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tpl, other := w.published(2*time.Hour), w.published(2*time.Hour)
			w.exec(`update slots set state = 'firing' where slot = 12`)
			w.exec(`update slots set state = 'sending' where slot = 11`)
			w.exec(`update slots set state = 'finished' where slot = 10`)
			w.exec(`insert into batches (kind, owner_id, template_id, channel, from_user, to_user, state, due_at, worthless_after, next_run_at, due, due_count)
				select 'reminder', s.id, s.template_id, 0, n, n, (array['ready', 'running', 'done'])[n], s.due_at, s.opens_at, now() + interval '1 hour', '', 1
				from slots s, generate_series(1, 3) n where s.state in ('sending', 'finished')`)
			c.end(w, tpl)
			got := w.states(tpl)
			waits := map[bool]int{true: 9, false: 0}[c.ended == "waiting"]
			if got["firing"] != 1 || got["sending"] != 1 || got["finished"] != 1 || got[c.ended] != 9 || c.ended != "moved" && got["waiting"] != waits {
				t.Errorf("slots %v", got)
			}
			stopped := map[bool]int64{true: 2, false: 0}[c.reason != ""]
			if n := w.number(`select count(*) from slots where template_id = $1 and stop_reason = $2`, tpl.ID, c.reason); n != stopped {
				t.Errorf("%d running slots were stopped, want %d", n, stopped)
			}
			// Of the running slot's batches the two that are not done, and these at once.
			if n := w.number(`select count(*) from batches where template_id = $1 and stop_reason = $2 and next_run_at <= now()`, tpl.ID, c.reason); n != stopped {
				t.Errorf("%d batches were stopped, want %d", n, stopped)
			}
			if n := w.number(`select count(*) from batches where stop_reason is not null and (template_id = $1 or state = 'done')`, other.ID); n != 0 {
				t.Errorf("%d batches of others were stopped", n)
			}
			if got := w.states(other); got["waiting"] != 9 {
				t.Errorf("another template's slots: %v", got)
			}
		})
	}
}

func TestClosingWhatHasEndedBySeveralAtOnce(t *testing.T) {
	w := newWorld(t)
	const ended = 30
	var ids []int64
	for range ended {
		ids = append(ids, w.published(2*time.Hour).ID)
	}
	stillOpen, draft := w.published(2*time.Hour), w.draft(nil)
	paused := w.do(w.published(2*time.Hour), template.Pausing)
	w.exec(`update templates set opens_at = date_trunc('second', now()) - interval '2 hours', closes_at = now() - interval '1 second'
		where id = any($1) or id = $2 or id = $3`, ids, draft.ID, paused.ID)
	due, err := w.templates.DueToClose(t.Context(), 7)
	if err != nil || len(due) != 7 {
		t.Errorf("%d due, %v", len(due), err)
	}
	var closed atomic.Int64
	for _, err := range together(4, func(int) error {
		for {
			due, err := w.templates.DueToClose(context.Background(), 7)
			if err != nil || len(due) == 0 {
				return err
			}
			n, err := w.service.CloseEnded(context.Background(), 7)
			if closed.Add(int64(n)); err != nil {
				return err
			}
		}
	}) {
		w.must(err)
	}
	if n := closed.Load(); n != ended+1 {
		t.Errorf("%d were closed, want %d", n, ended+1)
	}
	if n := w.number(`select count(*) from audit where action = 'template.close'`); n != ended+1 {
		t.Errorf("%d entries", n)
	}
	if n := w.number(`select count(distinct payload->>'template_id') from outbox where topic = $1`, event.TemplateClosed); n != ended+1 {
		t.Errorf("%d events", n)
	}
	if n := w.number(`select count(*) from templates where state = 'closed' and ended_at is not null`); n != ended+1 {
		t.Errorf("%d closed in the table", n)
	}
	for id, want := range map[int64]template.State{stillOpen.ID: template.Published, draft.ID: template.Draft} {
		if got, _ := w.templates.Template(t.Context(), id); got.Stored != want {
			t.Errorf("%d is %s", id, got.Stored)
		}
	}
}

func TestNewestTemplate(t *testing.T) {
	w := newWorld(t)
	if id, err := w.templates.NewestTemplate(t.Context()); id != 0 || err != nil {
		t.Errorf("%d %v", id, err)
	}
	tpl := w.draft(nil)
	if id, err := w.templates.NewestTemplate(t.Context()); id != tpl.ID || err != nil {
		t.Errorf("%d %v", id, err)
	}
	if _, err := w.templates.Template(t.Context(), tpl.ID+1+rand.Int64N(1000)); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
