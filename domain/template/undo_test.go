package template_test

import (
	"errors"
	"testing"
	"time"

	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// closedDrop is a drop that opens at ten and ends at noon, and was closed at closed.
func closedDrop(closed time.Time) template.Template {
	tpl, _ := inState(template.Closed)
	tpl.OpensAt, tpl.ClosesAt, tpl.ValidUntil, tpl.ValidHours = ten(0), ten(2*time.Hour), nil, 24
	tpl.EndedAt, tpl.ClaimMode = &closed, template.Durable
	return tpl
}

func ten(plus time.Duration) time.Time {
	return time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC).Add(plus)
}

// TestReopening: a closing can be taken back until something has happened that would not have
// happened in an open drop.
func TestReopening(t *testing.T) {
	for _, c := range []struct {
		name        string
		closed, now time.Time
		gate        bool
		key         string
	}{
		{"before the first reminder time", ten(-2 * time.Hour), ten(-2*time.Hour + 14*time.Minute), false, ""},
		{"a moment too late", ten(-2 * time.Hour), ten(-2*time.Hour + 15*time.Minute + 1), false, "fault.reopen.time"},
		{"a reminder time went by", ten(-61 * time.Minute), ten(-60 * time.Minute), false, "fault.reopen.reminders"},
		{"a moment before a reminder time", ten(-61 * time.Minute), ten(-60*time.Minute - 1), false, ""},
		{"closed at a reminder time, whose slot had fired", ten(-60 * time.Minute), ten(-56 * time.Minute), false, ""},
		{"after the opening", ten(time.Minute), ten(10 * time.Minute), false, ""},
		{"across the opening, from the last reminder time on", ten(-5 * time.Minute), ten(5 * time.Minute), false, ""},
		{"its end has come", ten(110 * time.Minute), ten(2 * time.Hour), false, "fault.reopen.ended"},
		{"it ended by itself", ten(2 * time.Hour), ten(2*time.Hour + time.Minute), false, "fault.reopen.ended"},
		{"behind a gate", ten(time.Minute), ten(2 * time.Minute), true, "fault.reopen.gate"},
	} {
		tpl := closedDrop(c.closed)
		if c.gate {
			tpl.ClaimMode = template.Gate
		}
		next, err := tpl.Reopen(c.now, false)
		switch {
		case c.key == "" && (err != nil || next.Stored != template.Published || next.EndedAt != nil || !tpl.MayReopen(c.now)):
			t.Errorf("%s: %v, %s", c.name, err, next.Stored)
		case c.key != "" && (!errors.Is(err, staff.ErrTooLate) || fault.KeyOf(err) != c.key || tpl.MayReopen(c.now)):
			t.Errorf("%s: %v %s, want %s", c.name, err, fault.KeyOf(err), c.key)
		}
	}
	if next, err := closedDrop(ten(time.Minute)).Reopen(ten(2*time.Minute), true); err != nil || next.Stored != template.Paused {
		t.Errorf("a paused drop is %s after its closing was undone: %v", next.Stored, err)
	}
	for _, state := range template.States() {
		if tpl, now := inState(state); state != template.Closed {
			if _, err := tpl.Reopen(now, false); !errors.Is(err, template.ErrTransition) {
				t.Errorf("reopening a drop that is %s: %v", state, err)
			}
		}
	}
}

