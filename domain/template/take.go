package template

import (
	"context"
	"errors"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
)

// A Wish is a step that a member decided to take, looking at a template.
type Wish struct {
	Step Transition
	// Version is the version that the form showed; 0 = the form showed none. Publishing requires
	// it, so that changes made since are not published. Other steps do not depend on it.
	Version int64
	// Reason says why, for the audit log.
	Reason string
}

// An Outcome is the outcome of a [Wish].
type Outcome int

const (
	// Taken says that the step was taken.
	Taken Outcome = iota + 1
	// AlreadyTaken says that the template was already in the state to which the step leads. The
	// form was sent twice, or another member was faster.
	AlreadyTaken
	// Changed says that nothing was done because the template has changed since the form was
	// shown.
	Changed
)

// Take takes a step of template id for a member whose form showed the effect of the step. It
// returns the template as it is now. Errors of the kinds [fault.Conflict] and [fault.Invalid]
// come with the template too, so that the form can be shown again.
func (s *Service) Take(ctx context.Context, by staff.Actor, id int64, w Wish) (Template, Outcome, error) {
	t, err := s.own(ctx, by, id)
	switch {
	case err != nil:
		return t, 0, err
	case t.was(w.Step):
		return t, AlreadyTaken, nil
	}
	version := int64(0)
	if w.Step == Publishing {
		if version = w.Version; version <= 0 {
			return t, Changed, nil
		}
	}
	next, err := s.Do(ctx, by, id, version, w.Step, w.Reason)
	if err == nil {
		return next, Taken, nil
	}
	if !errors.Is(err, fault.ErrStale) {
		return t, 0, err
	}
	if t, err = s.own(ctx, by, id); err != nil {
		return t, 0, err
	}
	if t.was(w.Step) {
		return t, AlreadyTaken, nil
	}
	return t, Changed, nil
}

// Redo is [Service.Do] for a caller whose earlier attempt may have been stored without an answer.
// A step that fails counts as taken if the template is in the state to which the step leads.
func (s *Service) Redo(ctx context.Context, by staff.Actor, id, version int64, tr Transition, reason string) (Template, error) {
	t, err := s.Do(ctx, by, id, version, tr, reason)
	if err == nil {
		return t, nil
	}
	if now, again := s.Template(ctx, by, id); again == nil && now.Stored == tr.leadsTo() {
		return now, nil
	}
	return t, err
}

// own returns the template if the member may change it.
func (s *Service) own(ctx context.Context, by staff.Actor, id int64) (Template, error) {
	t, err := s.Template(ctx, by, id)
	if err != nil {
		return t, err
	}
	return t, by.May(staff.ManageTemplates, t.ShopNumber)
}

// was reports whether the template's state shows that the step was taken. It is false for
// resuming: a published template may never have been paused.
func (t Template) was(step Transition) bool {
	return step != Resuming && t.Stored == step.leadsTo()
}

// leadsTo is the state after the step.
func (tr Transition) leadsTo() State {
	switch tr {
	case Publishing, Resuming:
		return Published
	case Pausing:
		return Paused
	case Closing:
		return Closed
	}
	return Cancelled
}
