package template

import (
	"context"
	"errors"
	"time"

	"dropbell/domain/detach"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// ReopenWithin is how long after its closing a drop can be reopened.
const ReopenWithin = 15 * time.Minute

// Reopening takes back a closing; see [Template.Reopen].
const Reopening Transition = "reopen"

// Reopen returns t as it was before staff closed it: published, or paused if paused is set. It
// returns [ErrTransition] unless t is closed. It returns [staff.ErrTooLate] if the closing cannot
// be taken back: a reminder time has passed without its reminders, the drop has ended by itself,
// the gate in Redis has given its stock back, or [ReopenWithin] has passed.
func (t Template) Reopen(now time.Time, paused bool) (Template, error) {
	if t.Stored != Closed {
		return t, ErrTransition.Because("the template is %s; this needs closed", t.State(now)).Told("fault.template_is." + string(t.State(now)))
	}
	if err := t.reopenable(now); err != nil {
		return t, err
	}
	t.Stored, t.EndedAt = Published, nil
	if paused {
		t.Stored = Paused
	}
	return t, nil
}

// MayReopen reports whether staff may still reopen t, which is closed.
func (t Template) MayReopen(now time.Time) bool {
	return t.Stored == Closed && t.reopenable(now) == nil
}

func (t Template) reopenable(now time.Time) error {
	late := func(key, why string) error { return staff.ErrTooLate.Because("%s", why).Told("fault.reopen." + key) }
	switch {
	case !t.ClosedEarly() || t.EndedAt == nil || !now.Before(t.EndsAt()):
		return late("ended", "the drop has ended by itself")
	case t.ClaimMode == Gate:
		return late("gate", "the drop's gate has given its stock back")
	case now.Sub(*t.EndedAt) > ReopenWithin:
		return late("time", "a drop can be reopened only shortly after it was closed")
	}
	for _, s := range AllSlots() {
		if due := s.DueAt(t.OpensAt); due.After(*t.EndedAt) && !due.After(now) {
			return late("reminders", "a reminder time has gone by since, whose reminders were not sent")
		}
	}
	return nil
}

// An Undo takes a step of a template back.
type Undo struct {
	// Step is the step, [Pausing] or [Closing].
	Step Transition
	// Version is the template's version after the step.
	Version int64
	// WasPaused says that the template was paused before it was closed.
	WasPaused bool
}

// Undo takes the step back if nothing has changed since. It returns [staff.ErrTooLate] with the
// reason if the step can no longer be taken back. A second undo changes nothing.
func (s *Service) Undo(ctx context.Context, by staff.Actor, id int64, u Undo) (Template, staff.Undone, error) {
	t, err := s.own(ctx, by, id)
	if err != nil {
		return t, 0, err
	}
	next, err := u.of(t, s.Now())
	if err == nil {
		tr := Resuming
		if u.Step == Closing {
			tr = Reopening
		}
		saved, err := s.Store.Save(ctx, changeOf(by, tr, t, next, ""))
		if err == nil {
			return saved, staff.Undid, nil
		}
		if !errors.Is(err, fault.ErrStale) {
			return t, 0, err
		}
		if t, err = s.own(ctx, by, id); err != nil {
			return t, 0, err
		}
	}
	if u.Version > 0 && t.Version == u.Version+1 && (t.Stored == Published || u.WasPaused && t.Stored == Paused) {
		return t, staff.UndidBefore, nil
	}
	if err == nil {
		err = staff.ErrTooLate.Told("fault.undo.changed")
	}
	return t, 0, err
}

// of returns t before the step.
func (u Undo) of(t Template, now time.Time) (Template, error) {
	switch {
	case u.Step != Pausing && u.Step != Closing:
		return t, fault.ErrInvalid.Because("%q cannot be undone", u.Step)
	case t.Version != u.Version:
		return t, staff.ErrTooLate.Because("the template has changed since").Told("fault.undo.changed")
	case u.Step == Closing:
		return t.Reopen(now, u.WasPaused)
	}
	next, err := t.Resume(now)
	if errors.Is(err, ErrTransition) {
		return t, staff.ErrTooLate.Because("%s", err).Told("fault.undo.changed")
	}
	return next, err
}

// ErrDraftInUse refuses to delete a draft that a campaign, a batch of codes or a link names.
var ErrDraftInUse = fault.New(fault.Conflict, "draft_in_use", "a campaign, a batch of codes or a link names this draft; remove that first")

// DraftStore deletes and restores drafts.
type DraftStore interface {
	// DeleteDraft deletes the draft with the version, so that it can be restored. It returns
	// [fault.ErrStale] if there is no such draft, or [ErrDraftInUse].
	DeleteDraft(ctx context.Context, id, version int64, e staff.Entry) error
	// DeletedDraft returns [ErrNotFound] if there is none to restore.
	DeletedDraft(ctx context.Context, id int64) (staff.DeletedDraft, error)
	// RestoreDraft returns [ErrNotFound] if there is none to restore.
	RestoreDraft(ctx context.Context, id int64, e staff.Entry) error
}

// DeletableAt returns [ErrTransition] unless t is a draft.
func (t Template) DeletableAt(now time.Time) error { return t.in(now, Draft) }

// Delete deletes a draft. It returns [ErrTransition] for a template that is no draft, and
// [fault.ErrStale] if the version is no longer current.
func (s *Service) Delete(ctx context.Context, by staff.Actor, id, version int64, reason string) (Template, error) {
	t, err := s.own(ctx, by, id)
	if err != nil {
		return t, err
	}
	if err := t.DeletableAt(s.Now()); err != nil {
		return t, err
	}
	if t.Version != version {
		return t, fault.ErrStale
	}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	return t, s.Store.DeleteDraft(ctx, id, version, entry(by, "template.delete", t, reason, t.Spec, nil))
}

// DeletedDraft returns a deleted draft to staff who may restore it, and [ErrNotFound] to others.
func (s *Service) DeletedDraft(ctx context.Context, by staff.Actor, id int64) (staff.DeletedDraft, error) {
	d, err := s.Store.DeletedDraft(ctx, id)
	if err == nil {
		err = by.May(staff.ManageTemplates, d.Shop)
	}
	return d, err
}

// Restore makes a deleted draft a draft again. A draft that was restored before is returned
// unchanged. It returns [ErrNotFound] if there is nothing to restore.
func (s *Service) Restore(ctx context.Context, by staff.Actor, id int64) (Template, staff.Undone, error) {
	if t, err := s.own(ctx, by, id); !errors.Is(err, ErrNotFound) {
		return t, staff.UndidBefore, err
	}
	d, err := s.DeletedDraft(ctx, by, id)
	if err != nil {
		return Template{}, 0, err
	}
	about := Template{ID: id, Spec: Spec{ShopNumber: d.Shop}}
	ctx, cancel := detach.Context(ctx)
	defer cancel()
	undone := staff.Undid
	err = s.Store.RestoreDraft(ctx, id, entry(by, "template.restore", about, "", nil, nil))
	if errors.Is(err, ErrNotFound) { // another member was faster, or it was too late
		undone, err = staff.UndidBefore, nil
	}
	if err != nil {
		return Template{}, 0, err
	}
	t, err := s.Template(ctx, by, id)
	return t, undone, err
}