// TestUndoing: a step is not undone if the template has changed since. A second undo changes
// nothing.
func TestUndoing(t *testing.T) {
	pause := func(v int64) template.Undo { return template.Undo{Step: template.Pausing, Version: v} }
	s, store := serviceAt(template.Paused)
	v := store.held.Version
	id := store.held.ID
	for _, stale := range []int64{0, v - 1, v + 1} {
		if _, _, err := s.Undo(t.Context(), staff.System(), id, pause(stale)); !errors.Is(err, staff.ErrTooLate) {
			t.Errorf("version %d of %d: %v", stale, v, err)
		}
	}
	got, undone, err := s.Undo(t.Context(), staff.System(), id, pause(v))
	if err != nil || undone != staff.Undid || got.Stored != template.Published || store.changes[0].Entry.Action != "template.resume" {
		t.Fatalf("%v %v %+v", undone, err, store.changes)
	}
	store.held = got
	store.held.Version = v + 1
	if _, undone, err = s.Undo(t.Context(), staff.System(), id, pause(v)); err != nil || undone != staff.UndidBefore || len(store.changes) != 1 {
		t.Errorf("again: %v %v, %d changes", undone, err, len(store.changes))
	}
	store.held.Version = v + 2
	if _, _, err = s.Undo(t.Context(), staff.System(), id, pause(v)); !errors.Is(err, staff.ErrTooLate) {
		t.Errorf("after another change: %v", err)
	}
	if _, _, err = s.Undo(t.Context(), staff.System(), id, template.Undo{Step: template.Cancelling, Version: v + 2}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a step that cannot be undone: %v", err)
	}
	if _, _, err = s.Undo(t.Context(), staff.Actor{Role: staff.Marketer, Shops: []int64{999}}, id, pause(v+2)); fault.KindOf(err) != fault.Denied {
		t.Errorf("of another shop: %v", err)
	}

	store.held = closedDrop(ten(time.Minute))
	store.changes, s.Now = nil, func() time.Time { return ten(2 * time.Minute) }
	u := template.Undo{Step: template.Closing, Version: store.held.Version}
	if _, undone, err = s.Undo(t.Context(), staff.System(), store.held.ID, u); err != nil || undone != staff.Undid {
		t.Fatalf("closing: %v %v", undone, err)
	}
	if c := store.changes[0]; c.Schedule != template.ReopenSlots || c.Event != event.TemplatePublished || c.Entry.Action != "template.reopen" {
		t.Errorf("%+v", c)
	}
}

// TestDeletingDrafts: only drafts are deleted, only in the version that the form showed, and they
// are restored once.
func TestDeletingDrafts(t *testing.T) {
	for _, state := range template.States() {
		s, store := serviceAt(state)
		_, err := s.Delete(t.Context(), staff.System(), store.held.ID, store.held.Version, "")
		if (state == template.Draft) != (err == nil) || err != nil && !errors.Is(err, template.ErrTransition) {
			t.Errorf("%s: %v", state, err)
		}
	}
	s, store := serviceAt(template.Draft)
	id, v := store.held.ID, store.held.Version
	limited := staff.Actor{Role: staff.Marketer, Shops: []int64{999}}
	if _, err := s.Delete(t.Context(), staff.System(), id, v-1, ""); !errors.Is(err, fault.ErrStale) {
		t.Errorf("another version: %v", err)
	}
	for _, by := range []staff.Actor{limited, {Role: staff.Viewer}} {
		if _, err := s.Delete(t.Context(), by, id, v, ""); fault.KindOf(err) != fault.Denied {
			t.Errorf("by %v: %v", by, err)
		}
	}
	if _, err := s.Delete(t.Context(), staff.System(), id, v, "typo"); err != nil || store.changes[0].Entry.Reason != "typo" {
		t.Fatal(err)
	}
	if _, _, err := s.Restore(t.Context(), limited, id); fault.KindOf(err) != fault.Denied {
		t.Errorf("restored by a member of another shop: %v", err)
	}
	for _, want := range []staff.Undone{staff.Undid, staff.UndidBefore} {
		if got, undone, err := s.Restore(t.Context(), staff.System(), id); err != nil || undone != want || got.ID != id {
			t.Errorf("%v %v, want %v", undone, err, want)
		}
	}
	if _, _, err := s.Restore(t.Context(), staff.System(), id+1); !errors.Is(err, template.ErrNotFound) {
		t.Errorf("a draft that there never was: %v", err)
	}
}
