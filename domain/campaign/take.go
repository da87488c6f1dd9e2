package campaign

import (
	"context"
	"errors"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// A Wish is a step that a member decided to take, looking at a campaign.
type Wish struct {
	Step Transition
	// Version is the version that the form showed, and AloneUpTo the number of
	// users that one member may send to without approval (0 = any number), as the
	// form showed it. Publishing requires both, so that it does not publish
	// changes made since; other steps do not depend on them. Version 0, or no
	// AloneUpTo = the form does not say.
	Version   int64
	AloneUpTo *int64
	// Reason says why, for the audit log.
	Reason string
}

// A StepOutcome says what came of a [Wish].
type StepOutcome int

const (
	// Taken says that the step was taken.
	Taken StepOutcome = iota + 1
	// AlreadyTaken: the campaign was already in the state that the step leads to.
	// The form was sent twice, or another member was faster.
	AlreadyTaken
	// Asked: approval was requested instead.
	Asked
	// NeedsApproval: nothing was done, since approval has been requested;
	// approving requires a form that shows the request.
	NeedsApproval
	// Changed says that nothing was done, since the campaign is not what the
	// member was shown.
	Changed
)

// Take takes a step of campaign id on behalf of a member whose form showed what
// the step does. It returns the campaign as it is now. A refusal of the kinds
// [fault.Conflict] and [fault.Invalid] comes with the campaign too, so that the
// form can be shown again.
func (s *Service) Take(ctx context.Context, by staff.Actor, id int64, w Wish) (Status, StepOutcome, error) {
	st, outcome, err := s.look(ctx, by, id, w.Step)
	if err != nil || outcome != 0 {
		return st, outcome, err
	}
	if w.Step == Publishing && (w.Version <= 0 || w.AloneUpTo == nil) {
		return st, Changed, nil
	}
	next, err := s.wished(ctx, by, id, w)
	switch {
	case err == nil && next.ApprovalAskedAt != nil:
		return Status{next, st.Progress}, Asked, nil
	case err == nil:
		return Status{next, st.Progress}, Taken, nil
	case fault.KindOf(err) != fault.Conflict:
		return st, 0, err
	}
	now, outcome, again := s.look(ctx, by, id, w.Step)
	switch {
	case again != nil || outcome != 0:
		return now, outcome, again
	case errors.Is(err, fault.ErrStale):
		return now, Changed, nil
	}
	return now, 0, err
}

func (s *Service) wished(ctx context.Context, by staff.Actor, id int64, w Wish) (Campaign, error) {
	if w.Step == Publishing {
		return s.Publish(ctx, by, id, w.Version, *w.AloneUpTo, w.Reason)
	}
	return s.Do(ctx, by, id, 0, w.Step, w.Reason)
}

// look returns the status of the campaign, and the outcome of the step if it is known
// before it is tried: [NeedsApproval], [AlreadyTaken], or nothing.
func (s *Service) look(ctx context.Context, by staff.Actor, id int64, step Transition) (Status, StepOutcome, error) {
	st, err := s.Campaign(ctx, by, id)
	if err != nil {
		return st, 0, err
	}
	needed, err := s.NeedsApproval(ctx, by, st, step)
	switch {
	case err != nil:
		return st, 0, err
	case needed:
		return st, NeedsApproval, nil
	case st.was(step):
		return st, AlreadyTaken, nil
	}
	return st, 0, nil
}

// NeedsApproval reports whether the step is a publication for which approval has
// been requested. It returns false once the limit or the audience is such that
// no approval is needed.
func (s *Service) NeedsApproval(ctx context.Context, by staff.Actor, st Status, step Transition) (bool, error) {
	if step != Publishing || st.State != Draft || st.ApprovalAskedAt == nil {
		return false, nil
	}
	v, err := s.Review(ctx, by, st.ID)
	return v.Needed(), err
}

// was reports whether the step was taken, as far as the state shows. A running
// campaign may never have been paused, so its state does not show whether it was
// resumed.
func (c Campaign) was(step Transition) bool {
	switch step {
	case Publishing:
		return c.State == Scheduled || c.State == Running
	case Pausing:
		return c.State == Paused
	case Cancelling:
		return c.State == Cancelled
	}
	return false
}

// Redo is [Service.Do] for a caller whose earlier attempt may have been stored
// without having been answered: a step that fails counts as taken if the
// campaign is what the step makes of it, or has gone on from there.
func (s *Service) Redo(ctx context.Context, by staff.Actor, id, version int64, step Transition, reason string) (Campaign, error) {
	c, err := s.Do(ctx, by, id, version, step, reason)
	if err == nil {
		return c, nil
	}
	if st, again := s.Campaign(ctx, by, id); again == nil && st.stored(step) {
		return st.Campaign, nil
	}
	return c, err
}

// stored reports whether a step that was tried has been stored.
func (c Campaign) stored(step Transition) bool {
	switch step {
	case Publishing:
		return c.PublishedAt != nil && c.State != Cancelled
	case Pausing:
		return c.State == Paused
	case Resuming:
		return c.State == Running
	}
	return c.State == Cancelled
}

// Decided reports whether the request is the latest one about campaign id, and
// in that state.
func (s *Service) Decided(ctx context.Context, id, request int64, as RequestState) bool {
	list, err := s.Store.Requests(ctx, id, 1)
	return err == nil && len(list) > 0 && list[0].ID == request && list[0].State == as
}

// Requests returns the requests for approval of a campaign that the caller may
// see, the latest first.
func (s *Service) Requests(ctx context.Context, c Campaign, limit int) ([]Request, error) {
	return s.Store.Requests(ctx, c.ID, limit)
}

// SegmentRule returns the rule of the segment or list that the audience names,
// as it is now; nil for other audiences and for one that is gone.
func (s *Service) SegmentRule(ctx context.Context, a Audience) (*FrozenRule, error) {
	return s.Store.SegmentRule(ctx, a)
}

// Subject returns what messages of the campaign are rendered from, also of one
// that is not stored.
func (s *Service) Subject(ctx context.Context, c Campaign) (delivery.Subject, error) {
	return s.Store.Subject(ctx, c)
}

// Granted returns the template whose coupons a campaign gives away that the
// caller may see, or [template.ErrNotFound].
func (s *Service) Granted(ctx context.Context, id int64) (template.Template, error) {
	return s.Templates.Template(ctx, id)
}
